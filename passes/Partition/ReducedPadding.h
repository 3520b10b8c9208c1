// The padding that an op reads: that of factors which are cut unevenly and reduced. hpc-fill-tails and its verifier
// share it.
#pragma once

#include "compiler/Dialect/Dist/FactorShardings.h"

namespace hpc {

struct TailFill {
  std::vector<int64_t> dims; ///< of the operand
  TypedAttr value;           ///< identity of the reduction: 0, or the lowest or highest value of the element type
};

/// The value that the padding of an operand must hold; none if the op does not read it.
std::optional<TailFill> tailFillOf(const dist::OpSharding &sharding, unsigned operand, Type elementType,
                                   const dist::Mesh &mesh);
/// Whether the padding is `fill` already: inputs, and parameters that nothing writes, are zero there.
bool hasPadding(Value value, TypedAttr fill);

} // namespace hpc
