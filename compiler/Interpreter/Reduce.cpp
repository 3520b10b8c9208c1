// Reductions: sums and products accumulate in double (integers wrap) and round once, unless asked otherwise; max and min propagate NaN.
// An empty reduction gives the identity: 0, 1, the lowest or the highest value of the type.
#include "compiler/Interpreter/Evaluators.h"

#include <cmath>

namespace hpc::interpreter {

namespace {
double combine(nn::ReduceKind kind, double a, double b) {
  switch (kind) {
  case nn::ReduceKind::sum:
    return a + b;
  case nn::ReduceKind::prod:
    return a * b;
  case nn::ReduceKind::max:
    return std::isnan(a) || (a == b ? !std::signbit(a) : a > b) ? a : b; // -0 is less than +0
  case nn::ReduceKind::min:
    return std::isnan(a) || (a == b ? std::signbit(a) : a < b) ? a : b;
  }
  llvm_unreachable("a reduction without a meaning");
}

int64_t combine(nn::ReduceKind kind, int64_t a, int64_t b, bool isNatural) {
  bool isLess = isNatural ? uint64_t(a) < uint64_t(b) : a < b;
  switch (kind) {
  case nn::ReduceKind::sum:
    return int64_t(uint64_t(a) + uint64_t(b));
  case nn::ReduceKind::prod:
    return int64_t(uint64_t(a) * uint64_t(b));
  case nn::ReduceKind::max:
    return isLess ? b : a;
  case nn::ReduceKind::min:
    return isLess ? a : b;
  }
  llvm_unreachable("a reduction without a meaning");
}

/// The identity as a double; convertToInteger saturates it to the integer type's own.
double identity(nn::ReduceKind kind) {
  return kind == nn::ReduceKind::sum    ? 0
         : kind == nn::ReduceKind::prod ? 1
         : kind == nn::ReduceKind::max  ? -INFINITY
                                        : INFINITY;
}
} // namespace

static Results evaluateReduce(nn::ReduceOp op, Operands operands, const EvalOptions &options) {
  const Tensor &operand = *operands[0];
  Tensor result = emptyLike(op.getResult());
  nn::ReduceKind kind = op.getKind();
  for (int64_t i = 0; i < result.size(); ++i)
    result.setNumber(i, identity(kind));
  if (result.dtype == DType::Bool && kind == nn::ReduceKind::max)
    std::fill(result.ints.begin(), result.ints.end(), 0); // -inf as a bool is true
  bool inSingle = sumsInSingle(options, result.dtype);
  bool isNatural = operand.dtype == DType::U64;
  forEachElement<1>(operand.shape, {broadcastStrides(result.shape, operand.shape)}, {0},
                    [&](int64_t i, const std::array<int64_t, 1> &at) {
                      if (result.isFloat()) {
                        double sum = combine(kind, result.floats[at[0]], operand.floats[i]);
                        result.floats[at[0]] = inSingle ? float(sum) : sum;
                      } else
                        result.ints[at[0]] = combine(kind, result.ints[at[0]], operand.ints[i], isNatural);
                    });
  return one(std::move(result));
}

void addReductions(Evaluators &evaluators) { evaluators.add<nn::ReduceOp>(evaluateReduce); }

} // namespace hpc::interpreter
