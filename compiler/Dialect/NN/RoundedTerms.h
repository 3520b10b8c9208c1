// Some sums over ranks move in 16 bits: each rank rounds its own term before the terms are added. docs/numerics.md lists these sums; partition
// makes the roundings, and --verify allows for them.
#pragma once

#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// Whether ranks that hold terms of an op's result may round them to bf16: the op is a product with a bf16 weight and an f32 result, so
/// the result is an activation or the gradient of one. A term may leave the range of f16, so nothing is rounded to f16.
bool mayRoundTerms(Operation *op, const Dependences &dependences);

constexpr const char *roundsTermsAttrName = "nn.rounds_terms"; ///< of a cast

/// Marks a narrowing cast of a partial value: it rounds terms, so its result is partial, too.
void setRoundsTerms(CastOp cast);
bool roundsTerms(CastOp cast);

} // namespace hpc::nn
