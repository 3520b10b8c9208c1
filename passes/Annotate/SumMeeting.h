// Whether a sum over what is cut is added to another such sum before anything needs it: then one all-reduce serves both.
// Finds what hpc-collect-partials puts together, so the two have to agree.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// Whether `value`, were it a sum over what is cut, meets the result of one of `sums`.
bool meetsSum(Value value, const llvm::DenseSet<Operation *> &sums);

} // namespace hpc
