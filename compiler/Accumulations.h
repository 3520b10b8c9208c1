// Sums over micro-batches that end where their terms are made: an op that can add to the accumulator is told to, and no
// second tensor of the sum's size is written.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// The accumulation that is, through views, the only reader of a value; or null.
dist::AccumulateOp accumulationOf(Value value);

/// On nn.fused, from hpc-write-in-place to lower: the time axis over which its only result is added up. Its code does that
/// itself: where the coordinate is 0 it writes the result's buffer, else it adds to what is there.
constexpr const char *addsOverAttrName = "hpc.adds_over";
inline StringAttr addsOver(nn::FusedOp region) { return region->getAttrOfType<StringAttr>(addsOverAttrName); }

} // namespace hpc
