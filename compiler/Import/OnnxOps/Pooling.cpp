// Pools: a reduction over the offsets of a window (nn.window). Padding holds what the reduction ignores.
#include "compiler/Import/OnnxOps/Slopes.h"
#include "compiler/Import/OnnxOps/Window.h"
#include "runtime/base/CountText.h"
#include "runtime/base/NumberText.h"
#include "runtime/base/IntegerMath.h"
#include "runtime/plan/CheckedMath.h"

#include <limits>

namespace hpc::onnx {
namespace {

/// The dims that hold the offsets of windows over [n, c, ..].
SmallVector<int64_t> offsetDims(size_t rank) { return llvm::to_vector(llvm::seq<int64_t>(2, int64_t(2 + rank))); }

std::optional<SlidingWindow> readPool(NodeImport &n, Value x) {
  if (n.b.rank(x) < 3) {
    n.b.fail("its input has " + countText(n.b.rank(x), "dim") + "; batch, channels and one spatial dim are needed");
    return std::nullopt;
  }
  return readWindow(n, spatialDims(n, x));
}

/// Windows [n, c, sizes.., counts..] reduced to [n, c, counts..].
Value reduceWindows(NodeImport &n, ReduceKind kind, Value windows, const SlidingWindow &window) {
  Value reduced = n.b.reduce(kind, windows, offsetDims(window.rank()));
  SmallVector<int64_t> shape = n.b.shape(windows);
  return n.b.reshape(reduced, joined({{shape[0], shape[1]}, window.counts}));
}

// ---- max ----------------------------------------------------------------------------------------

/// The lowest value of a type, which no maximum takes.
Tensor lowest(DType dtype) {
  Tensor value(dtype, {});
  value.setNumber(0, -std::numeric_limits<double>::infinity()); // integers saturate
  return value;
}

/// Maxima whose gradient goes to the first of equal elements, as that of PyTorch's pools; seen through the view of their dims.
Value firstOfEquals(Value maxima) {
  Value value = maxima;
  if (auto view = value.getDefiningOp<nn::ReshapeOp>())
    value = view.getOperand();
  if (auto op = value.getDefiningOp<nn::ReduceOp>())
    op.setFirst(true);
  return maxima;
}

/// 0, step, 2 * step, .. along one dim of `dims`.
Value numbersAlong(NodeImport &n, size_t dim, size_t dims, int64_t size, int64_t step) {
  SmallVector<int64_t> shape(dims, 1);
  shape[dim] = size;
  Tensor numbers(DType::I64, shape);
  for (int64_t i = 0; i < size; ++i)
    numbers.ints[size_t(i)] = i * step;
  return n.b.known(std::move(numbers));
}

/// Whether offset and position of a window name an element of the input, along one dim: [n, c, sizes.., counts..] with
/// two dims of more than one element. Null where all do.
Value insideAlong(NodeImport &n, const SlidingWindow &window, size_t dim, int64_t size) {
  if (window.low[dim] == 0 && window.highOf(dim, size) == 0)
    return {};
  size_t rank = window.rank();
  SmallVector<int64_t> shape(2 + 2 * rank, 1);
  shape[2 + dim] = window.sizes[dim];
  shape[2 + rank + dim] = window.counts[dim];
  Tensor inside(DType::Bool, shape);
  for (int64_t k = 0; k < window.sizes[dim]; ++k)
    for (int64_t at = 0; at < window.counts[dim]; ++at) {
      int64_t position = at * window.strides[dim] + k * window.dilations[dim] - window.low[dim];
      inside.ints[size_t(k * window.counts[dim] + at)] = position >= 0 && position < size;
    }
  return n.b.known(std::move(inside));
}

/// The place of a window's maximum in the input, flattened; the first of equals in row-major order. It is computed from
/// positions, so that it is right on a part of the batch or of the channels as well.
Value positionsOfMax(NodeImport &n, Value windows, Value maxima, const SlidingWindow &window) {
  SmallVector<int64_t> shape = n.b.shape(n.in(0)), spatial = spatialDims(n, n.in(0));
  size_t rank = spatial.size();
  int64_t all = elementCount(shape);
  for (auto [size, count] : llvm::zip_equal(window.sizes, window.counts))
    all = std::max(all, plan::multiplySizes(size, count));
  if (Status status = checkFolded(all); !status.ok())
    return n.unsupported(status.message());
  // 1. The first offset of each window that holds the maximum (or a NaN), never one in the padding.
  SmallVector<int64_t> ones(rank, 1), aligned = joined({{shape[0], shape[1]}, ones, window.counts});
  Value isMax = n.b.compare(nn::ComparePredicate::eq, windows, n.b.reshape(maxima, aligned));
  if (isFloat(n.b.dtype(windows)))
    isMax = n.b.binary<nn::OrOp>(isMax, n.b.unary<nn::IsNanOp>(windows));
  for (size_t dim = 0; dim < rank; ++dim)
    if (Value inside = insideAlong(n, window, dim, spatial[dim]))
      isMax = n.b.binary<nn::AndOp>(isMax, inside);
  int64_t numOffsets = elementCount(window.sizes);
  Value offsets = n.b.reshape(numbersAlong(n, 0, 1, numOffsets, 1), joined({{1, 1}, window.sizes, ones}));
  Value none = n.b.scalar(double(numOffsets - 1), DType::I64); // for a window in the padding alone
  Value first = reduceWindows(n, ReduceKind::Min, n.b.select(isMax, offsets, none), window);
  // 2. Its coordinates, dim by dim from the last.
  bool isColumnMajor = n.integer("storage_order", 0);
  int64_t plane = elementCount(spatial);
  Value position =
      n.b.add(numbersAlong(n, 0, 2 + rank, shape[0], shape[1] * plane), numbersAlong(n, 1, 2 + rank, shape[1], plane));
  for (size_t dim = rank; dim-- > 0;) {
    ArrayRef<int64_t> faster(spatial);
    faster = isColumnMajor ? faster.take_front(dim) : faster.drop_front(dim + 1);
    int64_t step = elementCount(faster);
    Value size = n.b.scalar(double(window.sizes[dim]), DType::I64), offset = n.b.binary<nn::ModOp>(first, size);
    first = n.b.div(first, size);
    Value start = n.b.sub(numbersAlong(n, 2 + dim, 2 + rank, window.counts[dim], window.strides[dim] * step),
                          n.b.scalar(double(window.low[dim] * step), DType::I64));
    Value moved = n.b.mul(offset, n.b.scalar(double(window.dilations[dim] * step), DType::I64));
    position = n.b.add(n.b.add(moved, start), position);
  }
  return position;
}

Results maxPool(NodeImport &n) {
  Value x = n.in(0);
  std::optional<SlidingWindow> window = readPool(n, x);
  if (!window)
    return {x};
  Value windows = slideWindow(n, x, *window, lowest(n.b.dtype(x)));
  Value maxima = firstOfEquals(reduceWindows(n, ReduceKind::Max, windows, *window));
  if (!n.wantsOutput(1) || !n.b.status().ok())
    return {maxima};
  return {maxima, positionsOfMax(n, windows, maxima, *window)};
}

// ---- average ------------------------------------------------------------------------------------

/// How many elements of each window count, [counts..]: those of the input, and those of its padding if `withPadding`.
/// Elements beyond the padding, where the number of windows was rounded up, never count.
Tensor countElements(const SlidingWindow &window, ArrayRef<int64_t> spatial, bool withPadding, DType dtype) {
  Tensor counts(dtype, window.counts);
  for (int64_t i = 0; i < counts.size(); ++i)
    counts.setNumber(i, 1);
  int64_t inner = elementCount(window.counts);
  for (size_t dim = 0; dim < window.rank(); ++dim) {
    inner /= std::max<int64_t>(window.counts[dim], 1);
    int64_t begin = withPadding ? -window.low[dim] : 0, end = spatial[dim] + (withPadding ? window.high[dim] : 0);
    // Offsets k of a window at `first` with begin <= first + k * dilation < end.
    auto offsetsBelow = [&](int64_t first, int64_t bound) {
      return first >= bound ? 0 : std::min(window.sizes[dim], ceilDiv(bound - first, window.dilations[dim]));
    };
    SmallVector<int64_t> inside;
    for (int64_t at = 0; at < window.counts[dim]; ++at) {
      int64_t first = at * window.strides[dim] - window.low[dim];
      inside.push_back(offsetsBelow(first, end) - offsetsBelow(first, begin));
    }
    for (int64_t i = 0; i < counts.size(); ++i)
      counts.setNumber(i, counts.number(i) * double(inside[size_t(i / inner % window.counts[dim])]));
  }
  return counts;
}

Results averagePool(NodeImport &n) {
  Value x = n.in(0);
  std::optional<SlidingWindow> window = readPool(n, x);
  if (!window)
    return {x};
  if (Status status = checkFolded(elementCount(window->counts)); !status.ok())
    return {n.unsupported(status.message())};
  Value wide = n.b.widened(x);
  DType type = n.b.dtype(wide);
  Value sum = reduceWindows(n, ReduceKind::Sum, slideWindow(n, wide, *window, Tensor(type, {})), *window);
  if (!n.b.status().ok())
    return {sum};
  Tensor counts = countElements(*window, spatialDims(n, x), n.integer("count_include_pad", 0), type);
  return {n.b.cast(n.b.div(sum, n.b.known(std::move(counts))), n.b.dtype(x))};
}

// ---- norms --------------------------------------------------------------------------------------

/// (sum |x|^p)^(1/p)
template <typename Reduce> Value pNorm(NodeImport &n, Value x, double p, Reduce sum) {
  if (p == 1)
    return sum(n.b.unary<nn::AbsOp>(x));
  if (p == 2)
    return lengthOf(n, sum(n.b.mul(x, x)));
  Value powers = n.b.binary<nn::PowOp>(n.b.unary<nn::AbsOp>(x), n.b.scalar(p, x));
  return rootOfPowers(n, sum(powers), [&](Value sum) { return n.b.binary<nn::PowOp>(sum, n.b.scalar(1 / p, x)); });
}

/// p is a whole number from opset 2 on.
double exponentOf(NodeImport &n) {
  double p = n.version < 2 ? n.number("p", 2) : double(n.integer("p", 2));
  if (!(p > 0))
    n.b.fail("its p is " + numberText(p) + "; a norm needs p above 0");
  return p;
}

Results lpPool(NodeImport &n) {
  Value x = n.in(0);
  double p = exponentOf(n);
  std::optional<SlidingWindow> window = readPool(n, x);
  if (!window || !n.b.status().ok())
    return {x};
  Value windows = slideWindow(n, x, *window, Tensor(n.b.dtype(x), {}));
  return {pNorm(n, windows, p, [&](Value value) { return reduceWindows(n, ReduceKind::Sum, value, *window); })};
}

// ---- over all of a plane ------------------------------------------------------------------------

SmallVector<int64_t> planeDims(NodeImport &n, Value x) {
  if (n.b.rank(x) < 2)
    n.b.fail("its input has " + countText(n.b.rank(x), "dim") + "; batch and channels are needed");
  return llvm::to_vector(llvm::seq<int64_t>(2, std::max<int64_t>(2, n.b.rank(x))));
}

Results globalMax(NodeImport &n) { return {firstOfEquals(n.b.reduce(ReduceKind::Max, n.in(0), planeDims(n, n.in(0))))}; }

Results globalAverage(NodeImport &n) {
  Value x = n.in(0);
  return {n.b.mean(x, planeDims(n, x))};
}

Results globalLp(NodeImport &n) {
  Value x = n.in(0);
  double p = exponentOf(n);
  SmallVector<int64_t> dims = planeDims(n, x);
  return {pNorm(n, x, p, [&](Value value) { return n.b.reduce(ReduceKind::Sum, value, dims); })};
}

const OnnxOp poolingTable[] = {
    {"MaxPool", 1, maxPool},         {"AveragePool", 1, averagePool},         {"LpPool", 1, inF32<lpPool>},
    {"GlobalMaxPool", 1, globalMax}, {"GlobalAveragePool", 1, globalAverage}, {"GlobalLpPool", 1, inF32<globalLp>},
};

} // namespace

ArrayRef<OnnxOp> poolingOps() { return poolingTable; }

} // namespace hpc::onnx
