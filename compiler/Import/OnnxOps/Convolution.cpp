// Convolutions as matrix products over windows (nn.window): the weight is [out channels, channels of a window], so
// tensor parallelism finds its columns and rows as in any linear layer. The bias is added after the product, as
// everywhere.
#include "compiler/Import/OnnxOps/Convolution.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/CheckedMath.h"

namespace hpc::onnx {
namespace {

/// `bias`: one number for each of `channels`.
bool isBias(NodeImport &n, Value bias, int64_t channels) {
  if (n.b.shape(bias) == SmallVector<int64_t>{channels})
    return true;
  n.b.fail("its bias must have " + countText(channels, "element") + " in one dim");
  return false;
}

/// Adds the bias [c], where there is one, to [n, c, ...].
Value addBias(NodeImport &n, Value y, Value bias) {
  SmallVector<int64_t> shape = n.b.shape(y), aligned(shape.size() - 1, 1);
  aligned[0] = shape[1];
  if (!bias || !isBias(n, bias, shape[1]))
    return y;
  return n.b.add(y, n.b.reshape(n.b.isKnown(y) ? bias : n.b.parameter(bias), aligned));
}

/// Windows that tile the input: a patch embedding.
bool isTiling(const SlidingWindow &window) {
  bool isOne = llvm::all_of(window.sizes, [](int64_t size) { return size == 1; });
  return !isOne && window.sizes == window.strides && llvm::all_of(window.dilations, [](int64_t d) { return d == 1; });
}

/// One channel a group: a separate sum over each window, which needs no copy of the windows.
Value depthwise(NodeImport &n, Value windows, Value weight, const SlidingWindow &window, const Channels &channels) {
  int64_t batch = n.b.shape(windows)[0], groups = channels.groups;
  DType own = n.b.dtype(windows);
  if (!n.b.isKnown(windows))
    weight = n.b.parameter(weight);
  bool isWide = own == DType::F16 || own == DType::BF16; // products are not rounded before they are summed
  if (isWide) {
    windows = n.b.cast(windows, DType::F32);
    weight = n.b.cast(weight, DType::F32);
  }
  SmallVector<int64_t> ones(window.rank(), 1);
  windows = n.b.reshape(windows, joined({{batch, groups, 1}, window.sizes, window.counts}));
  weight = n.b.reshape(weight, joined({{groups, channels.out / groups}, window.sizes, ones}));
  Value sum = n.b.reduce(ReduceKind::Sum, n.b.mul(windows, weight),
                         llvm::to_vector(llvm::seq<int64_t>(3, int64_t(3 + window.rank()))));
  return n.b.cast(n.b.reshape(sum, joined({{batch, channels.out}, window.counts})), own);
}
} // namespace

std::optional<Channels> readChannels(NodeImport &n, Value x, Value weight, bool isTransposed) {
  SmallVector<int64_t> from = n.b.shape(x), shape = n.b.shape(weight);
  if (from.size() < 3 || shape.size() != from.size()) {
    n.b.fail("its input and weight have " + std::to_string(from.size()) + " and " + countText(shape.size(), "dim") +
             "; both need batch (or out) channels, channels and one spatial dim or more");
    return std::nullopt;
  }
  Channels channels{n.integer("group", 1), from[1], shape[0]};
  if (isTransposed)
    channels.out = channels.groups < 1 ? 0 : plan::multiplySizes(shape[1], channels.groups);
  bool divides = channels.groups >= 1 && channels.in % channels.groups == 0 && channels.out % channels.groups == 0;
  int64_t expected = isTransposed ? shape[0] : divides ? plan::multiplySizes(shape[1], channels.groups) : -1;
  if (!divides || expected != channels.in) {
    n.b.fail("its group is " + std::to_string(channels.groups) + ", its input has " +
             countText(channels.in, "channel") + " and its weight's first dims are " + std::to_string(shape[0]) +
             " and " + std::to_string(shape[1]) + ", which do not fit");
    return std::nullopt;
  }
  return channels;
}

Value convolve(NodeImport &n, Value x, Value weight, Value bias, const SlidingWindow &window,
               const Channels &channels) {
  int64_t batch = n.b.shape(x)[0], groups = channels.groups, size = elementCount(window.sizes),
          positions = elementCount(window.counts);
  Value windows = slideWindow(n, x, window, Tensor(n.b.dtype(x), {}));
  SmallVector<int64_t> to = joined({{batch, channels.out}, window.counts});
  if (groups > 1 && channels.in == groups && isFloat(n.b.dtype(x)) && n.b.dtype(x) == n.b.dtype(weight))
    return addBias(n, depthwise(n, windows, weight, window, channels), bias);
  if (groups > 1) {
    int64_t k = channels.in / groups * size;
    Value product = n.b.matmul(n.b.reshape(weight, {groups, channels.out / groups, k}),
                               n.b.reshape(windows, {batch, groups, k, positions}));
    return addBias(n, n.b.reshape(product, to), bias);
  }
  int64_t k = channels.in * size;
  Value matrix = n.b.reshape(weight, {channels.out, k});
  windows = n.b.reshape(windows, {batch, k, positions});
  if (!isTiling(window))
    return addBias(n, n.b.reshape(n.b.matmul(matrix, windows), to), bias);
  // Every element is read once, so rows of patches cost no more than columns; a model continues with [batch, patch,
  // channel], and the transpose then meets its own inverse.
  Value product = n.b.matmul(n.b.transpose(windows, {0, 2, 1}), matrix, false, true);
  if (bias && isBias(n, bias, channels.out))
    product = n.b.add(product, bias);
  return n.b.reshape(n.b.transpose(product, {0, 2, 1}), to);
}

std::optional<Convolution> readConvolution(NodeImport &n, Value x, Value weight) {
  std::optional<Channels> channels = readChannels(n, x, weight, false);
  if (!channels)
    return std::nullopt;
  SmallVector<int64_t> sizes = spatialDims(n, weight);
  std::optional<SlidingWindow> window = readWindow(n, spatialDims(n, x), ArrayRef<int64_t>(sizes));
  if (!window)
    return std::nullopt;
  return Convolution{*channels, *window};
}

namespace {
Results conv(NodeImport &n) {
  Value x = n.in(0), weight = n.in(1);
  std::optional<Convolution> how = readConvolution(n, x, weight);
  if (!how)
    return {x};
  return {convolve(n, x, weight, n.has(2) ? n.in(2) : Value(), how->window, how->channels)};
}

/// By dim: elements removed at the start of the full result, and elements that stay.
struct Crop {
  SmallVector<int64_t> starts, sizes;
};
/// From one of ONNX's three forms: pads, output_shape, auto_pad. `full`: (dim - 1) * stride + extent.
std::optional<Crop> readCrop(NodeImport &n, ArrayRef<int64_t> spatial, const SlidingWindow &window,
                             ArrayRef<int64_t> full) {
  size_t rank = spatial.size();
  SmallVector<int64_t> more(rank, 0), wanted;
  if (auto given = n.integers("output_padding"))
    more = *given;
  if (auto given = n.integers("output_shape"))
    wanted = *given;
  // Some exporters repeat batch and channels.
  if (wanted.size() == rank + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (more.size() != rank || (!wanted.empty() && wanted.size() != rank)) {
    n.b.fail("its output_padding and output_shape need one number for each of " + std::to_string(rank) +
             " spatial dims");
    return std::nullopt;
  }
  std::string automatic = n.text("auto_pad", "NOTSET");
  bool isSame = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  Crop crop;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (more[dim] < 0 || (!wanted.empty() && wanted[dim] < 0)) {
      n.b.fail("its output_padding and output_shape must be 0 or more");
      return std::nullopt;
    }
    int64_t all = plan::addSizes(full[dim], more[dim]), low = window.low[dim];
    int64_t size = all - std::min(all, plan::addSizes(low, window.high[dim]));
    if (isSame || !wanted.empty()) {
      size = wanted.empty() ? plan::multiplySizes(spatial[dim], window.strides[dim]) : wanted[dim];
      int64_t padding = std::max<int64_t>(0, all - size);
      low = automatic == "SAME_UPPER" ? padding / 2 : padding - padding / 2;
    }
    crop.starts.push_back(low);
    crop.sizes.push_back(size);
  }
  return crop;
}

/// Every input element times the weight gives a window of the output; windows that overlap add up.
Results convTranspose(NodeImport &n) {
  Value x = n.in(0), weight = n.in(1);
  std::optional<Channels> channels = readChannels(n, x, weight, true);
  if (!channels)
    return {x};
  SmallVector<int64_t> spatial = spatialDims(n, x), sizes = spatialDims(n, weight);
  // The windows lie in the output, whose length follows from them.
  SmallVector<int64_t> unbounded(spatial.size(), int64_t(1) << 60);
  std::optional<SlidingWindow> window = readWindow(n, unbounded, ArrayRef<int64_t>(sizes));
  if (!window)
    return {x};
  SmallVector<int64_t> full;
  for (size_t dim = 0; dim < spatial.size(); ++dim)
    full.push_back(
        spatial[dim] == 0 // the formula all the same: zeros and the bias
            ? std::max<int64_t>(0, window->extent(dim) - window->strides[dim])
            : plan::addSizes(plan::multiplySizes(spatial[dim] - 1, window->strides[dim]), window->extent(dim)));
  std::optional<Crop> crop = readCrop(n, spatial, *window, full);
  int64_t batch = n.b.shape(x)[0], groups = channels->groups, positions = elementCount(spatial);
  SmallVector<int64_t> to = joined({{batch, channels->out}, full});
  if (!crop || !n.b.checkType(to, n.b.dtype(x)))
    return {x};
  // 1. [n, m * sizes, positions]; the weight's channels come first.
  int64_t k = channels->in / groups, m = channels->out / groups * elementCount(sizes);
  Value product = groups == 1 ? n.b.matmul(n.b.reshape(weight, {k, m}), n.b.reshape(x, {batch, k, positions}), true)
                              : n.b.matmul(n.b.reshape(weight, {groups, k, m}),
                                           n.b.reshape(x, {batch, groups, k, positions}), true);
  // 2. Add the windows at their places.
  Value windows = n.b.reshape(product, joined({{batch, channels->out}, sizes, spatial}));
  Value y = overlapAdd(n, windows, window->strides, window->dilations);
  if (!n.b.status().ok())
    return {x};
  return {addBias(n, takeRange(n, y, crop->starts, crop->sizes), n.has(2) ? n.in(2) : Value())};
}

/// [n, c * block, positions] to the image whose windows these are.
Results col2Im(NodeImport &n) {
  Value x = n.in(0);
  SmallVector<int64_t> image = n.b.integers(n.in(1), "image_shape"), block = n.b.integers(n.in(2), "block_shape");
  SmallVector<int64_t> shape = n.b.shape(x);
  if (!n.b.status().ok())
    return {x};
  if (shape.size() != 3 || image.empty() || block.size() != image.size())
    return {n.b.fail("its input needs 3 dims, and image_shape and block_shape one number for each dim of the image")};
  for (int64_t size : image)
    if (size < 0)
      return {n.b.fail("its image_shape has a negative size")};
  std::optional<SlidingWindow> window = readWindow(n, image, ArrayRef<int64_t>(block));
  if (!window)
    return {x};
  int64_t size = 1;
  for (int64_t part : block)
    size = plan::multiplySizes(size, part);
  int64_t positions = elementCount(window->counts);
  if (shape[1] % size || shape[2] != positions)
    return {n.b.fail("its input has " + std::to_string(shape[1]) + " x " + countText(shape[2], "column") +
                     "; blocks of " + std::to_string(size) + " at " + std::to_string(positions) +
                     " positions were expected")};
  Value windows = n.b.reshape(x, joined({{shape[0], shape[1] / size}, block, window->counts}));
  Value y = overlapAdd(n, windows, window->strides, window->dilations);
  return {n.b.status().ok() ? takeRange(n, y, window->low, image) : x};
}

/// A depthwise convolution over past elements: [n, c, length] after k - 1 columns of state, zeros at the start of a
/// sequence. The last k - 1 columns are the next state.
Results causalConv(NodeImport &n) {
  Value x = n.in(0), weight = n.in(1);
  SmallVector<int64_t> shape = n.b.shape(x), sizes = n.b.shape(weight);
  std::string activation = n.text("activation", "none");
  if (shape.size() != 3 || sizes.size() != 3 || sizes[0] != shape[1] || sizes[1] != 1 || sizes[2] < 1)
    return {n.b.fail("it takes [batch, channel, length] and a weight of [channel, 1, k]")};
  if (activation != "none" && activation != "silu" && activation != "swish")
    return {n.b.fail("its activation is '" + activation + "'; none, silu and swish are possible")};
  int64_t kept = sizes[2] - 1;
  SmallVector<int64_t> state = {shape[0], shape[1], kept};
  if (n.has(3) && n.b.shape(n.in(3)) != state)
    return {n.b.fail("its past_state must be [batch, channel, k - 1]")};
  Value all = n.has(3) ? n.b.concat({n.in(3), x}, 2) : n.b.pad(x, {0, 0, kept}, {0, 0, 0}, Tensor(n.b.dtype(x), {}));
  SlidingWindow window{{sizes[2]}, {1}, {1}, {0}, {0}, {shape[2]}};
  Value y = addBias(n,
                    depthwise(n, slideWindow(n, all, window, Tensor(n.b.dtype(x), {})), weight, window,
                              {shape[1], shape[1], shape[1]}),
                    n.has(2) ? n.in(2) : Value());
  if (activation != "none")
    y = n.b.mul(y, n.b.unary<nn::SigmoidOp>(y));
  return {y, n.b.slice(all, {0, 0, shape[2]}, {1, 1, 1}, state)};
}

const OnnxOp convolutionTable[] = {{"CausalConvWithState", 27, causalConv},
                        {"Conv", 1, conv},
                        {"ConvTranspose", 1, convTranspose},
                        {"Col2Im", 18, col2Im}};

} // namespace

ArrayRef<OnnxOp> convolutionOps() { return convolutionTable; }

} // namespace hpc::onnx
