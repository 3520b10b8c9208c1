// From the IR after `kernels` to the plan's structs: every op becomes an instruction or an alias, every value a buffer.
// Offsets are left open; `place` assigns them.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

struct LowerOptions {
  std::string modelName;        ///< for people
  std::string planFolder = "."; ///< weight files below it are named relative to it, all others absolutely
};

/// Where a value of the program lies once an instruction is done: for --verify.
struct LoweredValue {
  int64_t id = 0; ///< hpc.id of the op that makes it
  int64_t stage = 0, program = 0, instruction = 0;
  plan::Ref place;
  Value value; ///< of the module that was lowered; its type says dtype, box and sharding
};

struct Lowered {
  plan::Plan plan;
  std::vector<LoweredValue> values; ///< by stage, then instruction
};

/// Lowers @main. Errors are what a plan cannot hold.
Expected<Lowered> lowerToPlan(ModuleOp module, const LowerOptions &options);

} // namespace hpc
