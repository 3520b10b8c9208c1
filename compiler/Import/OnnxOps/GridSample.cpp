// GridSample: interpolation at positions that are data. All elements around all positions are one gather, over the
// planes as rows of channels, so that batch and positions are looked up alike in one, two or three dims.
#include "compiler/Import/OnnxOps/Window.h"
#include "runtime/plan/CheckedMath.h"

namespace hpc::onnx {
namespace {

enum class Padding { Zeros, Border, Reflection };

struct Sampling {
  int64_t taps = 2; ///< elements of each dim around a position: 1 nearest, 2 linear, 4 cubic
  Padding padding = Padding::Zeros;
  bool alignsCorners = false;
};

std::optional<Sampling> readSampling(NodeImport &n) {
  Sampling how;
  std::string mode = n.text("mode", n.version < 20 ? "bilinear" : "linear"), padding = n.text("padding_mode", "zeros");
  how.taps = mode == "nearest"                        ? 1
             : mode == "linear" || mode == "bilinear" ? 2
             : mode == "cubic" || mode == "bicubic"   ? 4
                                                      : 0;
  how.padding = padding == "border" ? Padding::Border : padding == "reflection" ? Padding::Reflection : Padding::Zeros;
  how.alignsCorners = n.integer("align_corners", 0);
  if (how.taps != 0 && (how.padding != Padding::Zeros || padding == "zeros"))
    return how;
  n.b.fail("its mode is '" + mode + "' and its padding_mode '" + padding +
           "'; linear, nearest or cubic and zeros, border or reflection are possible");
  return std::nullopt;
}

/// -1 .. 1 as a position in a dim of `size` elements.
Value denormalized(NodeImport &n, Value x, int64_t size, bool alignsCorners) {
  auto number = [&](double value) { return n.b.scalar(value, x); };
  Value above = n.b.add(x, number(1));
  if (alignsCorners)
    return n.b.mul(n.b.div(above, number(2)), number(double(size - 1)));
  return n.b.div(n.b.sub(n.b.mul(above, number(double(size))), number(1)), number(2));
}

Value clamped(NodeImport &n, Value at, int64_t size) {
  Value above = n.b.binary<nn::MaxOp>(at, n.b.scalar(0, at));
  return n.b.binary<nn::MinOp>(above, n.b.scalar(double(size - 1), at));
}

/// Reflects positions at the borders: a triangle wave.
Value reflected(NodeImport &n, Value at, int64_t size, bool alignsCorners) {
  auto number = [&](double value) { return n.b.scalar(value, at); };
  double low = alignsCorners ? 0 : -0.5, range = alignsCorners ? double(size - 1) : double(size);
  if (range == 0)
    return clamped(n, at, size);
  Value along = n.b.unary<nn::AbsOp>(n.b.sub(at, number(low)));
  Value phase = n.b.binary<nn::FmodOp>(along, number(2 * range));
  return n.b.add(n.b.binary<nn::MinOp>(phase, n.b.sub(number(2 * range), phase)), number(low));
}

/// Moves the position, then each of its taps, inside by the padding's rule; zero padding concerns the taps alone. A
/// position within the border's own half pixel stays where it is.
Value broughtInside(NodeImport &n, Value at, int64_t size, const Sampling &how) {
  if (how.padding == Padding::Reflection)
    return reflected(n, at, size, how.alignsCorners);
  if (how.padding == Padding::Zeros)
    return at;
  double half = how.alignsCorners ? 0 : 0.5;
  Value isBelow = n.b.compare(nn::ComparePredicate::lt, at, n.b.scalar(-half, at));
  Value isAbove = n.b.compare(nn::ComparePredicate::gt, at, n.b.scalar(double(size - 1) + half, at));
  return n.b.select(n.b.binary<nn::OrOp>(isBelow, isAbove), clamped(n, at, size), at);
}

/// Weights of the taps at `ratio` (0 .. 1) after the second of them (linear: the first); [.., taps].
Value tapWeights(NodeImport &n, Value ratio, Value offsets, int64_t taps) {
  auto number = [&](double value) { return n.b.scalar(value, ratio); };
  Value x = n.b.unary<nn::AbsOp>(n.b.sub(offsets, ratio)); // the distance
  if (taps == 2)
    return n.b.sub(number(1), x);
  // Keys 1981 with a = -0.75: near taps are within 1, far ones within 2.
  double a = -0.75;
  auto horner = [&](std::initializer_list<double> coefficients) {
    Value sum;
    for (double coefficient : coefficients)
      sum = sum ? n.b.add(n.b.mul(sum, x), number(coefficient)) : number(coefficient);
    return sum;
  };
  Value near = horner({a + 2, -(a + 3), 0, 1}), far = horner({a, -5 * a, 8 * a, -4 * a});
  return n.b.select(n.b.compare(nn::ComparePredicate::le, x, number(1)), near, far);
}

Results gridSample(NodeImport &n) {
  Value x = n.in(0), grid = n.in(1);
  std::optional<Sampling> how = readSampling(n);
  SmallVector<int64_t> shape = n.b.shape(x), at = n.b.shape(grid);
  if (!how)
    return {x};
  int64_t rank = int64_t(shape.size()) - 2;
  if (rank < 1 || at.size() != shape.size() || at.back() != rank || at[0] != shape[0])
    return {n.b.fail(
        "its input needs batch, channels and one spatial dim or more, and its grid batch, as many dims and one "
        "number for each")};
  if (!isFloat(n.b.dtype(x)) || !isFloat(n.b.dtype(grid)))
    return {n.unsupported(std::string("interpolation of ") + name(n.b.dtype(x)) + " by " + name(n.b.dtype(grid)))};
  int64_t batch = shape[0], channels = shape[1], plane = elementCount(spatialDims(n, x));
  SmallVector<int64_t> to = joined({{batch, channels}, ArrayRef<int64_t>(at).drop_front().drop_back()});
  int64_t positions = elementCount(ArrayRef<int64_t>(to).drop_front(2));
  if (plane == 0)
    return {n.b.fail("its input has no elements to sample")};
  DType own = n.b.dtype(x), type = own == DType::F64 ? DType::F64 : DType::F32;
  grid = n.b.cast(n.b.reshape(grid, {batch, positions, rank}), type);
  // 1. Index and weight of every tap, [batch, positions, taps of dim 0, taps of dim 1, ..].
  Value index, weight, isInside;
  int64_t step = plane;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t size = shape[size_t(2 + dim)];
    step /= size;
    SmallVector<int64_t> single(size_t(2 + rank), 1), along(size_t(rank), 1);
    single[0] = batch;
    single[1] = positions;
    along[size_t(dim)] = how->taps;
    // The grid names the last dim first.
    Value component = n.b.slice(grid, {0, 0, rank - 1 - dim}, {1, 1, 1}, {batch, positions, 1});
    Value position = n.b.reshape(denormalized(n, component, size, how->alignsCorners), single), tap;
    if (how->taps == 1) {
      tap = broughtInside(n, n.b.unary<nn::RoundOp>(position), size, *how);
    } else {
      position = broughtInside(n, position, size, *how);
      Tensor numbers(type, along);
      for (int64_t i = 0; i < how->taps; ++i)
        numbers.floats[size_t(i)] = double(i - (how->taps == 4));
      Value offsets = n.b.known(std::move(numbers)), base = n.b.unary<nn::FloorOp>(position);
      Value part = tapWeights(n, n.b.sub(position, base), offsets, how->taps);
      weight = weight ? n.b.mul(weight, part) : part;
      tap = n.b.add(base, offsets);
    }
    Value inside = clamped(n, broughtInside(n, tap, size, *how), size);
    if (how->padding == Padding::Zeros) {
      Value isSame = n.b.compare(nn::ComparePredicate::eq, inside, tap);
      isInside = isInside ? n.b.binary<nn::AndOp>(isInside, isSame) : isSame;
    }
    Value number = n.b.mul(n.b.cast(inside, DType::I64), n.b.scalar(double(step), DType::I64));
    index = index ? n.b.add(index, number) : number;
  }
  int64_t taps = 1;
  for (int64_t dim = 0; dim < rank; ++dim)
    taps *= how->taps;
  int64_t all = plan::multiplySizes(positions, taps);
  // 2. Rows of channels, gathered, weighed and summed.
  Value rows = n.b.transpose(n.b.reshape(x, {batch, channels, plane}), {0, 2, 1});
  Value parts = n.b.cast(n.b.gatherNd(rows, n.b.reshape(index, {batch, all, 1}), 1), type);
  if (isInside)
    parts = n.b.select(n.b.reshape(isInside, {batch, all, 1}), parts, n.b.scalar(0, type));
  if (weight)
    parts = n.b.mul(parts, n.b.reshape(weight, {batch, all, 1}));
  Value sum = n.b.reduce(ReduceKind::Sum, n.b.reshape(parts, {batch, positions, taps, channels}), {2});
  Value result = n.b.transpose(n.b.reshape(sum, {batch, positions, channels}), {0, 2, 1});
  return {n.b.reshape(n.b.cast(result, own), to)};
}

const OnnxOp gridSampleTable[] = {{"GridSample", 16, gridSample}};

} // namespace

ArrayRef<OnnxOp> gridSampleOps() { return gridSampleTable; }

} // namespace hpc::onnx
