// Reads flags by their names in the table.
#include "tools/running/RunFlags.h"

namespace hpc {

RunFlags readRunFlags(const Arguments &arguments) {
  RunFlags flags;
  flags.weights = arguments.text("weights");
  flags.followLinks = arguments.has("follow-links");
  if (arguments.knows("lr"))
    flags.training = readTrainFlags(arguments);
  flags.trace = arguments.text("trace");
  flags.poison = arguments.has("poison");
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
  // A debugger that may stop a process may stop a step.
  flags.processes.stallTimeout = flags.processes.peerTimeout > 0 || arguments.has("stall-timeout") ? *arguments.real("stall-timeout") : 0;
  flags.processes.deterministic = arguments.has("deterministic");
  flags.start = readStartFlags(arguments);
  return flags;
}

Status checkRunFlags(const Arguments &arguments, const RunFlags &flags) {
  auto usage = [](const std::string &message) { return Status::error(ErrorKind::Usage, message); };
  for (const Flag *one : arguments.given(group::gpus))
    if (flags.backend != "cuda")
      return usage(one->dashed() + " says how GPUs are used: add --backend=cuda");
  if (arguments.has("threads") && flags.backend != "host")
    return usage("--threads says how many cores a rank of the host uses: leave it out with --backend=" + flags.backend);
  if (arguments.has("no-tiles") && flags.backend != "host")
    return usage("--no-tiles is about the host's products: leave it out with --backend=" + flags.backend);
  if (arguments.has("peer-timeout") && flags.processes.launch == "none")
    return usage("--peer-timeout does not go with --launch=none, where this process runs alone; leave one of them out");
  return checkStartFlags(arguments, flags.start);
}

} // namespace hpc
