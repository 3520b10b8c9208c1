// Sums over micro-batches that end where their terms are made: an op that can add to the accumulator is told to, and no
// second tensor of the sum's size is written.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// On an nn.add of a sum and a product that nothing else reads: the product adds to the sum, in whose buffer the result is.
constexpr const char *addsInProductAttrName = "hpc.adds_in_product";
inline bool addsInProduct(Operation *op) { return op->hasAttr(addsInProductAttrName); }
/// The sum that a product adds to, or null.
Value summandOf(nn::MatmulOp product);

/// The accumulation that is, through views, the only reader of a value; or null.
dist::AccumulateOp accumulationOf(Value value);

} // namespace hpc
