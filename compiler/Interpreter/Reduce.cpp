// Reductions: sums and products accumulate in double (integers wrap) and round once, unless asked otherwise; max and min propagate NaN.
// An empty reduction gives the identity: 0, 1, the lowest or the highest value of the type.
#include "compiler/Interpreter/Evaluators.h"

#include <cmath>

namespace hpc::interpreter {

double combine(ReduceKind kind, double a, double b) {
  switch (kind) {
  case ReduceKind::Sum:
    return a + b;
  case ReduceKind::Prod:
    return a * b;
  case ReduceKind::Max:
    return std::isnan(a) || (a == b ? !std::signbit(a) : a > b) ? a : b;
  case ReduceKind::Min:
    return std::isnan(a) || (a == b ? std::signbit(a) : a < b) ? a : b;
  }
  llvm_unreachable("a reduction without a meaning");
}

int64_t combine(ReduceKind kind, int64_t a, int64_t b, DType dtype) {
  bool isLess = dtype == DType::U64 ? uint64_t(a) < uint64_t(b) : a < b;
  switch (kind) {
  case ReduceKind::Sum:
    return wrapTo(dtype, int64_t(uint64_t(a) + uint64_t(b)));
  case ReduceKind::Prod:
    return wrapTo(dtype, int64_t(uint64_t(a) * uint64_t(b)));
  case ReduceKind::Max:
    return isLess ? b : a;
  case ReduceKind::Min:
    return isLess ? a : b;
  }
  llvm_unreachable("a reduction without a meaning");
}

/// The identity as a double; convertToInteger saturates it to the integer type's own.
static double identity(ReduceKind kind) {
  return kind == ReduceKind::Sum ? 0 : kind == ReduceKind::Prod ? 1 : kind == ReduceKind::Max ? -INFINITY : INFINITY;
}

static Results evaluateReduce(nn::ReduceOp op, Operands operands, const EvalOptions &options) {
  const Tensor &operand = *operands[0];
  Tensor result = emptyLike(op.getResult());
  ReduceKind kind = op.getKind();
  for (int64_t i = 0; i < result.size(); ++i)
    result.setNumber(i, identity(kind));
  if (result.dtype == DType::Bool && kind == ReduceKind::Max)
    std::fill(result.ints.begin(), result.ints.end(), 0); // -inf as a bool is true
  bool inSingle = sumsInSingle(options, result.dtype);
  forEachElement<1>(operand.shape, {broadcastStrides(result.shape, operand.shape)}, {0},
                    [&](int64_t i, const std::array<int64_t, 1> &at) {
                      if (result.isFloat()) {
                        double sum = combine(kind, result.floats[at[0]], operand.floats[i]);
                        result.floats[at[0]] = inSingle ? float(sum) : sum;
                      } else
                        result.ints[at[0]] = combine(kind, result.ints[at[0]], operand.ints[i], result.dtype);
                    });
  return one(std::move(result));
}

void addReductions(Evaluators &evaluators) { evaluators.add<nn::ReduceOp>(evaluateReduce); }

} // namespace hpc::interpreter
