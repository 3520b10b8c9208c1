// A new backend is chosen here.
#include "tools/running/OpenSession.h"

#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/processes/ProcessBackend.h"
#include "runtime/backend/processes/ProcessControlPlane.h"
#include "runtime/base/Cores.h"
#include "runtime/base/MessageText.h"
#include "tools/ExitCode.h"

namespace hpc {

Expected<std::unique_ptr<Backend>> openBackend(const RunFlags &flags, processes::Processes *processes) {
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

RanksOfProcess ranksOf(const RunFlags &flags, const plan::Plan &plan, processes::Processes *processes) {
  RanksOfProcess ranks{{0, plan.worldSize()}, flags.threads};
  if (processes) {
    const launch::Introduction &mine = processes->control->mine();
    ranks.own = {mine.firstRank, mine.ranks};
  }
  if (flags.threads > 0)
    return ranks;
  const int64_t cores = flags.backend == "cuda" ? 1 : processes ? processes->coresOfEach() : availableCores();
  const int64_t first = ranks.own.first, last = first + ranks.own.count - 1;
  const bool hasStages = first / plan.ranksPerStage() != last / plan.ranksPerStage();
  ranks.threads = std::max<int64_t>(1, cores * (hasStages ? 2 : 1) / ranks.own.count);
  return ranks;
}

Expected<bool> findLoad(RunFlags &flags, processes::Processes *processes) {
  CheckpointReader reader;
  if (processes) {
    reader.process = processes->process;
    reader.processes = int64_t(processes->control->introductions().size());
    reader.exchange = [processes](const std::string &mine) { return processes->control->exchange(mine); };
  }
  std::vector<std::string> notes;
  Expected<std::optional<std::string>> found = findCheckpoint(flags.training.load, reader, notes);
  HPC_RETURN_IF_ERROR(found.status());
  for (const std::string &note : notes)
    if (reader.process == 0)
      printNote(note);
  if (*found)
    flags.training.load = **found;
  return found->has_value();
}

Expected<std::unique_ptr<Session>> openSession(const RunFlags &flags, const plan::Plan &plan, const std::string &planFolder,
                                               const RanksOfProcess &ranks, bool traces, processes::Processes *processes) {
  SessionOptions options;
  options.planFolder = planFolder;
  options.weightsReplacement = flags.weights;
  options.checkpoint = flags.training.load;
  options.followLinks = flags.followLinks;
  options.poison = flags.poison;
  options.trace = traces || !flags.trace.empty();
  options.ranks = ranks.own;
  options.threads = ranks.threads;
  Expected<std::unique_ptr<Backend>> backend = openBackend(flags, processes);
  if (!backend.ok())
    return backend.status();
  Expected<std::unique_ptr<Session>> session = Session::create(plan, std::move(*backend), options);
  if (session.ok() && (!processes || processes->process == 0))
    for (const std::string &note : (*session)->stored().notes())
      std::fprintf(stderr, "note: %s\n", messageText(note).c_str());
  return session;
}

void addWeightFingerprints(const RunFlags &flags, const plan::Plan &plan, const std::string &planFolder, std::vector<launch::Fingerprint> &list) {
  Expected<Weights> weights = Weights::open(plan, {planFolder, flags.weights, flags.training.load, flags.followLinks});
  list.push_back({"weights", weights.ok() ? weights->fingerprint() : 0, "give all processes the same --weights"});
  list.push_back({"content in its checkpoint", weights.ok() ? weights->checkpointFingerprint() : 0, "give all processes the same --load (or --resume)"});
}

} // namespace hpc
