// Ops that draw random numbers: dropout, an element by its place in the whole tensor.
#include "compiler/Interpreter/Evaluators.h"
#include "runtime/base/Philox.h"

namespace hpc::interpreter {

/// A step scalar is a whole number, whatever type holds it.
static uint64_t wholeNumber(const Tensor &scalar) {
  return uint64_t(scalar.isFloat() ? convertToInteger(DType::I64, scalar.floats[0]) : scalar.ints[0]);
}

static Results evaluateDropout(nn::DropoutOp op, Operands operands) {
  const Tensor &x = *operands[0];
  Tensor result = emptyLike(op.getResult());
  SmallVector<int64_t> strides(x.shape.size(), 1);
  for (size_t dim = x.shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * op.getWholeShape()[dim];
  // Along a dim whose positions are given, an index is looked up.
  SmallVector<int64_t> consecutive = strides, indices(strides.size(), 0);
  const Tensor *positions = nullptr;
  int64_t start = 0, along = 0;
  for (auto [number, offset] : llvm::enumerate(operands.drop_front(3))) {
    const size_t dim = size_t((*op.getOffsetDims())[number]);
    if (offset->shape.empty()) {
      start += offset->ints[0] * strides[dim];
      continue;
    }
    positions = offset;
    along = strides[dim];
    consecutive[dim] = 0;
    indices[dim] = 1;
  }
  const double rate = op.getRate().convertToDouble(), scale = philox::dropoutScale(rate);
  const uint32_t threshold = philox::dropoutThreshold(rate);
  const philox::DropoutStream stream{wholeNumber(*operands[2]), wholeNumber(*operands[1]), uint32_t(op.getSite())};
  forEachElement<2>(x.shape, {consecutive, indices}, {start, 0}, [&](int64_t i, const std::array<int64_t, 2> &at) {
    const int64_t position = at[0] + (positions ? positions->ints[size_t(at[1])] * along : 0);
    result.floats[size_t(i)] = !stream.drops()                                    ? x.floats[size_t(i)]
                               : stream.word(uint64_t(position)) < threshold ? 0
                                                                                : x.floats[size_t(i)] * scale;
  });
  return one(std::move(result));
}

void addRandom(Evaluators &evaluators) { evaluators.add<nn::DropoutOp>(evaluateDropout); }

} // namespace hpc::interpreter
