// hpc-train: from a serial model and data to a trained model. Compiles the plan and then trains as hpc-run does, in a folder of its own.
#include "runtime/base/File.h"
#include "runtime/base/FileKind.h"
#include "runtime/base/Hash.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/train/CheckpointFolder.h"
#include "runtime/train/Evaluation.h"
#include "tools/ExitCode.h"
#include "tools/ShortenedFiles.h"
#include "tools/hpc-train/RunFolder.h"
#include "tools/hpc-train/TrainedExport.h"
#include "tools/hpc-train/TrainingPlan.h"
#include "tools/running/OpenSession.h"
#include "tools/running/ParentProcess.h"
#include "tools/running/RunTogether.h"

#include <new>

using namespace hpc;

namespace {

struct Command {
  const Arguments &arguments;
  RunFlags flags;
  RunFolder run;
  bool resumes = false;
  plan::Plan plan;
  std::vector<plan::Plan> entries;
  TrainData data;
  std::optional<RunLock> lock; ///< of the first process; the parent of --processes has it for all

  explicit Command(const Arguments &arguments) : arguments(arguments), flags(readRunFlags(arguments)) {
    flags.training.train = true;
    flags.training.text.shuffle = !arguments.has("no-shuffle");
    flags.processes.deterministic = arguments.has("deterministic");
    resumes = arguments.has("resume");
    run.path = resumes ? arguments.text("resume") : arguments.has("run") ? arguments.text("run") : defaultRunFolder(arguments.text("model"));
    while (run.path.size() > 1 && run.path.back() == '/')
      run.path.pop_back();
    flags.training.metrics = run.metrics();
    flags.training.report.tensorBoard = run.path;
    flags.training.report.fallback = "paddlefleetx";
    flags.training.report.summarizes = true;
    flags.training.checkpoints.folder = run.checkpoints();
    if (resumes) {
      flags.training.load = run.checkpoints();
      flags.training.loadFlag = "--resume=" + run.path;
    }
  }

  bool takesPlan() const {
    Expected<MappedFile> file = MappedFile::open(arguments.text("model"));
    return file.ok() && fileKindOf(file->text()) == FileKind::Plan;
  }

  Status check() const {
    if (arguments.has("run") && resumes)
      return Status::error(ErrorKind::Usage, "--run begins a run and --resume goes on with one; leave one of them out");
    HPC_RETURN_IF_ERROR(checkRunFlags(arguments, flags));
    HPC_RETURN_IF_ERROR(checkTrainFlags(arguments, flags.training));
    if (takesPlan() && arguments.has("export") && arguments.text("export") != "none")
      return Status::error(ErrorKind::Usage, "--export=" + arguments.text("export") + " writes the model anew, and " + arguments.text("model") +
                                                 " is a plan, which is no model; leave it out, and take the newest checkpoint to hpc-opt --export");
    if (takesPlan())
      for (const Flag *flag : arguments.given())
        if (!(flag->tools & HpcRun) && flag->group != group::run && flag->group != group::general)
          return Status::error(ErrorKind::Usage, flag->dashed() + " shapes a plan, and " + arguments.text("model") +
                                                     " is one already; leave it out, or give the .onnx model");
    return Status::success();
  }

  /// The flags that begin this run anew, or go on with it. Those of a call stay out: it may go on below another launcher.
  std::string configText() const {
    return arguments.configText({"config", "resume", "run", "print-config", "processes", "nnodes", "node-rank", "rendezvous", "launch", "log-dir",
                                 "max-restarts"});
  }

  /// That the folder is as the run needs it.
  Status checkFolder() {
    if (hasParent())
      return Status::success();
    HPC_RETURN_IF_ERROR(resumes ? run.checkRun() : run.checkNew());
    return resumes ? takeFolder() : Status::success(); // a new one is made when the run can begin
  }

  Status takeFolder() {
    if (hasParent() || lock)
      return Status::success();
    Expected<RunLock> taken = run.take();
    if (taken.ok())
      lock.emplace(std::move(*taken));
    return taken.status();
  }

  /// As the parent of --processes; the exit code.
  int start(std::vector<std::string> words) {
    Status status = checkFolder();
    if (status.ok())
      status = takeFolder();
    if (!status.ok())
      return reportError(toolName(), status);
    if (!resumes && !arguments.has("run"))
      words.push_back("--run=" + run.path);
    if (flags.start.logs.empty())
      flags.start.logs = run.logs();
    const int code = startProcesses({flags.start, words, [&]() -> Continuation {
      const std::vector<int64_t> steps = checkpointSteps(run.checkpoints());
      if (steps.empty())
        return {words, ""};
      std::vector<std::string> next = withoutFlag(words, "run");
      if (!resumes)
        next.push_back("--resume=" + run.path);
      return {next, checkpointPath(run.checkpoints(), steps.back())};
    }});
    if (code != 0 && !resumes)
      run.clear();
    return code;
  }

  /// Before the processes meet.
  Status before(int64_t process, Prepared &prepared) {
    if (process == 0)
      HPC_RETURN_IF_ERROR(checkFolder());
    if (takesPlan()) {
      HPC_RETURN_IF_ERROR(readPlan());
      prepared.worldSize = plan.worldSize();
    } else {
      Expected<int64_t> ranks = ranksOfPlan(arguments);
      HPC_RETURN_IF_ERROR(ranks.status());
      prepared.worldSize = *ranks;
    }
    const std::string config = configText();
    prepared.fingerprints = {{"flags", hashBytes(config.data(), int64_t(config.size())), "give all processes the same flags"}};
    return Status::success();
  }

  Status readPlan() {
    Expected<plan::Plan> read = plan::readPlan(arguments.text("model"));
    HPC_RETURN_IF_ERROR(read.status());
    plan = std::move(*read);
    return Status::success();
  }

  /// From where the plan names files of weights.
  std::string planFolder() const { return takesPlan() ? folderOf(arguments.text("model")) : run.planFolder(); }

  /// By this process, or by the first one for all.
  Status makePlan(processes::Processes *processes) {
    if (takesPlan())
      return plan.stages.empty() ? readPlan() : Status::success();
    std::string bytes;
    if (!processes || processes->process == 0) {
      Expected<plan::Plan> made = makeTrainingPlan(arguments, run.planFolder(), flags.training.evaluates());
      if (processes && !made.ok() && made.status().message().empty()) // printed, but not by the others
        return Status::error(made.status().kind(), "the model cannot be compiled, for a reason that this process has printed");
      HPC_RETURN_IF_ERROR(made.status());
      plan = std::move(*made);
      if (processes)
        bytes = plan::serializePlan(plan);
    }
    if (!processes)
      return Status::success();
    Expected<std::vector<std::string>> all = processes->control->exchange(bytes);
    HPC_RETURN_IF_ERROR(all.status());
    if (processes->process == 0)
      return Status::success();
    Expected<plan::Plan> sent = plan::parsePlan(all->front(), "the plan of process 0");
    HPC_RETURN_IF_ERROR(sent.status());
    plan = std::move(*sent);
    return Status::success();
  }

  /// The plan and the data.
  Status prepare(processes::Processes *processes) {
    Expected<bool> hasCheckpoint = findLoad(flags, processes);
    HPC_RETURN_IF_ERROR(hasCheckpoint.status());
    if (!*hasCheckpoint)
      flags.training.load.clear(); // the run ended before its first checkpoint
    HPC_RETURN_IF_ERROR(makePlan(processes));
    HPC_RETURN_IF_ERROR(plan::checkPlan(plan));
    for (size_t entry = 0; entry < plan.entries.size(); ++entry)
      entries.push_back(plan::planOf(plan, entry));
    std::vector<std::string> notes;
    Status status = openTrainData(flags.training, plan, entries, data, notes);
    for (const std::string &note : notes)
      if (!processes || processes->process == 0)
        std::fprintf(stderr, "%s\n", note.c_str());
    return status;
  }

  Status train(processes::Processes *processes) {
    const bool isHome = !processes || processes->process == 0;
    const RanksOfProcess ranks = ranksOf(flags, plan, processes);
    if (std::optional<double> &peak = flags.training.report.peak; isHome && !peak && flags.backend == "host") {
      Expected<double> measured = measurePeak(plan, ranks.own.count, ranks.threads);
      HPC_RETURN_IF_ERROR(measured.status());
      peak = *measured;
    }
    Expected<std::unique_ptr<Session>> session = openSession(flags, plan, planFolder(), ranks, /*traces=*/false, processes);
    HPC_RETURN_IF_ERROR(session.status());
    TrainHooks hooks;
    hooks.begins = [&] {
      HPC_RETURN_IF_ERROR(takeFolder());
      return run.begin(configText(), plan);
    };
    hooks.ends = [&] { return exportTrained(); };
    HPC_RETURN_IF_ERROR(trainPlan(flags.training, **session, data, isHome, hooks));
    if (isHome)
      printNote("the run is in " + run.path);
    return Status::success();
  }

  /// --export, of the newest checkpoint.
  Status exportTrained() const {
    const std::string kind = arguments.text("export");
    if (kind == "none" || takesPlan())
      return Status::success();
    const TrainedExport from{arguments.text("model"), latestCheckpointPath(run.checkpoints()), flags.weights, arguments.text("tokenizer"), flags.followLinks,
                             flags.training.checkpoints.shardBytes};
    return kind == "hf" ? exportTrainedFolder(from, run.huggingFace()) : exportTrainedOnnx(from, run.trained());
  }

  Status go(Status failed) {
    launch::Launch launch = launch::detectLaunch(flags.processes.launch, flags.processes.rendezvous, ::getenv);
    if (!arguments.note.empty() && launch.process == 0)
      printNote(arguments.note);
    if (failed.ok())
      failed = launch.status;
    if (launch.kind != launch::LaunchKind::None)
      return runTogether(
          launch, flags, failed, [&](int64_t process, Prepared &prepared) { return before(process, prepared); },
          [&](processes::Processes &processes, Prepared &prepared) {
            HPC_RETURN_IF_ERROR(prepare(&processes));
            const std::string bytes = plan::serializePlan(plan);
            prepared.fingerprints.push_back({"plan", hashBytes(bytes.data(), int64_t(bytes.size())), "give all processes one file"});
            const uint64_t heldOut = data.heldOut ? data.heldOut->fingerprint() : 0;
            prepared.fingerprints.push_back({"inputs", data.batches->fingerprint() * 31 + heldOut, "give all processes the same --data and --evaluate"});
            addWeightFingerprints(flags, plan, planFolder(), prepared.fingerprints);
            return Status::success();
          },
          [&](processes::Processes &processes) { return train(&processes); });
    HPC_RETURN_IF_ERROR(failed);
    HPC_RETURN_IF_ERROR(checkFolder());
    HPC_RETURN_IF_ERROR(prepare(nullptr));
    return train(nullptr);
  }
};

} // namespace

int main(int argc, char **argv) {
  toolName() = "hpc-train";
  reportShortenedFiles("hpc-train");
  Arguments arguments(HpcTrain);
  arguments.weakestConfig = [](const Arguments &given) {
    const RunFolder run{given.text("resume")};
    return given.has("resume") && run.checkRun().ok() ? run.config() : std::string();
  };
  Status status = arguments.parse(argc, argv);
  if (arguments.has("resume"))
    if (Status there = RunFolder{arguments.text("resume")}.checkRun(); !there.ok())
      status = there; // it is why other flags are missing
  if (!arguments.page.empty()) {
    std::fputs(arguments.page.c_str(), stdout);
    return finish("hpc-train");
  }
  if (status.ok() && arguments.has("print-config")) {
    std::fputs(arguments.configText({"config", "print-config"}).c_str(), stdout);
    return finish("hpc-train");
  }
  // After an error of the command line, backend and launcher still decide which processes have to receive it.
  Command command(arguments);
  if (status.ok())
    status = command.check();
  if (status.ok() && startsProcesses(command.flags.start))
    return command.start({argv, argv + argc});
  try {
    status = command.go(status);
  } catch (const std::bad_alloc &) {
    status = outOfMemory();
  }
  if (!status.ok() && status.message().empty()) // it has been printed as a diagnostic
    return status.exitCode();
  return status.ok() ? finish("hpc-train") : reportError("hpc-train", status);
}
