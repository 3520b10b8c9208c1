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
#include "tools/Arguments.h"
#include "tools/OutputFiles.h"
#include "tools/ShortenedFiles.h"
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
#include <limits>
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

/// More are a mistake: they would take the machine's processes and address space before they computed anything.
constexpr int64_t mostThreads = 1024;

/// Files that are read before anything runs.
struct Work {
  plan::Plan plan;
  std::vector<plan::Plan> entries; ///< plan::planOf each; none where it has none
  size_t number = 0;               ///< of the entry that is run
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
  auto open = [&](size_t entry, const std::string &path, std::optional<Batches> &opened) {
    Expected<Batches> batches = Batches::open(work.entry(entry), path, notes);
    if (batches.ok())
      opened.emplace(std::move(*batches));
    return batches.status();
  };
  if (!flags.training.onlyEvaluates()) {
    HPC_RETURN_IF_ERROR(checkTrains(work.entry(0)));
    HPC_RETURN_IF_ERROR(open(0, flags.training.data, work.data.batches));
  }
  if (flags.training.evaluate.empty())
    return Status::success();
  Expected<size_t> entry = evaluationEntry(work.plan);
  HPC_RETURN_IF_ERROR(entry.status());
  work.data.evaluation = *entry;
  return open(*entry, flags.training.evaluate, work.data.heldOut).at("--evaluate");
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

/// A checkpoint may take the place of the one that it goes on from.
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

/// Of each of this process's ranks, `own`. Stages wait for each other, and one that waits leaves its cores to the others:
/// with several, twice as many threads as cores keep more of them busy.
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

/// All processes must have the same: the plan to the byte, and the flags that decide who waits for whom.
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
  // Where it cannot be opened the session says so.
  Expected<Weights> weights = Weights::open(work.plan, {folderOf(flags.plan), flags.weights, flags.training.load, flags.followLinks});
  list.push_back({"inputs", inputs, "give all processes the same --input or --data"});
  list.push_back({"weights", weights.ok() ? weights->fingerprint() : 0, "give all processes the same --weights"});
  list.push_back({"content in its checkpoint", weights.ok() ? weights->checkpointFingerprint() : 0,
                  "give all processes the same --load"});
}

/// `failed`: what the command line is wrong in; the others hear of it. A process that is nobody does no more than that.
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

/// `failed`: what the command line is wrong in.
Status runPlan(const Flags &flags, Status failed) {
  if (flags.backend != "null") {
    launch::Launch launch = launch::detectLaunch(flags.processes.launch, flags.processes.rendezvous, ::getenv);
    if (failed.ok())
      failed = launch.status;
    if (launch.kind != launch::LaunchKind::None)
      return runAsOneOfMany(flags, launch, failed);
  }
  HPC_RETURN_IF_ERROR(failed);
  Work work;
  HPC_RETURN_IF_ERROR(readPlanOf(flags, 0, work));
  if (flags.backend == "null")
    return countPlan(work.entry());
  HPC_RETURN_IF_ERROR(readData(flags, 0, work));
  return runWork(flags, work, nullptr);
}

} // namespace

int main(int argc, char **argv) {
  reportShortenedFiles("hpc-run");
  Flags flags;
  CLI::App app(
      "Runs a plan that hpc-opt made, its ranks as threads: alone, or as one of the processes that mpirun, srun\n"
      "or torchrun has started. A plan contains machine code: run only plans whose author you trust.",
      "hpc-run");
  app.footer("For example\n"
             "  hpc-run gpt2.plan --input=inputs.npz --output=logits.npz\n"
             "  mpirun -n 4 hpc-run gpt2.plan --input=inputs.npz --output=logits.npz\n"
             "  torchrun --nproc-per-node=4 --no-python hpc-run gpt2.plan --input=inputs.npz --output=logits.npz\n"
             "  RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 HPC_SECRET=... hpc-run gpt2.plan ...");
  app.get_formatter()->column_width(38);
  app.add_option("plan", flags.plan, "the plan")->required()->type_name("FILE");
  app.add_option("--input", flags.inputs, "arrays named as the inputs, or one input; may be repeated")
      ->type_name("FILE.npz|NAME=FILE.npy")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--entry", flags.entry, "what the plan is run for, where it has several entries (default: its first)")
      ->type_name("NAME");
  app.add_option("--output", flags.output, "write the outputs to this .npz (default: print a summary)")
      ->type_name("FILE.npz");
  app.add_option(
         "--weights", flags.weights,
         "take the weights from here (default: from where the plan says): a safetensors file or its index, an ONNX\n"
         "file or an .npz with tensors of the same names, or a folder with one of them, as save_pretrained writes;\n"
         "external data without its ONNX file only where the plan's hashes prove it")
      ->type_name("FILE|FOLDER");
  app.add_flag("--follow-links", flags.followLinks,
               "external data of --weights=FILE.onnx may be links, as in the model cache of a hub");
  addTrainFlags(app, flags.training);
  app.add_option("--trace", flags.trace, "write what each rank did when in the last run, for Perfetto")
      ->type_name("FILE.json");
  app.add_flag("--profile", flags.profile,
               "print where the time of the last run went: each kind of instruction against this machine's speed");
  app.add_flag("--poison", flags.poison, "fill all memory that nothing has written with NaN");
  app.add_option("--repeat", flags.repeat,
                 "time N runs after 2 warm-ups (default: run once); prints one JSON line: min_ms,\n"
                 "median_ms, peak_bytes_per_rank, runs")
      ->type_name("N")
      ->check(wholeNumber(1, std::numeric_limits<int>::max()));
  app.add_option("--backend", flags.backend,
                 "host: this machine's CPU (the default); cuda: its GPUs; null: run nothing, need no weights\n"
                 "and no inputs, and print what each rank would compute, hold and move in one step")
      ->type_name("NAME")
      ->check(CLI::IsMember({"host", "cuda", "null"}));
  CLI::Option *threads =
      app.add_option("--threads", flags.threads,
                     "host: threads of each rank, for the same bits with any number (default: the cores that\n"
                     "this process may use, shared among its ranks; twice that where stages wait for each other)")
          ->type_name("N")
          ->check(wholeNumber(1, mostThreads));
  CLI::Option *noTiles =
      app.add_flag("!--no-tiles", flags.tiles,
                   "host: no product in the tile registers (AMX); f32 then is a chain of f32 multiply-adds everywhere");
  std::vector<CLI::Option *> onlyCuda = {
      app.add_option("--ranks-per-gpu", flags.cuda.ranksPerGpu, "cuda: how many ranks share a GPU (default: 1)")
          ->type_name("N")
          ->check(wholeNumber(1, plan::maxRanks)),
      app.add_flag("--tf32", flags.cuda.tf32,
                   "cuda: tensor cores may round f32 operands of products to 10 bits of mantissa"),
      app.add_flag("!--no-cuda-graph", flags.cuda.cudaGraph,
                   "cuda: start every kernel of every step by itself; by default a step is captured once, after two\n"
                   "ordinary ones, where each rank has a GPU of its own"),
      app.add_flag("!--no-cudnn", flags.cuda.cudnn,
                   "cuda: run the plan's own kernels for attention, also where cuDNN has it"),
      app.add_option_function<std::string>(
             "--epilogues",
             [&](const std::string &kind) {
               flags.cuda.epilogues = kind == "none"  ? cuda::Epilogues::None
                                      : kind == "all" ? cuda::Epilogues::All
                                                      : cuda::Epilogues::Faithful;
             },
             "cuda: what cuBLASLt does to products before it stores them, in place of kernels: none;\n"
             "faithful (the default): bias, and GELU by tanh in 16 bits; all: that GELU in f32 too, by a tanh\n"
             "of unknown error, and relu, which makes 0 of NaN there")
          ->type_name("KIND")
          ->check(CLI::IsMember({"none", "faithful", "all"})),
      app.add_flag("--sync-each-op", flags.cuda.syncEachOp,
                   "cuda: wait after each instruction, so that an error on the GPU names it")};
  app.add_option("--launch", flags.processes.launch,
                 "who started this process: none (alone, all ranks), mpi (mpirun, srun --mpi=pmix), env (torchrun;\n"
                 "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT by hand; or the variables of Slurm, MPICH or MVAPICH\n"
                 "and --rendezvous), auto (the default): the innermost that the environment names")
      ->type_name("HOW")
      ->check(CLI::IsMember({"auto", "none", "mpi", "env"}));
  app.add_option("--rendezvous", flags.processes.rendezvous,
                 "where process 0 waits for the others; beyond one machine all need the same secret in\n"
                 "the environment variable HPC_SECRET")
      ->type_name("HOST:PORT");
  app.add_option("--peer-timeout", flags.processes.peerTimeout,
                 "seconds after which a process that is not heard of counts as lost (default: 3.5; 0: never)")
      ->type_name("SECONDS")
      ->check(numberFrom(/*zeroToo=*/true));
  app.add_flag("--deterministic", flags.processes.deterministic,
               "several processes with several ranks each, or several GPUs: reduce in the order of the ranks,\n"
               "for the same bits as in one process");
  bool isHelp = false;
  Status status = parseArguments(app, argc, argv, isHelp);
  if (isHelp)
    return 0;
  // Where the command line is wrong these still say who has to hear of it.
  auto given = [&](const char *name, std::string &value) {
    if (CLI::Option *option = app.get_option(name); !status.ok() && option->count() > 0)
      value = option->results().back();
  };
  given("--backend", flags.backend);
  given("--launch", flags.processes.launch);
  given("--rendezvous", flags.processes.rendezvous);
  auto check = [&](bool isWrong, const std::string &message) {
    if (status.ok() && isWrong)
      status = Status::error(ErrorKind::Usage, message);
  };
  if (status.ok())
    status = checkTrainFlags(flags.training);
  for (auto [name, path, kind] : {std::tuple("--output", &flags.output, "an .npz"),
                                  {"--trace", &flags.trace, "a trace"},
                                  {"--metrics", &flags.training.metrics, "a file of metrics"},
                                  {"--save", &flags.training.save, "a checkpoint"},
                                  {"--gradients", &flags.training.gradients, "an .npz"}})
    if (status.ok() && app.get_option(name)->count() > 0)
      status = checkOutputName(flag(name, *path), kind);
  check(flags.profile && flags.backend == "cuda",
        "--profile times what the host does, which with --backend=cuda is to enqueue: leave it out, and see --trace "
        "with --sync-each-op");
  for (CLI::Option *option : onlyCuda)
    check(option->count() > 0 && flags.backend != "cuda",
          option->get_name() + " says how GPUs are used: add --backend=cuda");
  check(threads->count() > 0 && flags.backend != "host",
        "--threads says how many cores a rank of the host uses: leave it out with --backend=" + flags.backend);
  check(noTiles->count() > 0 && flags.backend != "host",
        "--no-tiles is about the host's products: leave it out with --backend=" + flags.backend);
  for (const char *name : {"--launch", "--rendezvous", "--peer-timeout", "--deterministic"})
    check(app.get_option(name)->count() > 0 && flags.backend == "null",
          std::string(name) + " is about processes that run a plan, and --backend=null runs none: leave it out");
  check(app.get_option("--peer-timeout")->count() > 0 && flags.processes.launch == "none",
        "--peer-timeout does not go with --launch=none, where this process runs alone; leave one of them out");
  try {
    status = runPlan(flags, status);
  } catch (const std::bad_alloc &) {
    status = outOfMemory();
  }
  return status.ok() ? finish("hpc-run") : reportError("hpc-run", status);
}
