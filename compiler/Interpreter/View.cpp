// Ops that move elements: reshape, transpose, broadcast, slice, window, concat, pad. Also the strided reading that other
// families use. An op's result has the shape of its type, so the same code serves global shapes and local boxes.
#include "compiler/Interpreter/Evaluators.h"

namespace hpc::interpreter {

SmallVector<int64_t> broadcastStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<int64_t> own = stridesOf(from), strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    if (from[from.size() - 1 - i] != 1)
      strides[to.size() - 1 - i] = own[from.size() - 1 - i];
  return strides;
}

void readStrided(const Tensor &source, int64_t start, SmallVector<int64_t> strides, Tensor &result) {
  auto copy = [&](const auto &from, auto &to) {
    forEachElement<1>(result.shape, {strides}, {start},
                      [&](int64_t i, const std::array<int64_t, 1> &at) { to[i] = from[at[0]]; });
  };
  if (source.isFloat())
    copy(source.floats, result.floats);
  else
    copy(source.ints, result.ints);
}

/// Writes `source` into `result` at `start` along `strides`.
static void writeStrided(const Tensor &source, int64_t start, SmallVector<int64_t> strides, Tensor &result) {
  auto copy = [&](const auto &from, auto &to) {
    forEachElement<1>(source.shape, {strides}, {start},
                      [&](int64_t i, const std::array<int64_t, 1> &at) { to[at[0]] = from[i]; });
  };
  if (source.isFloat())
    copy(source.floats, result.floats);
  else
    copy(source.ints, result.ints);
}

static Results evaluateReshape(nn::ReshapeOp op, Operands operands) {
  Tensor result = *operands[0];
  result.shape = op.getType().getShape().vec();
  return one(std::move(result));
}

static Results evaluateTranspose(nn::TransposeOp op, Operands operands) {
  Tensor result = emptyLike(op.getResult());
  SmallVector<int64_t> own = stridesOf(operands[0]->shape), strides;
  for (int64_t dim : op.getPermutation())
    strides.push_back(own[dim]);
  readStrided(*operands[0], 0, strides, result);
  return one(std::move(result));
}

static Results evaluateBroadcast(nn::BroadcastOp op, Operands operands) {
  Tensor result = emptyLike(op.getResult());
  readStrided(*operands[0], 0, broadcastStrides(operands[0]->shape, result.shape), result);
  return one(std::move(result));
}

static Results evaluateSlice(nn::SliceOp op, Operands operands) {
  Tensor result = emptyLike(op.getResult());
  SmallVector<int64_t> strides = stridesOf(operands[0]->shape);
  int64_t start = 0;
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    start += op.getStarts()[dim] * strides[dim];
    strides[dim] *= op.getSteps()[dim];
  }
  readStrided(*operands[0], start, strides, result);
  return one(std::move(result));
}

static Results evaluateConcat(nn::ConcatOp op, Operands operands) {
  Tensor result = emptyLike(op.getResult());
  SmallVector<int64_t> strides = stridesOf(result.shape);
  int64_t axis = op.getAxis(), start = 0;
  for (const Tensor *operand : operands) {
    writeStrided(*operand, start, strides, result);
    start += operand->shape[axis] * strides[axis];
  }
  return one(std::move(result));
}

static Results evaluatePad(nn::PadOp op, Operands operands) {
  const Tensor &operand = *operands[0];
  Tensor result = emptyLike(op.getResult());
  if (auto real = dyn_cast<FloatAttr>(op.getValue()))
    std::fill(result.floats.begin(), result.floats.end(), real.getValueAsDouble());
  else if (auto whole = dyn_cast<IntegerAttr>(op.getValue()))
    std::fill(result.ints.begin(), result.ints.end(),
              whole.getType().isUnsignedInteger() || whole.getType().isInteger(1)
                  ? int64_t(whole.getValue().getZExtValue())
                  : whole.getValue().getSExtValue());
  else
    return Status::error(ErrorKind::Model, describeOp(op) + ": `value` must be a number");
  // Negative amounts crop: the part of the operand that stays begins at max(0, -low) and lands at max(0, low).
  SmallVector<int64_t> from = stridesOf(operand.shape), to = stridesOf(result.shape), kept;
  int64_t readStart = 0, writeStart = 0;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    int64_t low = op.getLow()[dim], high = op.getHigh()[dim];
    kept.push_back(std::max<int64_t>(0, operand.shape[dim] + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0)));
    readStart += std::max<int64_t>(0, -low) * from[dim];
    writeStart += std::max<int64_t>(0, low) * to[dim];
  }
  Tensor middle(operand.dtype, kept);
  readStrided(operand, readStart, from, middle);
  writeStrided(middle, writeStart, to, result);
  return one(std::move(result));
}

static Results evaluateWindow(nn::WindowOp op, Operands operands) {
  Tensor result = emptyLike(op.getResult());
  SmallVector<int64_t> own = stridesOf(operands[0]->shape);
  size_t leading = own.size() - op.getStrides().size();
  SmallVector<int64_t> strides(own.begin(), own.begin() + leading);
  for (ArrayRef<int64_t> steps : {op.getDilations(), op.getStrides()}) // offsets, then positions
    for (auto [dim, step] : llvm::enumerate(steps))
      strides.push_back(own[leading + dim] * step);
  readStrided(*operands[0], 0, strides, result);
  return one(std::move(result));
}

void addViews(Evaluators &evaluators) {
  evaluators.add<nn::ReshapeOp>(evaluateReshape);
  evaluators.add<nn::TransposeOp>(evaluateTranspose);
  evaluators.add<nn::BroadcastOp>(evaluateBroadcast);
  evaluators.add<nn::SliceOp>(evaluateSlice);
  evaluators.add<nn::WindowOp>(evaluateWindow);
  evaluators.add<nn::ConcatOp>(evaluateConcat);
  evaluators.add<nn::PadOp>(evaluatePad);
}

} // namespace hpc::interpreter
