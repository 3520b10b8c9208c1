// Gradients of ops that move elements: they go back to where their elements came from, and are summed where one was
// read more than once.
#include "compiler/Dialect/NN/GradientBuilder.h"

namespace hpc::nn {

void ReshapeOp::buildGradients(GradientBuilder &b) { b.give(0, b.reshape(b.cotangent(), shapeOf(getOperand()))); }

void TransposeOp::buildGradients(GradientBuilder &b) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[size_t(from)] = int64_t(to);
  b.give(0, b.transpose(b.cotangent(), inverse));
}

void BroadcastOp::buildGradients(GradientBuilder &b) { b.give(0, b.cotangent()); }

/// Zeros stand between elements that `step` parts: [.., n, 1] padded to [.., n, step] is [.., n * step].
static Value spread(GradientBuilder &b, Value value, size_t dim, int64_t step) {
  SmallVector<int64_t> shape(shapeOf(value));
  SmallVector<int64_t> apart = shape, none(shape.size() + 1, 0), high = none;
  apart.insert(apart.begin() + dim + 1, 1);
  high[dim + 1] = step - 1;
  value = b.padWithZeros(b.reshape(value, apart), none, high);
  shape[dim] *= step;
  return b.reshape(value, shape);
}

/// One of few equal parts of one dim, as of fused q, k and v: between zeros as a concat, which cuts of the part pass and
/// which joins the other parts' into one (GradientBuilder::add). Null where it is none.
static Value betweenZeros(GradientBuilder &b, SliceOp op) {
  constexpr int64_t mostParts = 8;
  ArrayRef<int64_t> from = shapeOf(op.getOperand()), sizes = shapeOf(op.getResult());
  int64_t axis = -1;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (op.getSteps()[dim] != 1 || (axis >= 0 && from[dim] != sizes[dim]))
      return {};
    if (from[dim] != sizes[dim])
      axis = int64_t(dim);
  }
  int64_t size = axis < 0 ? 0 : sizes[size_t(axis)];
  if (size == 0 || from[size_t(axis)] % size != 0 || op.getStarts()[size_t(axis)] % size != 0 ||
      from[size_t(axis)] / size > mostParts)
    return {};
  SmallVector<Value> parts(size_t(from[size_t(axis)] / size), b.broadcast(b.zero(b.cotangent()), sizes));
  parts[size_t(op.getStarts()[size_t(axis)] / size)] = b.cotangent();
  return b.concat(parts, axis);
}

void SliceOp::buildGradients(GradientBuilder &b) {
  Value g = b.cotangent();
  ArrayRef<int64_t> from = shapeOf(getOperand());
  if (Value parts = betweenZeros(b, *this))
    return b.give(0, parts);
  SmallVector<int64_t> sizes(shapeOf(g)), low(from.size(), 0), high(from.size(), 0), zeros(from.size(), 0);
  if (llvm::is_contained(sizes, 0)) // nothing was read
    return b.give(0, b.broadcast(b.number(getOperand(), 0), from));
  for (size_t dim = 0; dim < from.size(); ++dim) {
    int64_t start = getStarts()[dim], step = getSteps()[dim], size = sizes[dim];
    if (step < 0) { // the same elements, first to last
      SmallVector<int64_t> starts = zeros, steps(from.size(), 1);
      starts[dim] = size - 1;
      steps[dim] = -1;
      g = b.slice(g, starts, steps, sizes);
      start += (size - 1) * step;
      step = -step;
    }
    if (step > 1 && size > 1) {
      g = spread(b, g, dim, step);
      sizes[dim] = (size - 1) * step + 1;
      g = b.slice(g, zeros, SmallVector<int64_t>(from.size(), 1), sizes);
    }
    low[dim] = start;
    high[dim] = from[dim] - start - sizes[dim];
  }
  b.give(0, b.padWithZeros(g, low, high));
}

void ConcatOp::buildGradients(GradientBuilder &b) {
  size_t rank = shapeOf(getResult()).size();
  SmallVector<int64_t> starts(rank, 0), steps(rank, 1);
  for (auto [index, operand] : llvm::enumerate(getOperands())) {
    if (b.wants(unsigned(index)))
      b.give(unsigned(index), b.slice(b.cotangent(), starts, steps, shapeOf(operand)));
    starts[getAxis()] += shapeOf(operand)[getAxis()];
  }
}

void PadOp::buildGradients(GradientBuilder &b) {
  SmallVector<int64_t> steps(getLow().size(), 1);
  b.give(0, b.slice(b.cotangent(), getLow(), steps, shapeOf(getOperand())));
}

// ---- window -------------------------------------------------------------------------------------

/// The most rows that are added one by one: each is an op.
static constexpr int64_t mostRows = 16;

/// One dim, where K / stride rows are added up as they lie, each moved on: element k = j * stride + r of window o falls on
/// (o + j) * stride + r, so that [stride, O] of every j are summed and turned over in the end.
static Value addRows(GradientBuilder &b, Value x, int64_t stride, int64_t dilation) {
  SmallVector<int64_t> lead(shapeOf(x));
  int64_t inner = lead.pop_back_val(), count = lead.pop_back_val(), size = lead.pop_back_val();
  const size_t rank = lead.size();
  const int64_t rows = llvm::divideCeil(size, stride), step = stride > 1 ? 1 : dilation, length = count + (rows - 1) * step;
  auto shaped = [&](std::initializer_list<int64_t> rest) {
    SmallVector<int64_t> shape = lead;
    shape.append(rest);
    return shape;
  };
  SmallVector<int64_t> none(rank + 3, 0), ones(rank + 3, 1), high = none;
  high[rank] = rows * stride - size;
  x = b.reshape(b.padWithZeros(x, none, high), shaped({rows, stride * count, inner}));
  Value sum;
  for (int64_t row = 0; row < rows; ++row) {
    SmallVector<int64_t> start(rank + 3, 0), low = none, after = none;
    start[rank] = row;
    Value part = b.slice(x, start, ones, shaped({1, stride * count, inner}));
    low[rank + 1] = row * step;
    after[rank + 1] = length - count - low[rank + 1];
    part = b.padWithZeros(b.reshape(part, shaped({stride, count, inner})), low, after);
    sum = sum ? b.add(sum, part) : part;
  }
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(rank + 3)));
  std::swap(order[rank], order[rank + 1]);
  return b.reshape(stride > 1 ? b.transpose(sum, order) : sum, shaped({length * stride, inner}));
}

/// One dim: [.., K, O, B] to [.., L, B], where O stands `stride` and K `dilation` apart; what falls together is summed.
/// Rows of K are laid out with zeros behind their elements, each `dilation` longer than the rows that are read back: so
/// row k is found k * dilation further on, and what a row begins with is the zeros of the one before.
///
///     K = 3, dilation 1:   a b 0 0 0          a b 0 0
///                          c d 0 0 0    ->    0 c d 0    (12 of the 15 numbers, in rows of 4)
///                          e f 0 0 0          0 0 e f
static Value overlap(GradientBuilder &b, Value x, int64_t stride, int64_t dilation) {
  SmallVector<int64_t> lead(shapeOf(x));
  int64_t inner = lead.pop_back_val(), count = lead.pop_back_val(), size = lead.pop_back_val();
  size_t rank = lead.size();
  // Narrower types are rounded once, after the sum.
  Type type = tensorType(x).getElementType();
  if ((type.isF32() || type.isF64()) && (stride == 1 || dilation == 1) && int64_t(llvm::divideCeil(size, stride)) <= mostRows)
    return addRows(b, x, stride, dilation);
  auto shaped = [&](std::initializer_list<int64_t> rest) {
    SmallVector<int64_t> shape = lead;
    shape.append(rest);
    return shape;
  };
  if (stride > 1) {
    x = spread(b, x, rank + 1, stride);
    count *= stride;
  }
  if (size > 1) {
    int64_t row = count + (size - 1) * dilation;
    SmallVector<int64_t> none(rank + 3, 0), high = none;
    high[rank + 1] = size * dilation;
    x = b.reshape(b.padWithZeros(x, none, high), shaped({size * (row + dilation), inner}));
    x = b.slice(x, SmallVector<int64_t>(rank + 2, 0), SmallVector<int64_t>(rank + 2, 1), shaped({size * row, inner}));
    x = b.sum(b.reshape(x, shaped({size, row, inner})), {int64_t(rank)});
    count = row;
  }
  return b.reshape(x, shaped({count, inner}));
}

void WindowOp::buildGradients(GradientBuilder &b) {
  ArrayRef<int64_t> from = shapeOf(getOperand()), shape = shapeOf(getResult());
  if (llvm::is_contained(shape, 0))
    return b.give(0, b.broadcast(b.number(getOperand(), 0), from));
  size_t dims = getStrides().size(), leading = from.size() - dims;
  // 1. [lead.., sizes.., counts..] to [lead.., size, count, size, count, ..].
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(leading)));
  for (size_t dim = 0; dim < dims; ++dim)
    order.append({int64_t(leading + dim), int64_t(leading + dims + dim)});
  Value x = b.transpose(b.cotangent(), order);
  // 2. From the last dim to the first: [lead.., outer, size, count, inner] to [lead.., outer, length, inner].
  int64_t inner = 1;
  SmallVector<int64_t> lengths;
  for (size_t dim = dims; dim-- > 0;) {
    int64_t outer = 1;
    for (size_t before = 0; before < dim; ++before)
      outer *= shape[leading + before] * shape[leading + dims + before];
    SmallVector<int64_t> parts(shape.take_front(leading));
    parts.append({outer, shape[leading + dim], shape[leading + dims + dim], inner});
    x = overlap(b, b.reshape(x, parts), getStrides()[dim], getDilations()[dim]);
    lengths.insert(lengths.begin(), shapeOf(x)[leading + 1]);
    inner *= lengths.front();
  }
  // 3. As long as the operand: what no window reaches gets 0, and zeros that strides laid out behind it go.
  SmallVector<int64_t> sizes(from.take_front(leading)), none(from.size(), 0), high = none;
  sizes.append(lengths);
  x = b.reshape(x, sizes);
  for (size_t dim = leading; dim < from.size(); ++dim) {
    high[dim] = std::max<int64_t>(from[dim] - sizes[dim], 0);
    sizes[dim] = std::min(sizes[dim], from[dim]);
  }
  x = b.slice(x, none, SmallVector<int64_t>(from.size(), 1), sizes);
  b.give(0, b.padWithZeros(x, none, high));
}

} // namespace hpc::nn
