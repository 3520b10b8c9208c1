// Sums over ranks of what 16-bit factors multiply to move in 16 bits: each rank rounds its term of the sum first. docs/numerics.md says
// which sums those are; partition makes the roundings, and --verify allows for them.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Origin.h"

namespace hpc::nn {

/// Whether ranks that hold terms of an op's result may round them to bf16: it is an activation or the gradient of one, the product of a
/// weight in bf16 with an f32 result. Not to f16, whose range a term may leave; no gradient of a weight is such a product.
bool mayRoundTerms(Operation *op, const Origins &origins);

/// Marks a narrowing cast of a partial value: it rounds terms, so its result is partial, too.
void setRoundsTerms(CastOp cast);
bool roundsTerms(CastOp cast);

} // namespace hpc::nn
