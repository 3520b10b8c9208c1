// Runs a module serially and partitioned on a mesh in the interpreter, in double precision with poisoned padding, and
// compares.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

#include <string>

namespace hpc::test {

/// Pipelines, as mlir-opt takes them.
constexpr const char *propagatePipeline = "hpc-propagate-shardings,hpc-verify-propagated";
constexpr const char *partitionPipeline =
    "hpc-decompose-sharded,hpc-collect-partials,hpc-insert-reshards,hpc-narrow-reshards,hpc-fill-tails,hpc-localize,hpc-verify-partitioned";

/// A context with the dialects loaded and the passes registered; diagnostics are collected.
struct Compiler {
  Compiler();
  OwningOpRef<ModuleOp> parse(const std::string &text);
  bool run(ModuleOp module, const std::string &pipeline);
  MLIRContext context;
  std::string diagnostics;
};

/// Empty, or what differs: the first value by hpc.id where the programs disagree, the outputs, or the diagnostics of a
/// pass.
std::string compare(const std::string &module, const std::string &mesh);

/// Runs both programs with random parameters and inputs ("" = equal). `partitioned` may have been changed since it was
/// made.
std::string compareRuns(ModuleOp serial, ModuleOp partitioned, const dist::Mesh &mesh);

/// Modules of a file, separated by `// -----`.
std::vector<std::string> readModules(const std::string &path);

} // namespace hpc::test
