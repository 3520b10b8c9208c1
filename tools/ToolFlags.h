// The flags of all three tools, so that each can name the one that has a flag. test/tools/tool-flags.test compares the table
// with what --help prints.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace hpc {

struct ToolFlags {
  std::string tool, purpose;
  std::vector<std::string_view> flags; ///< sorted, without dashes

  bool has(std::string_view flag) const { return std::find(flags.begin(), flags.end(), flag) != flags.end(); }
};

inline const std::vector<ToolFlags> &toolFlags() {
  static const std::vector<ToolFlags> all = {
      {"hpc-opt",
       "compiles models",
       {"batch-dim", "betas", "clip", "compile-to", "const", "decay", "deterministic", "devices", "dim", "dp", "dropout", "dtype", "dump-phases",
        "epsilon", "evaluate", "explain", "follow-links", "freeze", "inference", "kernel-cache", "list-params", "loss", "memory", "micro-batches", "momentum",
        "nesterov", "no-weights", "onnx-configuration", "optimizer", "pp", "pp-chunks", "pp-schedule", "pp-split", "recompute", "remarks", "schedule",
        "spec", "target", "tp", "train", "verify", "weight-decay", "weights", "write-onnx-annotations", "write-spec", "zero"}},
      {"hpc-run",
       "runs plans",
       {"allow-lr-jump", "backend", "data", "deterministic", "entry", "epilogues", "eval-every", "evaluate", "follow-links", "gradients", "input", "launch", "load", "loss-scale", "lr", "lr-power", "lr-schedule",
        "lr-steps", "metrics", "no-cuda-graph", "no-cudnn", "no-tiles", "output", "peer-timeout", "poison", "profile", "ranks-per-gpu", "rendezvous",
        "repeat", "save", "seed", "steps", "sync-each-op", "tf32", "threads", "trace", "train", "warmup", "weights"}},
      {"hpc-plan", "prints and checks plans", {"bandwidth", "check", "json", "kernels", "ptx"}},
  };
  return all;
}

} // namespace hpc
