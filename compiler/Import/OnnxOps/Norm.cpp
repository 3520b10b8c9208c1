// Softmax and normalizations. nn works along the last dim; other axes are moved there.
#include "compiler/Import/OnnxOps/NormParts.h"
#include "compiler/Import/OnnxOps/Slopes.h"

namespace hpc::onnx {
namespace {

/// Swaps `axis` with the last dim; its own inverse.
Value swapWithLast(NodeImport &n, Value x, int64_t axis) {
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, n.b.rank(x)));
  if (permutation.empty())
    return x;
  std::swap(permutation[size_t(axis)], permutation.back());
  return n.b.transpose(x, permutation);
}

/// [product of dims before axis, product of the rest]
SmallVector<int64_t> flatShape(ArrayRef<int64_t> shape, int64_t axis) {
  return {elementCount(shape.take_front(size_t(axis))), elementCount(shape.drop_front(size_t(axis)))};
}

Value logSoftmaxLast(NodeImport &n, Value x) {
  SmallVector<int64_t> last = {n.b.rank(x) - 1};
  Value shifted = n.b.sub(x, n.b.reduce(ReduceKind::Max, x, last));
  Value sum = n.b.reduce(ReduceKind::Sum, n.b.unary<nn::ExpOp>(shifted), last);
  return n.b.sub(shifted, n.b.unary<nn::LogOp>(sum));
}

Value alongLast(NodeImport &n, Value x, bool log) { return log ? logSoftmaxLast(n, x) : n.b.softmax(x); }

template <bool log> Results softmax(NodeImport &n) {
  Value x = n.in(0);
  if (n.b.rank(x) == 0)
    return {n.b.fail("softmax of a scalar")};
  int64_t axis = n.axis(n.integer("axis", -1), n.b.rank(x));
  return {swapWithLast(n, alongLast(n, swapWithLast(n, x, axis), log), axis)};
}

/// Before opset 13: over all dims from `axis` on, flattened.
template <bool log> Results flatSoftmax(NodeImport &n) {
  Value x = n.in(0);
  if (n.b.rank(x) == 0)
    return {n.b.fail("softmax of a scalar")};
  int64_t axis = n.axis(n.integer("axis", 1), n.b.rank(x));
  if (axis == n.b.rank(x) - 1)
    return {alongLast(n, x, log)};
  SmallVector<int64_t> shape = n.b.shape(x);
  return {n.b.reshape(alongLast(n, n.b.reshape(x, flatShape(shape, axis)), log), shape)};
}

/// A scale or bias as [e]: stored so, or with leading dims of size 1, or to be broadcast.
Value perElement(NodeImport &n, Value x, ArrayRef<int64_t> normalized) {
  int64_t size = elementCount(normalized);
  if (elementCount(n.b.shape(x)) != size)
    x = n.b.broadcast(x, normalized);
  return n.b.reshape(x, {size});
}

/// x as [..., e] where e is all dims from the axis on.
struct Normalized {
  Value x;
  SmallVector<int64_t> shape, dims;
};
Normalized normalizedInput(NodeImport &n) {
  Value x = n.in(0);
  SmallVector<int64_t> shape = n.b.shape(x);
  int64_t axis = n.axis(n.integer("axis", -1), int64_t(shape.size()));
  SmallVector<int64_t> dims(shape.begin() + std::min<int64_t>(axis, int64_t(shape.size())), shape.end());
  SmallVector<int64_t> flat(shape.begin(), shape.end() - int64_t(dims.size()));
  flat.push_back(elementCount(dims));
  return {n.b.reshape(x, flat), shape, dims};
}

Results layerNorm(NodeImport &n) {
  if (n.b.rank(n.in(0)) == 0)
    return {n.b.fail("a norm of a scalar")};
  Normalized input = normalizedInput(n);
  Value weight = n.has(1) ? perElement(n, n.in(1), input.dims) : Value();
  Value bias = n.has(2) ? perElement(n, n.in(2), input.dims) : Value();
  double epsilon = n.number("epsilon", 1e-5f);
  Value result = n.b.reshape(normOf(n, NormKind::Layer, input.x, weight, bias, epsilon), input.shape);
  if (!n.wantsOutput(1) && !n.wantsOutput(2))
    return {result};
  // Mean and 1 / deviation, with size 1 along the normalized dims.
  Value x = stashed(n, input.x), mean = meanLast(n, x), centered = n.b.sub(x, mean);
  Value variance = n.b.add(meanLast(n, n.b.mul(centered, centered)), n.b.scalar(epsilon, mean));
  SmallVector<int64_t> shape = input.shape;
  std::fill(shape.end() - int64_t(input.dims.size()), shape.end(), 1);
  return {result, n.b.reshape(mean, shape),
          n.b.reshape(n.b.unary<nn::ReciprocalOp>(n.b.unary<nn::SqrtOp>(variance)), shape)};
}

Results rmsNorm(NodeImport &n) {
  if (n.b.rank(n.in(0)) == 0)
    return {n.b.fail("a norm of a scalar")};
  Normalized input = normalizedInput(n);
  Value weight = n.has(1) ? perElement(n, n.in(1), input.dims) : Value(), x = input.x;
  // The scale and the result may be of another type than the input; the norm is of the wider one.
  DType own = n.b.dtype(x), type = weight ? n.b.dtype(weight) : own;
  if (own != type) {
    DType wide = byteSize(own) > byteSize(type) ? own : byteSize(type) > 2 ? type : DType::F32;
    x = n.b.cast(x, wide);
    weight = n.b.cast(weight, wide);
  }
  double epsilon = n.number("epsilon", 1e-5f);
  Value result = n.b.cast(n.b.reshape(normOf(n, NormKind::Rms, x, weight, Value(), epsilon), input.shape), type);
  if (!n.wantsOutput(1))
    return {result};
  x = stashed(n, input.x);
  Value square = meanLast(n, n.b.mul(x, x));
  Value deviation = n.b.unary<nn::SqrtOp>(n.b.add(square, n.b.scalar(epsilon, square)));
  SmallVector<int64_t> shape = input.shape;
  std::fill(shape.end() - int64_t(input.dims.size()), shape.end(), 1);
  return {result, n.b.reshape(n.b.unary<nn::ReciprocalOp>(deviation), shape)};
}

/// x over its sum of magnitudes (p = 1) or its length (p = 2); a row of zeros stays.
Results lpNorm(NodeImport &n) {
  Value x = n.in(0);
  int64_t p = n.integer("p", 2), axis = n.axis(n.integer("axis", -1), n.b.rank(x));
  if (p != 1 && p != 2)
    return {n.b.fail("its p of " + std::to_string(p) + " must be 1 or 2")};
  if (!n.b.status().ok())
    return {x};
  Value size = p == 1 ? n.b.reduce(ReduceKind::Sum, n.b.unary<nn::AbsOp>(x), {axis})
                      : lengthOf(n, n.b.reduce(ReduceKind::Sum, n.b.mul(x, x), {axis}));
  Value isZero = n.b.compare(nn::ComparePredicate::eq, size, n.b.scalar(0, size));
  return {n.b.div(x, n.b.select(isZero, n.b.scalar(1, size), size))};
}

const OnnxOp normTable[] = {
    {"Softmax", 1, inF32<flatSoftmax<false>>},
    {"Softmax", 13, inF32<softmax<false>>},
    {"LogSoftmax", 1, inF32<flatSoftmax<true>>},
    {"LogSoftmax", 13, inF32<softmax<true>>},
    {"LpNormalization", 1, inF32<lpNorm>},
    {"LayerNormalization", 1, layerNorm}, // since 17; ONNX Runtime's optimizer writes it into older models
    {"LayerNormalization", 1, layerNorm, "com.microsoft"},
    {"RMSNormalization", 23, rmsNorm},
    {"SimplifiedLayerNormalization", 1, rmsNorm},
    {"SimplifiedLayerNormalization", 1, rmsNorm, "com.microsoft"},
};

} // namespace

ArrayRef<OnnxOp> normOps() { return normTable; }

} // namespace hpc::onnx
