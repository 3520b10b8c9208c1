// Convolutions of bytes. Sums of products of bytes are whole numbers, which f32 holds up to 2^24 and f64 up to 2^53:
// they are computed there by the library's product, of as many channels at once as f32 has room for, and are exact.
#include "compiler/Import/OnnxOps/Convolution.h"
#include "runtime/base/CountText.h"
#include "runtime/base/IntegerMath.h"

namespace hpc::onnx {
namespace {

bool isByte(DType type) { return type == DType::I8 || type == DType::U8; }

/// f32 holds every sum of so many products of two bytes less their zero points.
constexpr int64_t mostTerms = (int64_t(1) << 24) / (255 * 255);

/// `count` elements of dim 1 from `start` on.
Value channelsOf(NodeImport &n, Value x, int64_t start, int64_t count) {
  SmallVector<int64_t> sizes = n.b.shape(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  starts[1] = start;
  sizes[1] = count;
  return n.b.slice(x, starts, steps, sizes);
}

/// Input `value` less its zero point (input `zero`, where the node has it), as floats. A zero point is one number, or
/// one for each element of dim 0.
Value withoutZero(NodeImport &n, size_t value, size_t zero, DType type) {
  Value x = n.b.cast(n.in(value), type);
  if (!n.has(zero))
    return x;
  Value point = n.in(zero);
  SmallVector<int64_t> shape = n.b.shape(x), aligned(shape.size(), 1);
  if (n.b.dtype(point) != n.b.dtype(n.in(value)))
    return n.b.fail("its zero point is " + std::string(name(n.b.dtype(point))) + " for a tensor of " +
                    name(n.b.dtype(n.in(value))));
  int64_t count = elementCount(n.b.shape(point));
  if (count != 1 && (n.b.rank(point) != 1 || count != shape[0]))
    return n.b.fail("its zero point has " + countText(count, "number") + "; one, or one for each of " +
                    countText(shape[0], "channel") + ", are possible");
  aligned[0] = count;
  return n.b.sub(x, n.b.cast(n.b.reshape(point, aligned), type));
}

/// The exact sums, [n, c, counts..], as i32. `x`, `weight` and their zero points are these inputs.
std::optional<Value> exactSums(NodeImport &n, size_t x, size_t xZero, size_t weight, size_t weightZero) {
  if (!isByte(n.b.dtype(n.in(x))) || !isByte(n.b.dtype(n.in(weight)))) {
    n.b.fail(std::string("it convolves ") + name(n.b.dtype(n.in(x))) + " and " + name(n.b.dtype(n.in(weight))) +
             "; i8 and u8 are possible");
    return std::nullopt;
  }
  std::optional<Convolution> how = readConvolution(n, n.in(x), n.in(weight));
  if (!how)
    return std::nullopt;
  SmallVector<int64_t> shape = n.b.shape(n.in(weight));
  int64_t window = elementCount(ArrayRef<int64_t>(shape).drop_front(2)), channels = shape[1];
  bool fits = window * channels <= mostTerms, isCut = !fits && how->channels.groups == 1 && window <= mostTerms;
  DType type = fits || isCut ? DType::F32 : DType::F64;
  Value data = withoutZero(n, x, xZero, type), kernel = withoutZero(n, weight, weightZero, type);
  if (!n.b.status().ok())
    return std::nullopt;
  if (!isCut)
    return n.b.cast(convolve(n, data, kernel, Value(), how->window, how->channels), DType::I32);
  int64_t pieces = ceilDiv(channels, mostTerms / window), most = ceilDiv(channels, pieces);
  Value sum;
  for (int64_t start = 0; start < channels; start += most) {
    Channels part = how->channels;
    part.in = std::min(most, channels - start);
    Value own = convolve(n, channelsOf(n, data, start, part.in), channelsOf(n, kernel, start, part.in), Value(), how->window, part);
    own = n.b.cast(own, DType::I32);
    sum = sum ? n.b.add(sum, own) : own;
  }
  return sum;
}

Results convInteger(NodeImport &n) {
  if (n.has(2) && elementCount(n.b.shape(n.in(2))) != 1)
    return {n.b.fail("the zero point of its input must be one number")};
  std::optional<Value> sums = exactSums(n, 0, 2, 1, 3);
  return {sums ? *sums : n.in(0)};
}

/// One number, or one for each channel, along dim 1 of a tensor of `rank` dims.
Value perChannel(NodeImport &n, Value value, int64_t channels, int64_t rank) {
  int64_t count = elementCount(n.b.shape(value));
  if (count != 1 && (n.b.rank(value) != 1 || count != channels))
    return n.b.fail("its scales and bias need one number, or one for each of " + countText(channels, "channel"));
  SmallVector<int64_t> aligned(size_t(rank - 1), 1);
  aligned[0] = count;
  return n.b.reshape(value, aligned);
}

/// x, its scale and zero point; weight, its scales and zero points; the result's scale and zero point; a bias of sums.
Results qLinearConv(NodeImport &n) {
  std::optional<Value> sums = exactSums(n, 0, 2, 3, 5);
  if (!sums)
    return {n.in(0)};
  DType to = n.b.dtype(n.in(7));
  int64_t rank = n.b.rank(*sums), channels = n.b.shape(*sums)[1];
  if (!isByte(to) || elementCount(n.b.shape(n.in(7))) != 1 || elementCount(n.b.shape(n.in(6))) != 1)
    return {n.b.fail("the scale and zero point of its result must be one number each, the latter i8 or u8")};
  Value y = *sums;
  if (n.has(8))
    y = n.b.add(y, perChannel(n, n.in(8), channels, rank));
  Value scale = n.b.div(n.b.mul(n.b.reshape(n.in(1), {}), n.in(4)), n.b.reshape(n.in(6), {}));
  y = n.b.mul(n.b.cast(y, n.b.dtype(scale)), perChannel(n, scale, channels, rank));
  y = n.b.add(n.b.unary<nn::RoundOp>(y), n.b.cast(n.b.reshape(n.in(7), {}), n.b.dtype(y)));
  Value lowest = n.b.scalar(to == DType::I8 ? -128 : 0, y), highest = n.b.scalar(to == DType::I8 ? 127 : 255, y);
  return {n.b.cast(n.b.binary<nn::MinOp>(n.b.binary<nn::MaxOp>(y, lowest), highest), to)};
}

const OnnxOp quantizedConvolutionTable[] = {{"ConvInteger", 10, convInteger}, {"QLinearConv", 10, qLinearConv}};

} // namespace

ArrayRef<OnnxOp> quantizedConvolutionOps() { return quantizedConvolutionTable; }

} // namespace hpc::onnx
