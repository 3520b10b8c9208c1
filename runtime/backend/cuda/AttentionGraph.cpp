// Keys and values are declared transposed where a matmul needs them so: dims and strides are swapped, no data moves.
#include "runtime/backend/cuda/AttentionGraph.h"

#include <algorithm>
#include <cmath>

namespace hpc::cuda {

namespace {

using Tensor = CudnnGraph::Tensor;

int dnnTypeOf(DType dtype) { return dtype == DType::F16 ? dnnF16 : dtype == DType::BF16 ? dnnBF16 : dnnF32; }

/// The power of two, 16 at most, that divides the address of the first element and every row's.
int64_t alignmentOf(const plan::AttentionTensor &tensor) {
  const int64_t element = byteSize(tensor.dtype);
  int64_t power = 16;
  for (int64_t number : {tensor.offset, tensor.stride[0], tensor.stride[1], tensor.stride[2]})
    while (number * element % power != 0)
      power /= 2;
  return power;
}

struct Shapes {
  Dims query, key, value, result, scores, perRow;
  Dims transposedKey, transposedValue;

  explicit Shapes(const plan::Attention &a)
      : query{a.batch, a.heads, a.queries, a.depth}, key{a.batch, a.groups, a.keys, a.depth},
        value{a.batch, a.groups, a.keys, a.width}, result{a.batch, a.heads, a.queries, a.width},
        scores{a.batch, a.heads, a.queries, a.keys}, perRow{a.batch, a.heads, a.queries, 1},
        transposedKey{a.batch, a.groups, a.depth, a.keys}, transposedValue{a.batch, a.groups, a.width, a.keys} {}
};

Dims swapped(Dims strides) {
  std::swap(strides[2], strides[3]);
  return strides;
}

struct Builder {
  CudnnGraph &graph;
  const plan::Attention &attention;
  Shapes shapes{attention};
  int narrow = dnnTypeOf(attention.query.dtype);

  Tensor memory(const plan::AttentionTensor &tensor, const Dims &dims) {
    return graph.memory(dnnTypeOf(tensor.dtype), dims, stridesOf(tensor, dims), alignmentOf(tensor));
  }
  Tensor transposed(const plan::AttentionTensor &tensor, const Dims &dims) {
    return graph.memory(dnnTypeOf(tensor.dtype), {dims[0], dims[1], dims[3], dims[2]}, swapped(stridesOf(tensor, dims)),
                        alignmentOf(tensor));
  }
  Tensor rows() { return graph.memory(dnnF32, shapes.perRow, packedStrides(shapes.perRow), 16); }
  const Dims &dimsOf(size_t result) const { return result == 0 ? shapes.query : result == 1 ? shapes.key : shapes.value; }
  /// The gradient of operand `which`, in the type and the strides in which cuDNN writes it.
  Tensor gradient(size_t which) {
    return isWidened(attention) ? graph.memory(narrow, dimsOf(which), packedStrides(dimsOf(which)), 16)
                                : memory(attention.results[which], dimsOf(which));
  }
  /// A plan has 0 for the stride of a dim of one element; cuDNN wants one that orders the dims.
  static Dims stridesOf(const plan::AttentionTensor &tensor, const Dims &dims) {
    Dims strides = tensor.stride;
    int64_t larger = 1;
    for (size_t i = strides.size(); i-- > 0;) {
      if (dims[i] == 1 && strides[i] == 0)
        strides[i] = larger;
      larger = std::max(larger, strides[i] * dims[i]);
    }
    return strides;
  }

  Tensor elements(int mode, Tensor x, Tensor b, const Dims &dims) {
    Tensor y = graph.inBetween(dnnF32, dims);
    graph.pointwise(mode, x, b, y);
    return y;
  }
  Tensor scaledScores(Tensor query, Tensor transposedKey, Tensor scale) {
    Tensor scores = graph.inBetween(dnnF32, shapes.scores);
    graph.matmul(query, transposedKey, scores);
    return elements(modeMul, scores, scale, shapes.scores);
  }
  /// -inf where a key is not seen.
  Tensor masked(Tensor scores) {
    if (!attention.causal)
      return scores;
    Tensor row = graph.inBetween(dnnI32, shapes.scores), column = graph.inBetween(dnnI32, shapes.scores);
    graph.index(2, scores, row);
    if (attention.causalOffset != 0) { // the diagonal ends in the last corner: keys - queries
      Tensor moved = graph.inBetween(dnnI32, shapes.scores), last = graph.inBetween(dnnI32, shapes.scores);
      graph.pointwise(modeAdd, row, graph.number(int32_t(attention.keys)), moved, dnnI32);
      graph.pointwise(modeSub, moved, graph.number(int32_t(attention.queries)), last, dnnI32);
      row = last;
    }
    graph.index(3, scores, column);
    Tensor isSeen = graph.inBetween(dnnBool, shapes.scores), result = graph.inBetween(dnnF32, shapes.scores);
    graph.pointwise(modeGreaterEqual, row, column, isSeen, dnnBool);
    graph.pointwise(modeSelect, scores, graph.number(-INFINITY), result, dnnF32, isSeen);
    return result;
  }
};

} // namespace

// Seen on an H100: an engine for gradients in f32 has a part named convert_dq_to_16bits.
bool isWidened(const plan::Attention &a) {
  return a.kind == plan::AttentionKind::Backward && a.query.dtype != DType::F32 &&
         std::all_of(a.results.begin(), a.results.end(), [](const plan::AttentionTensor &result) { return result.dtype == DType::F32; });
}

Status fitsCudnn(const plan::Attention &a) {
  auto refuse = [](const std::string &why) { return Status::error(ErrorKind::Unsupported, why); };
  const DType type = a.query.dtype;
  if (type != DType::F16 && type != DType::BF16)
    return refuse(std::string("its operands are ") + name(type));
  for (const plan::AttentionTensor &result : a.results)
    if (result.dtype != type && !isWidened(a))
      return refuse(std::string("a result is ") + name(result.dtype) + ", the operands " + name(type));
  if (a.bias.argument >= 0)
    return refuse("something is added to its scores");
  if (std::min({a.batch, a.heads, a.queries, a.keys, a.depth, a.width}) == 0)
    return refuse("it is empty");
  if (a.depth % 8 != 0 || a.width % 8 != 0 || std::max(a.depth, a.width) > 128)
    return refuse("its heads have " + std::to_string(a.depth) + " and " + std::to_string(a.width) +
                  " channels, which must be multiples of 8 up to 128");
  constexpr int64_t mostOfDim = int64_t(1) << 31;
  if (std::max({a.batch, a.heads, a.queries, a.keys}) >= mostOfDim)
    return refuse("it has a dim of 2^31 or more");
  if (a.causal && a.causalOffset != 0 && a.causalOffset != a.keys - a.queries)
    return refuse("its diagonal begins at " + std::to_string(a.causalOffset) + ", neither in the first corner nor the last");
  for (const plan::AttentionTensor *tensor : {&a.query, &a.key, &a.value, &a.gradient})
    if (tensor->argument >= 0 && (tensor->stride[3] != 1 || alignmentOf(*tensor) < 16))
      return refuse("the channels of an operand do not lie side by side at a multiple of 16 bytes");
  for (const plan::AttentionTensor &result : a.results)
    if (result.stride[3] != 1 || alignmentOf(result) < 16)
      return refuse("the channels of a result do not lie side by side at a multiple of 16 bytes");
  return Status::success();
}

Expected<CudnnPlan> makeForward(const Cudnn &dnn, DnnHandle handle, const plan::Attention &attention, bool withStats,
                                const std::string &device) {
  CudnnGraph graph(dnn);
  Builder b{graph, attention};
  const Shapes &shapes = b.shapes;
  Tensor query = b.memory(attention.query, shapes.query), key = b.transposed(attention.key, shapes.key),
         value = b.memory(attention.value, shapes.value);
  Tensor result = attention.kind == plan::AttentionKind::Forward
                      ? b.memory(attention.results[0], shapes.result)
                      : graph.memory(b.narrow, shapes.result, packedStrides(shapes.result), 16);
  Tensor stats = withStats ? b.rows() : graph.inBetween(dnnF32, shapes.perRow);
  Tensor scores = b.masked(b.scaledScores(query, key, graph.number(float(attention.scale))));
  Tensor maximum = graph.inBetween(dnnF32, shapes.perRow), sum = graph.inBetween(dnnF32, shapes.perRow);
  graph.reduce(reduceMax, scores, maximum);
  Tensor powers = b.elements(modeExp, b.elements(modeSub, scores, maximum, shapes.scores), nullptr, shapes.scores);
  graph.reduce(reduceAdd, powers, sum);
  graph.pointwise(modeAdd, maximum, b.elements(modeLog, sum, nullptr, shapes.perRow), stats);
  Tensor weights = graph.inBetween(b.narrow, shapes.scores);
  graph.pointwise(modeDiv, powers, sum, weights);
  graph.matmul(weights, value, result);
  return graph.finish(handle, device);
}

Expected<CudnnPlan> makeBackward(const Cudnn &dnn, DnnHandle handle, const plan::Attention &attention,
                                 const std::string &device) {
  CudnnGraph graph(dnn);
  Builder b{graph, attention};
  const Shapes &shapes = b.shapes;
  Tensor query = b.memory(attention.query, shapes.query), key = b.transposed(attention.key, shapes.key),
         value = b.transposed(attention.value, shapes.value), gradient = b.memory(attention.gradient, shapes.result),
         result = graph.memory(b.narrow, shapes.result, packedStrides(shapes.result), 16), stats = b.rows(),
         rowSums = b.rows(), wideQueryGradient = graph.memory(dnnF32, shapes.query, packedStrides(shapes.query), 16),
         queryGradient = b.gradient(0), keyGradient = b.gradient(1), valueGradient = b.gradient(2),
         scale = graph.number(float(attention.scale));
  // The transposed square in the operands' type, and a product with it, summed over the heads of a group.
  const Dims squareDims = {attention.batch, attention.heads, attention.keys, attention.queries};
  Dims squareStrides = packedStrides(shapes.scores);
  std::swap(squareStrides[2], squareStrides[3]);
  auto alongQueries = [&](Tensor square, Tensor right, Tensor target, int64_t columns) {
    Tensor turned = graph.inBetween(b.narrow, squareDims, squareStrides);
    graph.reshape(square, turned);
    if (attention.heads == attention.groups)
      return graph.matmul(turned, right, target);
    Tensor ofHeads = graph.inBetween(b.narrow, {attention.batch, attention.heads, attention.keys, columns});
    graph.matmul(turned, right, ofHeads);
    graph.reduce(reduceAdd, ofHeads, target);
  };

  // 1. For each row the sum of gradient times result.
  Tensor sums = graph.inBetween(dnnF32, shapes.perRow);
  graph.reduce(reduceAdd, b.elements(modeMul, gradient, result, shapes.result), sums);
  graph.pointwise(modeMul, sums, graph.number(1.0f), rowSums);
  // 2. Probabilities again, and the gradient of values.
  Tensor scores = b.masked(b.elements(modeSub, b.scaledScores(query, key, scale), stats, shapes.scores));
  Tensor weights = b.elements(modeExp, scores, nullptr, shapes.scores);
  alongQueries(weights, gradient, valueGradient, attention.width);
  // 3. The gradient of scores, and of keys and queries.
  Tensor ofWeights = graph.inBetween(dnnF32, shapes.scores);
  graph.matmul(gradient, value, ofWeights);
  Tensor ofScores = b.elements(modeMul, b.elements(modeSub, ofWeights, rowSums, shapes.scores), weights, shapes.scores);
  ofScores = b.elements(modeMul, ofScores, scale, shapes.scores);
  alongQueries(ofScores, query, keyGradient, attention.depth);
  Tensor turnedKey = graph.inBetween(b.narrow, shapes.key, Builder::stridesOf(attention.key, shapes.key));
  graph.reshape(key, turnedKey);
  graph.matmul(ofScores, turnedKey, wideQueryGradient);
  graph.pointwise(modeIdentity, wideQueryGradient, nullptr, queryGradient);
  return graph.finish(handle, device);
}

} // namespace hpc::cuda
