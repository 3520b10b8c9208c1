// Numbers beside the tensors of an update: constants, types, norms.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::train {

/// A constant of rank 0 and a float type.
Value constant(OpBuilder &builder, Location location, double value, Type type);
/// `value` cast to that element type; itself where it has the type.
Value castTo(OpBuilder &builder, Location location, Value value, Type type);
/// The element type in which a parameter of the type `type` is updated: the same, or f32 where it is narrower.
Type updateType(Type type);
/// The sum of the squares of all elements: rank 0, of `type`, in which it is computed.
Value sumOfSquares(OpBuilder &builder, Location location, Value value, Type type);

} // namespace hpc::train
