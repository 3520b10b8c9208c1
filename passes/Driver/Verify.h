// --verify: proof by running that a compilation kept the model's meaning. Three programs run on the same inputs: the
// imported one serially, the partitioned one of all ranks, both in double precision by the interpreter, and the emitted
// plan with poisoned memory.
#pragma once

#include "compiler/MLIR.h"
#include "passes/Lower/Lower.h"
#include "runtime/base/Status.h"

namespace hpc {

struct Verification {
  ModuleOp serial;     ///< as imported
  ModuleOp propagated; ///< the same after propagate
  ModuleOp compiled;   ///< after kernels
  Lowered &lowered;
  std::string planFolder;
  std::string inputs; ///< an .npz, or "" for made-up inputs
};

/// A report of what was compared and how close it was, or an error that names the first tensor that differs: ONNX node,
/// rank, index, both values, the bound (of kind Plan: it exits 1, whoever broke it).
Expected<std::string> verifyPlan(const Verification &verification);

} // namespace hpc
