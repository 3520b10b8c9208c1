// Sums over micro-batches that end where their terms are made: an op that can add to the accumulator is told to, and no
// second tensor of the sum's size is written.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// The accumulation that is, through views, the only reader of a value; or null.
dist::AccumulateOp accumulationOf(Value value);

} // namespace hpc
