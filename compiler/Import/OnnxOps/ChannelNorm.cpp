// Norms of [batch, channel, spatial..]. Statistics over a plane or a group of planes are a layer norm without weight
// along one merged dim; factors and terms of a channel are applied afterwards.
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Import/OnnxOps/NormParts.h"
#include "compiler/Import/OnnxOps/Slopes.h"
#include "compiler/Import/OnnxOps/Window.h"
#include "runtime/base/CountText.h"

#include <algorithm>

namespace hpc::onnx {
namespace {

/// Batch, channels and the rest; an error if x has no such dims.
std::optional<SmallVector<int64_t>> channelShape(NodeImport &n, Value x) {
  SmallVector<int64_t> shape = n.b.shape(x);
  if (shape.size() >= 2)
    return shape;
  n.b.fail("its input has " + countText(shape.size(), "dim") + "; batch and channels are needed");
  return std::nullopt;
}

/// Input `index`, one number for each of `count` (a channel or group of an input with `rank` dims), along dim 1.
Value alongChannels(NodeImport &n, size_t index, int64_t count, int64_t rank) {
  Value value = n.in(index);
  if (n.b.status().ok() && n.b.shape(value) != SmallVector<int64_t>{count})
    return n.b.fail("its input " + std::to_string(index) + " must have " + countText(count, "element") + " in one dim");
  SmallVector<int64_t> aligned(size_t(rank - 1), 1);
  aligned[0] = count;
  if (index < 3 && !n.b.isKnown(n.in(0))) // scale and bias; mean and variance are statistics
    value = n.b.parameter(value);
  return n.b.status().ok() ? n.b.reshape(value, aligned) : value;
}

// ---- batch norm ---------------------------------------------------------------------------------

/// scale * (x - mean) / sqrt(variance + epsilon) + bias with given statistics.
Results batchNorm(NodeImport &n) {
  Value x = n.in(0);
  std::optional<SmallVector<int64_t>> shape = channelShape(n, x);
  if (!shape)
    return {x};
  // Opset 14 has an attribute for it, older ones show it by the requested outputs (and before 7 by is_test).
  bool wantsStatistics = llvm::any_of(llvm::seq<size_t>(1, 5), [&](size_t output) { return n.wantsOutput(output); });
  bool isTraining = n.version >= 14  ? n.integer("training_mode", 0) != 0
                    : n.version >= 7 ? wantsStatistics
                                     : n.integer("is_test", 0) == 0 && wantsStatistics;
  if (isTraining && n.mode.inference && !wantsStatistics) {
    n.mode.switched.push_back(n.node.name);
    isTraining = false;
  }
  if (isTraining)
    return {
        n.unsupported("training mode, which takes mean and variance from the batch; export the model for inference, or "
                      "use --inference where only the first output is read")};
  if (n.mode.training && !n.mode.inference)
    n.mode.settled.push_back(n.node.name);
  if (n.version < 9 && n.integer("spatial", 1) == 0)
    return {n.unsupported("statistics for each element (spatial=0)")};
  // Statistics may have another type than the data (opset 15): the wider of the two computes.
  DType own = n.b.dtype(x), type = own;
  for (size_t input : {1, 3})
    if (byteSize(n.b.dtype(n.in(input))) > byteSize(type))
      type = n.b.dtype(n.in(input));
  auto perChannel = [&](size_t input) {
    Value value = alongChannels(n, input, (*shape)[1], int64_t(shape->size()));
    return n.b.status().ok() ? n.b.cast(value, type) : value;
  };
  Value scale = perChannel(1), bias = perChannel(2), mean = perChannel(3), variance = perChannel(4);
  if (!n.b.status().ok())
    return {x};
  for (size_t input : {3, 4})
    nn::markStatistic(n.in(input));
  Value deviation = n.b.unary<nn::SqrtOp>(n.b.add(variance, n.b.scalar(n.number("epsilon", 1e-5f), variance)));
  Value centered = n.b.sub(n.b.cast(x, type), mean);
  return {n.b.cast(n.b.add(n.b.mul(centered, n.b.div(scale, deviation)), bias), own)};
}

// ---- instance and group norm --------------------------------------------------------------------

/// Mean 0 and variance 1 along the last dim.
Value standardize(NodeImport &n, Value x) {
  return normOf(n, NormKind::Layer, x, Value(), Value(), n.number("epsilon", 1e-5f));
}

Results instanceNorm(NodeImport &n) {
  Value x = n.in(0);
  std::optional<SmallVector<int64_t>> shape = channelShape(n, x);
  if (!shape)
    return {x};
  int64_t channels = (*shape)[1];
  Value scale = alongChannels(n, 1, channels, 3), bias = alongChannels(n, 2, channels, 3);
  Value planes = standardize(n, n.b.reshape(x, {(*shape)[0], channels, elementCount(spatialDims(n, x))}));
  return {n.b.reshape(n.b.add(n.b.mul(planes, scale), bias), *shape)};
}

/// Scale and bias belong to groups before opset 21, to channels since.
Results groupNorm(NodeImport &n) {
  Value x = n.in(0);
  std::optional<SmallVector<int64_t>> shape = channelShape(n, x);
  if (!shape)
    return {x};
  int64_t batch = (*shape)[0], channels = (*shape)[1], groups = n.integer("num_groups", 0);
  if (groups < 1 || channels % groups)
    return {n.b.fail("its num_groups is " + std::to_string(groups) + ", which does not divide " +
                     countText(channels, "channel"))};
  int64_t plane = elementCount(spatialDims(n, x));
  Value grouped = n.b.reshape(x, {batch, groups, channels / groups * plane});
  Value normal = standardize(n, grouped);
  int64_t count = n.version < 21 ? groups : channels;
  if (n.version >= 21)
    normal = n.b.reshape(normal, {batch, channels, plane});
  Value scale = alongChannels(n, 1, count, 3), bias = alongChannels(n, 2, count, 3);
  return {n.b.reshape(n.b.add(n.b.mul(normal, scale), bias), *shape)};
}

// ---- over neighbours ----------------------------------------------------------------------------

/// x / (bias + alpha / size * sum of squares of `size` neighbouring channels)^beta
Results localResponse(NodeImport &n) {
  Value x = n.in(0);
  std::optional<SmallVector<int64_t>> shape = channelShape(n, x);
  int64_t size = n.integer("size", 0);
  if (!shape)
    return {x};
  if (size < 1)
    return {n.b.fail("its size is " + std::to_string(size) + "; it needs 1 channel or more")};
  int64_t batch = (*shape)[0], channels = (*shape)[1], plane = elementCount(spatialDims(n, x));
  // Windows of [size, 1] over [channel, position], no wider than there is a channel for some of them.
  const int64_t farthest = std::max<int64_t>(channels - 1, 0);
  SlidingWindow window;
  window.strides = window.dilations = {1, 1};
  window.low = {std::min((size - 1) / 2, farthest), 0};
  window.high = {std::min(size / 2, farthest), 0};
  window.sizes = {window.low[0] + 1 + window.high[0], 1};
  window.counts = {channels, plane};
  Value squares = n.b.reshape(n.b.mul(x, x), {batch, channels, plane});
  Value sum = n.b.reduce(ReduceKind::Sum, slideWindow(n, squares, window, Tensor(n.b.dtype(x), {})), {1, 2});
  Value scaled = n.b.mul(n.b.reshape(sum, *shape), n.b.scalar(n.number("alpha", 1e-4f) / double(size), x));
  Value base = n.b.add(scaled, n.b.scalar(n.number("bias", 1.0), x));
  return {n.b.div(x, n.b.binary<nn::PowOp>(base, n.b.scalar(n.number("beta", 0.75), x)))};
}

/// (x - mean) / (deviation + 1e-9) over `axes`.
Results meanVariance(NodeImport &n) {
  Value x = n.in(0);
  SmallVector<int64_t> axes = n.axes(n.integers("axes").value_or(SmallVector<int64_t>{0, 2, 3}), n.b.rank(x));
  if (!n.b.status().ok())
    return {x};
  Value wide = n.b.widened(x), centered = n.b.sub(wide, n.b.mean(wide, axes));
  Value deviation = lengthOf(n, n.b.mean(n.b.mul(centered, centered), axes));
  return {n.b.cast(n.b.div(centered, n.b.add(deviation, n.b.scalar(1e-9, wide))), n.b.dtype(x))};
}

const OnnxOp channelNormTable[] = {
    {"BatchNormalization", 1, batchNorm},           {"InstanceNormalization", 6, instanceNorm},
    {"GroupNormalization", 18, groupNorm},          {"LRN", 1, inF32<localResponse>},
    {"MeanVarianceNormalization", 9, meanVariance},
};

} // namespace

ArrayRef<OnnxOp> channelNormOps() { return channelNormTable; }

} // namespace hpc::onnx
