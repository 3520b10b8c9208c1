// hpc-run: runs a plan, its ranks as threads; alone, or as one of several processes that a launcher has started.
// A plan contains machine code: run only plans whose author you trust.
#include "runtime/backend/host/MachineSpeed.h"
#include "runtime/backend/null/Counts.h"
#include "runtime/base/CountText.h"
#include "runtime/base/File.h"
#include "runtime/base/Hash.h"
#include "runtime/base/Npz.h"
#include "runtime/core/CheckpointFiles.h"
#include "runtime/core/Session.h"
#include "runtime/cost/MachineFile.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanStructure.h"
#include "tools/ExitCode.h"
#include "tools/OutputFiles.h"
#include "tools/ShortenedFiles.h"
#include "tools/flags/Arguments.h"
#include "tools/hpc-run/CountReport.h"
#include "tools/hpc-run/Inputs.h"
#include "tools/hpc-run/PredictionReport.h"
#include "tools/hpc-run/Profile.h"
#include "tools/hpc-run/Report.h"
#include "tools/running/OpenSession.h"
#include "tools/running/RunTogether.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <new>
#include <tuple>

using namespace hpc;

namespace {

struct Flags : RunFlags {
  std::string plan, entry, output, machine;
  std::vector<std::string> inputs;
  bool profile = false, json = false;
  int repeat = 0;
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
  if (flags.json && flags.machine.empty())
    return Status::error(ErrorKind::Usage, "--json prints what --machine predicts: add --backend=null --machine, or leave it out");
  if (flags.backend != "null") {
    if (!flags.machine.empty())
      return Status::error(ErrorKind::Usage, "--machine predicts a step without doing it: add --backend=null, or leave --machine out");
    return Status::success();
  }
  if (!flags.inputs.empty() || !flags.output.empty() || !flags.weights.empty() || (!flags.trace.empty() && flags.machine.empty()) ||
      flags.poison || flags.profile || flags.repeat > 0 || flags.training.any())
    return Status::error(ErrorKind::Usage, "--backend=null counts one step without doing it: leave out --input, "
                                           "--output, --weights, --profile, --poison, --repeat, --train, --gradients and, without --machine, --trace");
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

/// --backend=null --machine: what one step takes there.
Status predictPlan(const Flags &flags, const plan::Plan &plan) {
  constexpr size_t mostEvents = 200000; // Perfetto and our own writer take more, slowly
  Expected<cost::Machine> machine = cost::readMachine(flags.machine);
  if (!machine.ok())
    return machine.status().at("--machine");
  if (machine->ranks() > 0 && plan.worldSize() > machine->ranks())
    return Status::error(ErrorKind::Usage, "a plan of " + countText(plan.worldSize(), "rank") + " is more than --machine has: " + machine->name + " is " +
                                               countText(machine->hosts, "host") + " of " + countText(machine->ranksPerHost, "rank") +
                                               "; give a machine with more hosts");
  std::vector<cost::ObservedRun> runs;
  cost::PredictOptions options;
  if (!flags.trace.empty())
    options.observe = [&](const cost::ObservedRun &run) { runs.push_back(run); };
  Expected<cost::Prediction> prediction = cost::predict(plan, *machine, options);
  if (!prediction.ok())
    return prediction.status();
  if (!flags.trace.empty())
    HPC_RETURN_IF_ERROR(writeFile(flags.trace, predictedTrace(plan, runs, mostEvents).json()));
  std::fputs((flags.json ? predictionJson(plan, *machine, *prediction) : describePrediction(plan, *machine, *prediction)).c_str(), stdout);
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

/// A checkpoint may replace the one from which the run continues. A folder of checkpoints has none of these files.
Status checkFiles(const Flags &flags, const plan::Plan &plan) {
  const TrainFlags &training = flags.training;
  std::vector<NamedFile> read = {{"the plan", flags.plan}};
  if (!flags.machine.empty())
    read.push_back(flag("--machine", flags.machine));
  for (auto [name, names] : {std::pair("--data", &training.data), std::pair("--evaluate", &training.evaluate)})
    if (Expected<std::vector<text::DataFiles>> groups = text::dataFilesOf(*names); groups.ok()) // names that are wrong are told when data are opened
      for (const text::DataFiles &group : *groups)
        for (const std::string &path : group.paths)
          read.push_back(flag(name, path));
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
  if (process == 0 && !work.entries.empty() && flags.entry.empty() && !flags.training.any())
    std::fprintf(stderr, "note: the plan has the entries %s; this runs '%s', --entry=NAME another one\n", plan::entryNames(work.plan).c_str(),
                 work.plan.entries[0].name.c_str());
  HPC_RETURN_IF_ERROR(checkFiles(flags, work.plan));
  return checkDestinations(flags, process);
}

Status readData(const Flags &flags, int64_t process, Work &work) {
  std::vector<std::string> notes;
  Status status = flags.training.any() ? openTrainData(flags.training, work.plan, work.entries, work.data, notes) : readArrays(flags, work, notes);
  for (const std::string &note : notes)
    if (process == 0)
      std::fprintf(stderr, "%s\n", note.c_str());
  return status;
}

/// Runs the ranks of this process. `processes` is null where it is alone.
Status runWork(const Flags &flags, Work &work, processes::Processes *processes) {
  const int64_t process = processes ? processes->process : 0;
  const RanksOfProcess ranks = ranksOf(flags, work.plan, processes);
  host::MachineSpeed speed;
  if (flags.profile) {
    Expected<host::MachineSpeed> measured = host::measureSpeed(ranks.own.count * ranks.threads);
    if (!measured.ok())
      return measured.status();
    speed = measured->times(double(ranks.threads));
  }
  Expected<std::unique_ptr<Session>> session = openSession(flags, work.plan, folderOf(flags.plan), ranks, flags.profile, processes);
  if (!session.ok())
    return session.status();

  std::vector<Array> outputs;
  const bool isHome = process == 0;
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
  for (const std::unique_ptr<StepData> *batches : {&work.data.batches, &work.data.heldOut})
    if (*batches)
      inputs = inputs * 31 + (*batches)->fingerprint();
  list.push_back({"inputs", inputs, "give all processes the same --input or --data"});
  addWeightFingerprints(flags, work.plan, folderOf(flags.plan), list);
}

/// `note`: flags that a file gave, printed by the first process. `failed`: the error of the command line.
Status runPlan(Flags flags, const std::string &note, Status failed) {
  const bool isCounted = flags.backend == "null";
  Work work;
  launch::Launch launch = isCounted ? launch::Launch() : launch::detectLaunch(flags.processes.launch, flags.processes.rendezvous, ::getenv);
  if (!note.empty() && launch.process == 0)
    std::fprintf(stderr, "hpc-run: note: %s\n", note.c_str());
  if (!isCounted) {
    if (failed.ok())
      failed = launch.status;
    if (launch.kind != launch::LaunchKind::None)
      return runTogether(launch, flags, failed, [&](int64_t process, Prepared &prepared) {
        HPC_RETURN_IF_ERROR(readPlanOf(flags, process, work));
        prepared.worldSize = work.plan.worldSize();
        prepared.fingerprints = planFingerprints(flags);
        return Status::success();
      }, [&](processes::Processes &processes, Prepared &prepared) {
        HPC_RETURN_IF_ERROR(findLoad(flags, &processes).status()); // first: all processes exchange texts in it
        HPC_RETURN_IF_ERROR(readData(flags, processes.process, work));
        addDataFingerprints(flags, work, prepared.fingerprints);
        return Status::success();
      }, [&](processes::Processes &processes) { return runWork(flags, work, &processes); });
  }
  HPC_RETURN_IF_ERROR(failed);
  HPC_RETURN_IF_ERROR(readPlanOf(flags, 0, work));
  if (isCounted)
    return flags.machine.empty() ? countPlan(work.entry()) : predictPlan(flags, work.entry());
  HPC_RETURN_IF_ERROR(findLoad(flags, nullptr).status());
  HPC_RETURN_IF_ERROR(readData(flags, 0, work));
  return runWork(flags, work, nullptr);
}

Flags readFlags(const Arguments &arguments) {
  Flags flags;
  static_cast<RunFlags &>(flags) = readRunFlags(arguments);
  flags.training.train = arguments.has("train");
  flags.training.save = arguments.text("save");
  flags.training.load = arguments.text("load");
  flags.training.gradients = arguments.text("gradients");
  flags.plan = arguments.text("plan");
  flags.entry = arguments.text("entry");
  flags.inputs = arguments.all("input");
  flags.output = arguments.text("output");
  flags.profile = arguments.has("profile");
  flags.machine = arguments.text("machine");
  flags.json = arguments.has("json");
  flags.repeat = int(arguments.whole("repeat").value_or(0));
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
  if (arguments.has("machine") && flags.machine.empty())
    return usage("--machine names none; leave it out, or give a name or a file");
  if (flags.profile && flags.backend == "cuda")
    return usage("--profile times what the host does, which with --backend=cuda is to enqueue: leave it out, and see --trace "
                 "with --sync-each-op");
  HPC_RETURN_IF_ERROR(checkRunFlags(arguments, flags));
  for (const Flag *one : arguments.given(group::processes))
    if (flags.backend == "null")
      return usage(one->dashed() + " is about processes that run a plan, and --backend=null runs none: leave it out");
  return Status::success();
}

/// As the parent of --processes; the exit code. A checkpoint that was there before is of another run.
int startAll(const Flags &flags, const std::vector<std::string> &words) {
  namespace fs = std::filesystem;
  const fs::file_time_type begin = fs::file_time_type::clock::now();
  return startProcesses({flags.start, words, [&]() -> Continuation {
    const std::string &folder = flags.training.checkpoints.folder;
    const std::vector<int64_t> steps = folder.empty() ? std::vector<int64_t>() : checkpointSteps(folder);
    std::error_code none;
    if (steps.empty() || fs::last_write_time(checkpointPath(folder, steps.back()), none) < begin)
      return {words, ""};
    std::vector<std::string> next = withoutFlag(words, "load");
    next.push_back("--load=" + folder);
    return {next, checkpointPath(folder, steps.back())};
  }});
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
  if (status.ok() && startsProcesses(flags.start))
    return startAll(flags, {argv, argv + argc});
  try {
    status = runPlan(flags, arguments.note, status);
  } catch (const std::bad_alloc &) {
    status = outOfMemory();
  }
  return status.ok() ? finish("hpc-run") : reportError("hpc-run", status);
}
