// From the IR after `kernels` to the plan's structs: every op becomes an instruction or an alias, every value a buffer.
// Instructions stand in the order of the ops, and offsets are left open; `schedule` and `place` follow.
#pragma once

#include "compiler/MLIR.h"
#include "passes/NotedValue.h"
#include "runtime/base/Status.h"

namespace hpc {

struct LowerOptions {
  std::string modelName;        ///< for people
  std::string planFolder = "."; ///< weight files below it are named relative to it, all others absolutely
};

struct Lowered {
  plan::Plan plan;
  std::vector<NotedValue> noted; ///< by stage, then program, then the instruction after which each was seen
  std::vector<Value> values;     ///< of the module that was lowered, for each of `noted`: the type says dtype, box and sharding
};

/// Lowers @main. Errors are what a plan cannot hold.
Expected<Lowered> lowerToPlan(ModuleOp module, const LowerOptions &options);

} // namespace hpc
