// Quantisation: whole numbers with a scale and a zero point, per tensor, per axis or per block. Scaling uses f32;
// products of whole numbers are exact: of bytes as f32 sums of as many bf16 products as f32 holds, else in f64.
#include "compiler/Import/OnnxOps/Quantization.h"
#include "compiler/Import/OnnxOps/Dims.h"
#include "compiler/Import/OnnxOps/Narrow.h"
#include "runtime/base/IntegerMath.h"

namespace hpc::onnx {
namespace {

/// A scale or zero point as it broadcasts to `shape`: one number, one per index of `axis`, or one per block of it.
Value spread(NodeImport &n, Value x, ArrayRef<int64_t> shape, int64_t axis, int64_t block) {
  SmallVector<int64_t> own = n.b.shape(x);
  if (elementCount(own) == 1 && block == 0)
    return n.b.reshape(x, {});
  if (block == 0) {
    if (own.size() != 1 || own[0] != shape[size_t(axis)])
      return n.b.fail("a scale or zero point must be one number, or one for each of the " +
                      std::to_string(shape[size_t(axis)]) + " indices of axis " + std::to_string(axis));
    SmallVector<int64_t> along(shape.size(), 1);
    along[size_t(axis)] = own[0];
    return n.b.reshape(x, along);
  }
  SmallVector<int64_t> expected(shape);
  expected[size_t(axis)] = ceilDiv(shape[size_t(axis)], block);
  if (own != expected)
    return n.b.fail("a scale or zero point must have one number for each block of " + std::to_string(block) +
                    " along axis " + std::to_string(axis));
  SmallVector<int64_t> split = own, repeated, merged = own, starts(own.size(), 0), steps(own.size(), 1);
  split.insert(split.begin() + axis + 1, 1);
  repeated = split;
  repeated[size_t(axis) + 1] = block;
  merged[size_t(axis)] *= block;
  return n.b.slice(n.b.reshape(n.b.broadcast(n.b.reshape(x, split), repeated), merged), starts, steps, shape);
}

Scaling scalingOf(NodeImport &n, Value x) {
  SmallVector<int64_t> shape = n.b.shape(x);
  int64_t block = n.integer("block_size", 0), axis = 0;
  if (block < 0) {
    n.b.fail("a block size of " + std::to_string(block) + "; it must be 1 or more, or 0 for no blocks");
    block = 0;
  }
  if (elementCount(n.b.shape(n.in(1))) != 1 || block != 0)
    axis = n.axis(n.integer("axis", 1), int64_t(shape.size()));
  if (!n.b.status().ok())
    return {n.in(1), Value()};
  Scaling scaling;
  scaling.scale = n.b.cast(spread(n, fromNarrow(n, n.in(1)), shape, axis, block), DType::F32);
  if (n.has(2))
    scaling.zero = n.b.cast(spread(n, fromNarrow(n, n.in(2)), shape, axis, block), DType::F32);
  return scaling;
}

Results quantizeLinear(NodeImport &n) {
  int64_t code = n.integer("output_dtype", 0);
  const NarrowType *narrow = n.has(2) ? n.b.narrowType(n.in(2)) : narrowTypeOfCode(code);
  std::optional<DType> type = n.has(2) ? n.b.dtype(n.in(2)) : code ? dtypeOfCode(code) : DType::U8;
  if (!narrow && (!type || isFloat(*type)))
    return {n.unsupported("quantisation to " + (type ? std::string(name(*type)) : typeNameOfCode(code)))};
  Scaling scaling = scalingOf(n, n.in(0));
  if (!narrow)
    return {quantized(n, n.in(0), scaling, *type)};
  Value real = n.b.div(n.b.cast(n.in(0), DType::F32), scaling.scale);
  if (!narrow->isFloat())
    real = n.b.unary<nn::RoundOp>(real);
  if (scaling.zero)
    real = n.b.add(real, scaling.zero);
  return {narrow->isFloat() ? toNarrow(n, real, *narrow, n.integer("saturate", 1)) : clampedNarrow(n, real, *narrow)};
}

Results dequantizeLinear(NodeImport &n) {
  int64_t code = n.integer("output_dtype", 0);
  std::optional<DType> type = code ? dtypeOfCode(code) : n.b.narrowType(n.in(1)) ? DType::F32 : n.b.dtype(n.in(1));
  if (!type || !isFloat(*type))
    return {n.unsupported("numbers of type " + (type ? std::string(name(*type)) : typeNameOfCode(code)))};
  Scaling scaling = scalingOf(n, n.in(0));
  return {n.b.cast(dequantized(n, fromNarrow(n, n.in(0)), scaling), *type)};
}

/// To u8, by the range of x widened to hold 0.
Results dynamicQuantizeLinear(NodeImport &n) {
  Value x = n.in(0);
  Scaling scaling = dynamicScaling(n, x, llvm::to_vector(llvm::seq<int64_t>(0, n.b.rank(x))));
  scaling = {n.b.reshape(scaling.scale, {}), n.b.reshape(scaling.zero, {})};
  return {quantized(n, x, scaling, DType::U8), scaling.scale, n.b.cast(scaling.zero, DType::U8)};
}

/// x - zero in a float type. A zero point is one number, or one for each row (operand 0) or column (operand 1).
Value centered(NodeImport &n, Value x, Value zero, bool isLeft, DType type) {
  if (isFloat(n.b.dtype(x)))
    return n.b.fail("its operands must be whole numbers");
  if (!zero)
    return n.b.cast(x, type);
  if (n.b.rank(zero) == 1 && isLeft && n.b.rank(x) > 1 && n.b.shape(zero)[0] != 1)
    zero = insertDim(n, zero, 1);
  DType wide = type == DType::F64 ? type : DType::F32;
  return n.b.cast(n.b.sub(n.b.cast(x, wide), n.b.cast(zero, wide)), type);
}

/// Null for a zero point that is known to be 0.
Value nonZero(NodeImport &n, Value zero) {
  std::shared_ptr<const KnownTensor> known = zero ? n.b.content(zero) : nullptr;
  for (int64_t i = 0; known && i < known->compact.size(); ++i)
    if (known->compact.number(i) != 0)
      return zero;
  return known ? Value() : zero;
}

/// The largest magnitude of a number of 8 bits less its zero point.
int64_t largest(NodeImport &n, Value x, Value zero) { return zero || n.b.dtype(x) == DType::U8 ? 255 : 128; }

/// Elements [start, start + size) of a dim.
Value piece(NodeImport &n, Value x, int64_t dim, int64_t start, int64_t size) {
  SmallVector<int64_t> sizes = n.b.shape(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (sizes[size_t(dim)] == size)
    return x;
  starts[size_t(dim)] = start;
  sizes[size_t(dim)] = size;
  return n.b.slice(x, starts, steps, sizes);
}

Results matmulInteger(NodeImport &n) {
  Value product = wholeProduct(n, n.in(0), inputOrNone(n, 2), n.in(1), inputOrNone(n, 3));
  return {n.b.cast(n.b.cast(product, DType::I64), DType::I32)}; // wraps, as a sum of i32 does
}

/// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
Results qLinearMatMul(NodeImport &n) {
  Value product = wholeProduct(n, n.in(0), n.in(2), n.in(3), n.in(5));
  auto scale = [&](size_t index) {
    Value x = n.b.cast(n.in(index), DType::F32);
    bool isPerRow = index != 4 && n.b.rank(x) == 1 && n.b.shape(x)[0] != 1;
    return isPerRow ? insertDim(n, x, 1) : x;
  };
  Value factor = n.b.div(n.b.mul(scale(1), scale(4)), scale(6));
  Value real = n.b.mul(n.b.cast(product, DType::F32), factor);
  DType type = n.b.dtype(n.in(7));
  if (isFloat(type))
    return {n.unsupported(std::string("a product quantised to ") + name(type))};
  Value shifted = n.b.add(n.b.unary<nn::RoundOp>(real), n.b.cast(n.in(7), DType::F32));
  return {n.b.cast(shifted, type)};
}

const OnnxOp quantizationTable[] = {
    {"QuantizeLinear", 10, quantizeLinear},
    {"DequantizeLinear", 10, dequantizeLinear},
    {"DynamicQuantizeLinear", 11, dynamicQuantizeLinear},
    {"MatMulInteger", 10, matmulInteger},
    {"QLinearMatMul", 10, qLinearMatMul},
};

} // namespace

Value quantized(NodeImport &n, Value x, const Scaling &scaling, DType to) {
  Value whole = n.b.unary<nn::RoundOp>(n.b.div(n.b.cast(x, DType::F32), scaling.scale));
  return n.b.cast(scaling.zero ? n.b.add(whole, scaling.zero) : whole, to);
}

Value dequantized(NodeImport &n, Value x, const Scaling &scaling) {
  Value real = n.b.cast(x, DType::F32);
  return n.b.mul(scaling.zero ? n.b.sub(real, scaling.zero) : real, scaling.scale);
}

Scaling dynamicScaling(NodeImport &n, Value x, ArrayRef<int64_t> axes) {
  Value zero = n.b.scalar(0, x), most = n.b.scalar(255, x);
  Value high = n.b.binary<nn::MaxOp>(n.b.reduce(ReduceKind::Max, x, axes), zero);
  Value low = n.b.binary<nn::MinOp>(n.b.reduce(ReduceKind::Min, x, axes), zero);
  Value scale = n.b.div(n.b.sub(high, low), most);
  // A range of 0 has no scale; ONNX Runtime takes 1.
  scale = n.b.select(n.b.compare(nn::ComparePredicate::eq, scale, zero), n.b.scalar(1, x), scale);
  Value point = n.b.div(n.b.sub(zero, low), scale);
  return {scale, n.b.unary<nn::RoundOp>(n.b.binary<nn::MinOp>(n.b.binary<nn::MaxOp>(point, zero), most))};
}

Value roundedDynamically(NodeImport &n, Value x, ArrayRef<int64_t> axes) {
  Scaling scaling = dynamicScaling(n, x, axes);
  return dequantized(n, quantized(n, x, scaling, DType::U8), scaling);
}

Value wholeProduct(NodeImport &n, Value x, Value xZero, Value y, Value yZero) {
  auto isByte = [&](Value value) { return n.b.dtype(value) == DType::U8 || n.b.dtype(value) == DType::I8; };
  xZero = nonZero(n, xZero);
  yZero = nonZero(n, yZero);
  bool isNarrow = isByte(x) && isByte(y) && n.b.rank(x) > 0 && n.b.rank(y) > 0;
  DType type = isNarrow ? DType::BF16 : DType::F64;
  Value left = centered(n, x, xZero, true, type), right = centered(n, y, yZero, false, type);
  if (!n.b.status().ok() || !isNarrow)
    return matmulOf(n, left, right);
  // bf16 holds every whole number to 256, and f32 every sum of so many products.
  int64_t dimOfX = n.b.rank(x) - 1, dimOfY = std::max<int64_t>(n.b.rank(y) - 2, 0), count = n.b.shape(x)[size_t(dimOfX)];
  int64_t most = (int64_t(1) << 24) / (largest(n, x, xZero) * largest(n, y, yZero));
  if (count != n.b.shape(y)[size_t(dimOfY)])
    return matmulOf(n, left, right); // its error
  int64_t pieces = std::max<int64_t>(ceilDiv(count, most), 1), size = ceilDiv(count, pieces);
  Value sum;
  for (int64_t start = 0; start == 0 || start < count; start += size) {
    int64_t own = std::min(size, count - start);
    Value product = n.b.cast(matmulOf(n, piece(n, left, dimOfX, start, own), piece(n, right, dimOfY, start, own), true), DType::F64);
    sum = sum ? n.b.add(sum, product) : product;
  }
  return sum;
}

ArrayRef<OnnxOp> quantizationOps() { return quantizationTable; }

} // namespace hpc::onnx
