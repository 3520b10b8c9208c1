// Constants of one number, as the matchers read and write them.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// The number that every element of a constant is, seen through views; nothing for any other value.
std::optional<double> scalarOf(Value value);

/// Whether an exporter's constant of this element type means `expected`: equal up to the rounding of the type.
/// (Exporters round to float32 whatever the graph's type is, so float64 is compared with the same tolerance.)
bool isNear(double number, double expected, Type elementType);

/// A constant of rank 0 with the element type of `like`.
Value makeScalar(OpBuilder &builder, Location loc, Value like, double number);

/// Matches a binary op with one constant number, in either order: the other operand and the number.
struct WithScalar {
  Value other;
  double number = 0;
};
template <typename Op> std::optional<WithScalar> matchWithScalar(Value value) {
  auto op = value.getDefiningOp<Op>();
  if (!op)
    return std::nullopt;
  for (unsigned side : {1u, 0u})
    if (std::optional<double> number = scalarOf(op->getOperand(side)))
      return WithScalar{op->getOperand(1 - side), *number};
  return std::nullopt;
}

} // namespace hpc
