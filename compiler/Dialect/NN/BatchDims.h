// Which dim of each input is the batch: what micro-batches and data parallelism cut.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// Per argument of a function on tensors of fixed sizes; nullopt where it has none, as step scalars, states whose next value has none and what
/// is whole of an input. `wanted` is the
/// symbolic name of the dim, or "": the name "batch", or where there is none the names that start so; a multiple of one counts,
/// another expression ("batch + 1") does not. Where no dim has a name that fits, and none is wanted, dim 0 of all inputs that agree on
/// its size with the first. Error: `wanted` names no dim.
FailureOr<SmallVector<std::optional<int64_t>>> findBatchDims(func::FuncOp function, StringRef wanted);

/// The end of an error about the batch: which dims are taken for it where nobody names one, and what to do; "" where none is.
std::string guessedBatchText(func::FuncOp function);

} // namespace hpc::nn
