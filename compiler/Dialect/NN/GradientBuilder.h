// What a rule of a gradient (<Family>Gradients.cpp) is written with: the gradients of the op's results, and arithmetic
// that leaves out what a literal 0 or 1 makes trivial.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "llvm/ADT/BitVector.h"

namespace hpc {

/// The one number that all elements are, looked up through views; NaN where that is not known.
double splatOf(Value value);

class GradientBuilder {
public:
  /// `cotangents`: one per result, null where nothing flows back. `wanted`: operands whose gradient is asked for.
  GradientBuilder(OpBuilder &builder, Operation *op, ArrayRef<Value> cotangents, llvm::BitVector wanted,
                  Location loc);

  /// For definitions, which are written with the same arithmetic: no gradients, ops at `loc`.
  GradientBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  OpBuilder &builder;
  const Location loc;

  /// Of a result; null where nothing flows back to it.
  Value cotangent(unsigned result = 0) const { return cotangents[result]; }
  bool wants(unsigned operand) const { return wanted.test(operand); }
  /// `gradient` broadcasts the operand, which it is summed down to; it is converted to the operand's element type. Given
  /// several times (an op may read one value twice), it is the sum. Null gives nothing.
  void give(unsigned operand, Value gradient);
  /// What was given for an operand; null if nothing.
  Value given(unsigned operand) const { return gradients[operand]; }

  // Elementwise, with NumPy's broadcasting.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value select(Value condition, Value a, Value b);
  Value compare(nn::ComparePredicate predicate, Value a, Value b);
  Value cast(Value value, Type elementType);
  template <typename Op> Value unary(Value value) { return Op::create(builder, loc, value); }
  Value square(Value value) { return mul(value, value); }

  /// A scalar of `like`'s element type.
  Value number(Value like, double value);
  Value scaled(Value value, double factor) { return mul(value, number(value, factor)); }
  Value shifted(Value value, double summand) { return add(value, number(value, summand)); }
  /// 1 - value.
  Value complement(Value value) { return sub(number(value, 1), value); }
  Value zero(Value like) { return number(like, 0); }

  // Views and sums.
  Value reshape(Value value, ArrayRef<int64_t> shape);
  Value transpose(Value value, ArrayRef<int64_t> permutation);
  Value broadcast(Value value, ArrayRef<int64_t> shape);
  /// Reduced dims stay, with size 1.
  Value reduce(ReduceKind kind, Value value, ArrayRef<int64_t> axes);
  Value sum(Value value, ArrayRef<int64_t> axes) { return reduce(ReduceKind::Sum, value, axes); }
  /// Along the last dim, by one division: the mean of equal numbers is that number, which centers them to 0. The count
  /// is the dim's size here: the true one, since definitions are of global shapes or whole dims. Of 16 bits sum and
  /// quotient are f32's: f16 may hold a mean and not the sum.
  Value meanOfLast(Value value);
  /// Summed over what NumPy's rules broadcast from `shape`.
  Value sumTo(Value value, ArrayRef<int64_t> shape);
  /// `low` zeros before and `high` after each dim.
  Value padWithZeros(Value value, ArrayRef<int64_t> low, ArrayRef<int64_t> high);
  Value slice(Value value, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> sizes);
  Value concat(ArrayRef<Value> parts, int64_t axis);
  Value matmul(Value lhs, Value rhs, bool transposeLhs, bool transposeRhs, Type elementType);
  /// 0, 1, ... along `dim` of `shape`, elements of `elementType`.
  Value iota(ArrayRef<int64_t> shape, int64_t dim, Type elementType);

private:
  SmallVector<Value> cotangents, gradients;
  SmallVector<Type> operandTypes;
  llvm::BitVector wanted;
};

} // namespace hpc
