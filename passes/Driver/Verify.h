// --verify: proof by running that a compilation kept the model's meaning. Three programs run on the same inputs: the
// imported one serially, the partitioned one of all ranks, both in double precision by the interpreter, and the emitted
// plan with poisoned memory.
#pragma once

#include "compiler/Interpreter/Tensor.h"
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

/// The results of the three comparisons of one run.
struct StepReport {
  double raise = 0, partition = 0, plan = 0; ///< the largest difference, as a part of its bound
  int64_t values = 0, buffers = 0;           ///< that were compared
};

struct VerifySession;

/// The comparisons on given inputs, in the order of the arguments of @main; the session goes on from the states that it has.
Expected<StepReport> verifyStep(const Verification &verification, std::vector<Tensor> inputs, VerifySession &session);

/// A report of what was compared and how close it was, or an error that names the first tensor that differs: ONNX node,
/// rank, index, both values, the bound (of kind Plan: it exits 1, whoever broke it).
Expected<std::string> verifyPlan(const Verification &verification);

} // namespace hpc
