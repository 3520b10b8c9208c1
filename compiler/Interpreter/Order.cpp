// The order of elements along a dim: NaN above all numbers, equal elements as they stand.
#include "compiler/Interpreter/Evaluators.h"

#include <cmath>

namespace hpc::interpreter {

namespace {
bool isBelow(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }
} // namespace

static Results evaluateSortPosition(nn::SortPositionOp op, Operands operands) {
  const Tensor &operand = *operands[0];
  Tensor result = emptyLike(op.getResult());
  ArrayRef<int64_t> shape = operand.shape;
  int64_t axis = op.getAxis(), size = shape[size_t(axis)], inner = elementCount(shape.drop_front(axis + 1));
  auto isLess = [&](int64_t a, int64_t b) {
    if (operand.isFloat())
      return isBelow(operand.floats[a], operand.floats[b]);
    return operand.dtype == DType::U64 ? uint64_t(operand.ints[a]) < uint64_t(operand.ints[b])
                                       : operand.ints[a] < operand.ints[b];
  };
  auto isBefore = [&](int64_t a, int64_t b) { // equal elements as they stand
    bool less = isLess(a, b), more = isLess(b, a);
    return less == more ? a < b : less != op.getDescending();
  };
  std::vector<int64_t> row(size);
  for (int64_t first = 0; first < operand.size(); ++first) {
    if (first / inner % size != 0)
      continue;
    for (int64_t i = 0; i < size; ++i)
      row[i] = first + i * inner;
    std::sort(row.begin(), row.end(), isBefore);
    for (int64_t position = 0; position < size; ++position)
      result.ints[row[position]] = position;
  }
  return one(std::move(result));
}

void addOrders(Evaluators &evaluators) { evaluators.add<nn::SortPositionOp>(evaluateSortPosition); }

} // namespace hpc::interpreter
