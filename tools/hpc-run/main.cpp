// hpc-run: runs a plan, its ranks as threads; alone, or as one of several processes that a launcher has started.
// A plan contains machine code: run only plans whose author you trust.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/null/Counts.h"
#include "runtime/backend/processes/ProcessBackend.h"
#include "runtime/backend/processes/ProcessControlPlane.h"
#include "runtime/base/Cores.h"
#include "runtime/base/File.h"
#include "runtime/base/Hash.h"
#include "runtime/base/MessageText.h"
#include "runtime/base/Npz.h"
#include "runtime/core/CheckpointFiles.h"
#include "runtime/core/Session.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanStructure.h"
#include "tools/ExitCode.h"
#include "tools/OutputFiles.h"
#include "tools/ShortenedFiles.h"
#include "tools/flags/Arguments.h"
#include "tools/hpc-run/CountReport.h"
#include "tools/hpc-run/CudaPlugin.h"
#include "tools/hpc-run/Inputs.h"
#include "tools/hpc-run/Processes.h"
#include "tools/hpc-run/Profile.h"
#include "tools/hpc-run/Report.h"
#include "tools/hpc-run/Train.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <new>
#include <tuple>

using namespace hpc;

namespace {

Status outOfMemory() { return Status::error(ErrorKind::Capacity, "out of memory"); }

struct Flags {
  std::string plan, entry, output, weights, trace, backend = "host";
  std::vector<std::string> inputs;
  bool poison = false, profile = false, tiles = true, followLinks = false;
  int repeat = 0;
  int64_t threads = 0; ///< of a rank; 0: by the cores
  TrainFlags training;
  ProcessFlags processes;
  cuda::CudaOptions cuda;
};

/// Files that are read before anything runs.
struct Work {
  plan::Plan plan;
  std::vector<plan::Plan> entries; ///< plan::planOf each; none where it has none
  size_t number = 0;               ///< of the entry to run
  std::vector<Array> inputs;       ///< of one step; none where data is given
  TrainData data;

  plan::Plan &entry(size_t number) { return entries.empty() ? plan : entries[number]; }
  plan::Plan &entry() { return entry(number); }
};

Status repeatRuns(Session &session, size_t entry, const std::vector<Array> &inputs, std::vector<Array> &outputs, int runs,
                  bool tell) {
  constexpr int warmUps = 2;
  std::vector<double> milliseconds;
  for (int i = -warmUps; i < runs; ++i) {
    auto start = std::chrono::steady_clock::now();
    HPC_RETURN_IF_ERROR(session.run(entry, inputs, outputs, Outputs::Ordinary));
    if (i >= 0)
      milliseconds.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  if (tell)
    std::printf("%s\n", timingLine(std::move(milliseconds), session.peakBytesPerRank()).c_str());
  return Status::success();
}

Status writeOutputs(const Flags &flags, const plan::Plan &plan, std::vector<Array> outputs) {
  if (flags.output.empty()) {
    for (size_t i = 0; i < outputs.size() && flags.repeat == 0; ++i)
      if (!plan.outputs[i].onRequest)
        std::printf("%s\n", describeOutput(plan.outputs[i].name, outputs[i]).c_str());
    return Status::success();
  }
  NamedArrays named;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!plan.outputs[i].onRequest)
      named.emplace_back(plan.outputs[i].name, std::move(outputs[i]));
  return writeNpz(flags.output, named);
}

/// Flags that do not go together.
Status checkModes(const Flags &flags) {
  if (flags.training.any() && (!flags.inputs.empty() || !flags.output.empty() || flags.repeat > 0))
    return Status::error(ErrorKind::Usage, "--train, --gradients and --evaluate take --data and report the loss: leave out "
                                           "--input, --output and --repeat");
  if (flags.training.any() && !flags.entry.empty())
    return Status::error(ErrorKind::Usage, "--entry is about a run with --input; --train, --gradients and --evaluate take the entry that "
                                           "is theirs; leave --entry out");
  if (flags.backend != "null")
    return Status::success();
  if (!flags.inputs.empty() || !flags.output.empty() || !flags.weights.empty() || !flags.trace.empty() ||
      flags.poison || flags.profile || flags.repeat > 0 || flags.training.any())
    return Status::error(ErrorKind::Usage, "--backend=null counts one step without doing it: leave out --input, "
                                           "--output, --weights, --trace, --profile, --poison, --repeat, --train and --gradients");
  return Status::success();
}

/// --backend=null: counts what one step does.
Status countPlan(const plan::Plan &plan) {
  Expected<std::vector<null::Counts>> counts = null::countRanks(plan);
  if (!counts.ok())
    return counts.status();
  std::fputs(describeCounts(plan, *counts).c_str(), stdout);
  return Status::success();
}

Status readArrays(const Flags &flags, Work &work, std::vector<std::string> &notes) {
  Expected<std::vector<Array>> inputs = readInputs(work.entry(), flags.inputs, notes);
  if (!inputs.ok())
    return inputs.status();
  work.inputs = std::move(*inputs);
  if (!work.entries.empty())
    work.plan.weights = work.entry().weights; // some are given
  return Status::success();
}

Status readBatches(const Flags &flags, Work &work, std::vector<std::string> &notes) {
  TextData text(flags.training.text);
  auto open = [&](size_t entry, const std::string &path, std::optional<Batches> &opened) -> Status {
    Expected<std::string> tokens = text.tokensOf(path, work.entry(entry), notes);
    HPC_RETURN_IF_ERROR(tokens.status());
    Expected<Batches> batches = Batches::open(work.entry(entry), *tokens, notes);
    if (batches.ok())
      opened.emplace(std::move(*batches));
    return batches.status();
  };
  if (!flags.training.onlyEvaluates()) {
    HPC_RETURN_IF_ERROR(checkTrains(work.entry(0)));
    HPC_RETURN_IF_ERROR(open(0, flags.training.data, work.data.batches));
  }
  if (flags.training.evaluate.empty())
    return text.checkUsed();
  Expected<size_t> entry = evaluationEntry(work.plan);
  HPC_RETURN_IF_ERROR(entry.status());
  work.data.evaluation = *entry;
  HPC_RETURN_IF_ERROR(open(*entry, flags.training.evaluate, work.data.heldOut).at("--evaluate"));
  return text.checkUsed();
}

/// "out.json" of process 2 is "out.2.json".
std::string traceFile(const std::string &path, int64_t process) {
  if (process == 0 || path.empty())
    return path;
  size_t dot = path.rfind('.');
  dot = dot == std::string::npos || path.find('/', dot) != std::string::npos ? path.size() : dot;
  return path.substr(0, dot) + "." + std::to_string(process) + path.substr(dot);
}

NamedFile flag(const std::string &name, const std::string &path) { return {name + "=" + path, path}; }

/// The weights of a checkpoint, and its states beside them.
std::vector<NamedFile> savedFiles(const std::string &path) {
  if (path.empty())
    return {};
  const std::string weights = checkpointFile(path);
  return {{"--save=" + path, weights}, {"the states of --save=" + path, statesFile(weights)}};
}

/// A folder that is named as one is made. Devices and pipes take no second file beside them.
Status checkSave(const std::string &path) {
  std::error_code error;
  if (!path.empty() && path.back() == '/' && !std::filesystem::exists(path, error) && !std::filesystem::create_directory(path, error))
    return Status::error(ErrorKind::Io, "--save=" + path + " cannot be written: the folder cannot be made: " + error.message() +
                                            "; name another one");
  for (const NamedFile &file : savedFiles(path)) {
    if (std::filesystem::exists(file.path, error) && !std::filesystem::is_regular_file(file.path, error))
      return Status::error(ErrorKind::Usage, file.name + ": '" + file.path + "' is not a regular file; name a file or a folder");
    HPC_RETURN_IF_ERROR(checkDestination(file));
  }
  return Status::success();
}

/// Files that this process writes: the first process all outputs, each its own trace.
Status checkDestinations(const Flags &flags, int64_t process) {
  HPC_RETURN_IF_ERROR(checkDestination(flag("--trace", traceFile(flags.trace, process))));
  if (process != 0)
    return Status::success();
  HPC_RETURN_IF_ERROR(checkDestination(flag("--metrics", flags.training.metrics), Writing::Appends));
  for (const NamedFile &file : {flag("--output", flags.output), flag("--gradients", flags.training.gradients)})
    HPC_RETURN_IF_ERROR(checkDestination(file));
  return checkSave(flags.training.save);
}

/// A checkpoint may replace the one from which the run continues.
Status checkFiles(const Flags &flags, const plan::Plan &plan) {
  const TrainFlags &training = flags.training;
  std::vector<NamedFile> read = {{"the plan", flags.plan}, flag("--data", training.data), flag("--evaluate", training.evaluate)};
  for (const std::string &input : flags.inputs)
    read.push_back({"--input=" + input, fileOfInput(input)});
  for (const plan::WeightFile &file : plan.files) {
    std::string own = resolvePath(folderOf(flags.plan), file.path);
    if (flags.weights.empty())
      read.push_back({"the file of weights '" + own + "'", own});
    else // a file, or the folder of all
      read.push_back({"a file of --weights=" + flags.weights, resolvePath(flags.weights, own.substr(own.rfind('/') + 1))});
  }
  if (!flags.weights.empty())
    for (const std::string &path : tensorFilesAt(flags.weights))
      read.push_back({"a file of --weights=" + flags.weights, path});
  std::vector<NamedFile> written = savedFiles(training.save);
  HPC_RETURN_IF_ERROR(checkOutputFiles(written, read));
  for (const NamedFile &file : savedFiles(training.load))
    read.push_back({"--load=" + training.load, file.path});
  std::vector<NamedFile> others = {flag("--output", flags.output), flag("--trace", flags.trace),
                                   flag("--metrics", training.metrics), flag("--gradients", training.gradients)};
  HPC_RETURN_IF_ERROR(checkOutputFiles(others, read));
  others.insert(others.end(), written.begin(), written.end());
  return checkOutputFiles(others, {});
}

/// Read before the processes meet, since it decides whether they can: it takes a few milliseconds.
Status readPlanOf(const Flags &flags, int64_t process, Work &work) {
  HPC_RETURN_IF_ERROR(checkModes(flags));
  Expected<plan::Plan> plan = plan::readPlan(flags.plan);
  if (!plan.ok())
    return plan.status();
  HPC_RETURN_IF_ERROR(plan::checkPlan(*plan));
  work.plan = std::move(*plan);
  for (size_t entry = 0; entry < work.plan.entries.size(); ++entry)
    work.entries.push_back(plan::planOf(work.plan, entry));
  Expected<size_t> entry = plan::findEntry(work.plan, flags.entry);
  HPC_RETURN_IF_ERROR(entry.status());
  work.number = *entry;
  HPC_RETURN_IF_ERROR(checkFiles(flags, work.plan));
  return checkDestinations(flags, process);
}

Status readData(const Flags &flags, int64_t process, Work &work) {
  std::vector<std::string> notes;
  Status status = flags.training.any() ? readBatches(flags, work, notes) : readArrays(flags, work, notes);
  for (const std::string &note : notes)
    if (process == 0)
      std::fprintf(stderr, "%s\n", note.c_str());
  return status;
}

/// `processes` is null where this one is alone.
Expected<std::unique_ptr<Backend>> openBackend(const Flags &flags, processes::Processes *processes) {
  if (flags.backend == "cuda") {
    cuda::CudaOptions options = flags.cuda;
    options.inRankOrder = flags.processes.deterministic;
    options.note = [](const std::string &text) { std::fprintf(stderr, "note: %s\n", text.c_str()); };
    return openCudaBackend(options,
                           processes ? std::make_unique<processes::ProcessControlPlane>(*processes) : nullptr);
  }
  return processes ? processes::createProcessBackend(*processes, flags.processes.deterministic, flags.tiles)
                   : host::createHostBackend(nullptr, flags.tiles);
}

/// Threads of each of this process's ranks, `own`. Stages wait for each other, and a waiting stage leaves its cores to
/// the others: with several, twice as many threads as cores keep more of them busy.
int64_t threadsOf(const Flags &flags, const plan::Plan &plan, RankRange own, processes::Processes *processes) {
  if (flags.threads > 0)
    return flags.threads;
  const int64_t cores = flags.backend == "cuda" ? 1 : processes ? processes->coresOfEach() : availableCores();
  const bool hasStages = own.first / plan.ranksPerStage() != (own.first + own.count - 1) / plan.ranksPerStage();
  return std::max<int64_t>(1, cores * (hasStages ? 2 : 1) / own.count);
}

/// Runs the ranks of this process. `processes` is null where it is alone.
Status runWork(const Flags &flags, Work &work, processes::Processes *processes) {
  const int64_t process = processes ? processes->process : 0;
  SessionOptions options;
  options.planFolder = folderOf(flags.plan);
  options.weightsReplacement = flags.weights;
  options.checkpoint = flags.training.load;
  options.followLinks = flags.followLinks;
  options.poison = flags.poison;
  options.trace = !flags.trace.empty() || flags.profile;
  if (processes) {
    const launch::Introduction &mine = processes->control->mine();
    options.ranks = {mine.firstRank, mine.ranks};
  } else {
    options.ranks = {0, work.plan.worldSize()};
  }
  options.threads = threadsOf(flags, work.plan, options.ranks, processes);
  host::MachineSpeed speed;
  if (flags.profile) {
    Expected<host::MachineSpeed> measured = host::measureSpeed(options.ranks.count * options.threads);
    if (!measured.ok())
      return measured.status();
    speed = measured->times(double(options.threads));
  }
  Expected<std::unique_ptr<Backend>> backend = openBackend(flags, processes);
  if (!backend.ok())
    return backend.status();
  Expected<std::unique_ptr<Session>> session = Session::create(work.plan, std::move(*backend), options);
  if (!session.ok())
    return session.status();

  std::vector<Array> outputs;
  const bool isHome = process == 0;
  if (isHome)
    for (const std::string &note : (*session)->stored().notes())
      std::fprintf(stderr, "note: %s\n", messageText(note).c_str());
  Status status = flags.training.any() ? trainPlan(flags.training, **session, work.data, isHome)
                  : flags.repeat > 0
                      ? repeatRuns(**session, work.number, work.inputs, outputs, flags.repeat, isHome)
                      : (*session)->run(work.number, work.inputs, outputs, Outputs::Ordinary);
  if (status.ok() && !flags.trace.empty())
    status = writeFile(traceFile(flags.trace, process), (*session)->trace()->json());
  if (status.ok() && flags.profile && isHome)
    std::fputs(describeProfile((*session)->trace()->plan(), *(*session)->trace(), speed).c_str(), stdout);
  return status.ok() && isHome && !flags.training.any() ? writeOutputs(flags, work.entry(), std::move(outputs)) : status;
}

/// All processes must have the same plan, to the byte, and the same flags that decide which process waits for which.
std::vector<launch::Fingerprint> planFingerprints(const Flags &flags) {
  Expected<MappedFile> file = MappedFile::open(flags.plan);
  uint64_t plan = file.ok() ? hashBytes(file->data(), file->size()) : 0;
  const int64_t steps[] = {flags.repeat, flags.processes.deterministic, flags.poison, flags.tiles,
                           int64_t(fingerprint(flags.training)),
                           int64_t(hashBytes(flags.entry.data(), int64_t(flags.entry.size())))};
  return {{"bytes in its plan", plan, "give all processes a copy of one file"},
          {"flags", hashBytes(steps, sizeof(steps)), "give all processes the same flags"}};
}

void addDataFingerprints(const Flags &flags, const Work &work, std::vector<launch::Fingerprint> &list) {
  uint64_t inputs = 0;
  for (const Array &array : work.inputs)
    inputs = inputs * 31 + hashBytes(array.data.data(), int64_t(array.data.size()));
  for (const plan::Weight &weight : work.plan.weights)
    if (weight.isInput) // as it was given
      for (uint64_t hash : weight.hashes)
        inputs = inputs * 31 + hash;
  for (const std::optional<Batches> *batches : {&work.data.batches, &work.data.heldOut})
    if (*batches)
      inputs = inputs * 31 + (*batches)->fingerprint();
  // The session reports weights that cannot be opened.
  Expected<Weights> weights = Weights::open(work.plan, {folderOf(flags.plan), flags.weights, flags.training.load, flags.followLinks});
  list.push_back({"inputs", inputs, "give all processes the same --input or --data"});
  list.push_back({"weights", weights.ok() ? weights->fingerprint() : 0, "give all processes the same --weights"});
  list.push_back({"content in its checkpoint", weights.ok() ? weights->checkpointFingerprint() : 0,
                  "give all processes the same --load"});
}

/// `failed`: the error of the command line; the others receive it. A process without a number does no more than that.
Status runAsOneOfMany(const Flags &flags, const launch::Launch &launch, Status failed) {
  Work work;
  Prepared prepared;
  prepared.status = failed.ok() ? readPlanOf(flags, launch.process, work) : failed;
  if (prepared.status.ok()) {
    prepared.worldSize = work.plan.worldSize();
    prepared.fingerprints = planFingerprints(flags);
  }
  Expected<std::unique_ptr<processes::Processes>> met = meet(launch, flags.processes, prepared);
  if (!met.ok())
    endWith(met.status());
  processes::Processes &processes = **met;
  Status status;
  try {
    prepared.status = readData(flags, processes.process, work);
    if (prepared.status.ok())
      addDataFingerprints(flags, work, prepared.fingerprints);
    status = introduce(processes, prepared, flags.backend != "cuda");
    if (status.ok())
      status = runWork(flags, work, &processes);
  } catch (const std::bad_alloc &) {
    status = outOfMemory();
    processes.control->fail(status.at(processes.control->mine().text()));
  }
  Status verdict = leaveTogether(processes, status);
  if (!verdict.ok())
    endWith(status.ok() ? verdict : status);
  return verdict;
}

/// `note`: flags that a file gave, printed by the first process. `failed`: the error of the command line.
Status runPlan(const Flags &flags, const std::string &note, Status failed) {
  const bool isCounted = flags.backend == "null";
  launch::Launch launch = isCounted ? launch::Launch() : launch::detectLaunch(flags.processes.launch, flags.processes.rendezvous, ::getenv);
  if (!note.empty() && launch.process == 0)
    std::fprintf(stderr, "hpc-run: note: %s\n", note.c_str());
  if (!isCounted) {
    if (failed.ok())
      failed = launch.status;
    if (launch.kind != launch::LaunchKind::None)
      return runAsOneOfMany(flags, launch, failed);
  }
  HPC_RETURN_IF_ERROR(failed);
  Work work;
  HPC_RETURN_IF_ERROR(readPlanOf(flags, 0, work));
  if (isCounted)
    return countPlan(work.entry());
  HPC_RETURN_IF_ERROR(readData(flags, 0, work));
  return runWork(flags, work, nullptr);
}

Flags readFlags(const Arguments &arguments) {
  Flags flags;
  flags.plan = arguments.text("plan");
  flags.entry = arguments.text("entry");
  flags.inputs = arguments.all("input");
  flags.output = arguments.text("output");
  flags.weights = arguments.text("weights");
  flags.followLinks = arguments.has("follow-links");
  flags.training = readTrainFlags(arguments);
  flags.trace = arguments.text("trace");
  flags.profile = arguments.has("profile");
  flags.poison = arguments.has("poison");
  flags.repeat = int(arguments.whole("repeat").value_or(0));
  flags.backend = arguments.text("backend");
  flags.threads = arguments.whole("threads").value_or(0);
  flags.tiles = !arguments.has("no-tiles");
  flags.cuda.ranksPerGpu = int(*arguments.whole("ranks-per-gpu"));
  flags.cuda.tf32 = arguments.has("tf32");
  flags.cuda.cudaGraph = !arguments.has("no-cuda-graph");
  flags.cuda.cudnn = !arguments.has("no-cudnn");
  const std::string epilogues = arguments.text("epilogues");
  flags.cuda.epilogues = epilogues == "none" ? cuda::Epilogues::None : epilogues == "all" ? cuda::Epilogues::All : cuda::Epilogues::Faithful;
  flags.cuda.syncEachOp = arguments.has("sync-each-op");
  flags.processes.launch = arguments.text("launch");
  flags.processes.rendezvous = arguments.text("rendezvous");
  flags.processes.peerTimeout = *arguments.real("peer-timeout");
  flags.processes.deterministic = arguments.has("deterministic");
  return flags;
}

/// Flags that would do nothing, and names that are none.
Status checkFlags(const Arguments &arguments, const Flags &flags) {
  auto usage = [](const std::string &message) { return Status::error(ErrorKind::Usage, message); };
  HPC_RETURN_IF_ERROR(checkTrainFlags(arguments, flags.training));
  for (auto [name, kind] : {std::pair("output", "an .npz"), {"trace", "a trace"}, {"metrics", "a file of metrics"}, {"save", "a checkpoint"},
                            {"gradients", "an .npz"}})
    if (arguments.has(name))
      HPC_RETURN_IF_ERROR(checkOutputName(flag(std::string("--") + name, arguments.text(name)), kind));
  if (flags.profile && flags.backend == "cuda")
    return usage("--profile times what the host does, which with --backend=cuda is to enqueue: leave it out, and see --trace "
                 "with --sync-each-op");
  for (const Flag *one : arguments.given(group::gpus))
    if (flags.backend != "cuda")
      return usage(one->dashed() + " says how GPUs are used: add --backend=cuda");
  if (arguments.has("threads") && flags.backend != "host")
    return usage("--threads says how many cores a rank of the host uses: leave it out with --backend=" + flags.backend);
  if (arguments.has("no-tiles") && flags.backend != "host")
    return usage("--no-tiles is about the host's products: leave it out with --backend=" + flags.backend);
  for (const Flag *one : arguments.given(group::processes))
    if (flags.backend == "null")
      return usage(one->dashed() + " is about processes that run a plan, and --backend=null runs none: leave it out");
  if (arguments.has("peer-timeout") && flags.processes.launch == "none")
    return usage("--peer-timeout does not go with --launch=none, where this process runs alone; leave one of them out");
  return Status::success();
}

} // namespace

int main(int argc, char **argv) {
  reportShortenedFiles("hpc-run");
  Arguments arguments(HpcRun);
  Status status = arguments.parse(argc, argv);
  if (!arguments.page.empty()) {
    std::fputs(arguments.page.c_str(), stdout);
    return finish("hpc-run");
  }
  // After an error of the command line, backend and launcher still decide which processes have to receive it.
  const Flags flags = readFlags(arguments);
  if (status.ok())
    status = checkFlags(arguments, flags);
  try {
    status = runPlan(flags, arguments.note, status);
  } catch (const std::bad_alloc &) {
    status = outOfMemory();
  }
  return status.ok() ? finish("hpc-run") : reportError("hpc-run", status);
}
