// Ops of ONNX Runtime's quantiser (domain com.microsoft) on whole numbers with a scale and a zero point. Each is the standard's op on floats
// between a dequantisation of its operands and a quantisation of its result.
#include "compiler/Import/OnnxOps/Quantization.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

/// Inputs `scale` and, if the node has it, the next one: one number each.
Scaling scalingAt(NodeImport &n, size_t scale) {
  auto number = [&](size_t index) {
    Value x = n.in(index);
    if (elementCount(n.b.shape(x)) != 1)
      return n.b.fail("input " + std::to_string(index) + " has " + countText(elementCount(n.b.shape(x)), "number") + "; one is possible");
    return n.b.cast(n.b.reshape(x, {}), DType::F32);
  };
  return {number(scale), n.has(scale + 1) ? number(scale + 1) : Value()};
}

/// Input `index`, followed by its scale and zero point, as floats.
Value operand(NodeImport &n, size_t index) { return dequantized(n, n.in(index), scalingAt(n, index + 1)); }

/// `real` quantised by the scale and zero point at `scale`, to the type of the zero point, or of the first operand.
Results requantized(NodeImport &n, Value real, size_t scale, size_t like) {
  Scaling scaling = scalingAt(n, scale);
  DType type = n.b.dtype(n.in(n.has(scale + 1) ? scale + 1 : like));
  return {isFloat(type) ? n.b.fail(std::string("its zero point is ") + name(type) + "; whole numbers are possible") : quantized(n, real, scaling, type)};
}

/// The standard's op of that opset, with the node's attributes, on `values`.
Value standardOn(NodeImport &n, const char *op, int64_t version, ArrayRef<Value> values) {
  if (!n.b.status().ok())
    return values.front();
  Node inner = n.node;
  inner.op = op;
  inner.domain.clear();
  NodeImport standard = n.in(inner, version, values);
  Value result = findOnnxOp("", op, version)->import(standard).front();
  for (const auto &[name, value] : n.node.attributes)
    n.ignoreAttributes({name.c_str()});
  if (std::optional<std::string> unknown = standard.unknownAttribute(); unknown && n.b.status().ok())
    return n.unsupported("attribute '" + *unknown + "'");
  return result;
}

/// x, scale, zero; scale and zero of the result.
template <const char *op, int64_t version> Results unaryOfCodes(NodeImport &n) {
  return requantized(n, standardOn(n, op, version, {operand(n, 0)}), 3, 0);
}
/// a, scale, zero; b, scale, zero; scale and zero of the result.
template <const char *op> Results binaryOfCodes(NodeImport &n) { return requantized(n, standardOn(n, op, 14, {operand(n, 0), operand(n, 3)}), 6, 0); }

constexpr char addName[] = "Add", mulName[] = "Mul", sigmoidName[] = "Sigmoid", leakyReluName[] = "LeakyRelu", averagePoolName[] = "AveragePool",
               globalAveragePoolName[] = "GlobalAveragePool";

/// Its attribute `opset` gives the opset of the softmax: along one axis from 13 on, over all dims from it before.
Results softmaxOfCodes(NodeImport &n) {
  int64_t version = n.integer("opset", 13);
  Node without = n.node;
  without.attributes.erase("opset");
  NodeImport inner = n.in(without, n.version, n.allInputs());
  Results results = requantized(n, standardOn(inner, "Softmax", version, {operand(n, 0)}), 3, 0);
  n.ignoreAttributes({"axis"});
  return results;
}

/// A condition; x, scale, zero; y, scale, zero; scale and zero of the result.
Results whereOfCodes(NodeImport &n) { return requantized(n, n.b.select(n.in(0), operand(n, 1), operand(n, 4)), 7, 1); }

/// Scale and zero of the result; then a tensor, its scale and its zero point, for each part.
Results concatOfCodes(NodeImport &n) {
  SmallVector<Value> parts;
  for (size_t index = 2, count = n.numInputs(); index < count; index += 3)
    parts.push_back(operand(n, index));
  if (parts.empty())
    return {n.b.fail("it has no parts")};
  return requantized(n, standardOn(n, "Concat", 13, parts), 0, 2);
}

/// A float product of whole numbers, scaled by `scale`, plus input `bias` where the node has it.
Value scaledSum(NodeImport &n, Value product, Value scale, size_t bias) {
  Value result = n.b.mul(n.b.cast(product, DType::F32), scale);
  return n.has(bias) ? n.b.add(result, n.in(bias)) : result;
}

/// a, b, their scales, their zero points, a bias of floats.
Results matmulIntegerToFloat(NodeImport &n) {
  Value product = wholeProduct(n, n.in(0), inputOrNone(n, 4), n.in(1), inputOrNone(n, 5));
  Value result = n.b.mul(n.b.cast(product, DType::F32), n.b.mul(n.b.cast(n.in(2), DType::F32), n.b.cast(n.in(3), DType::F32)));
  if (n.has(6))
    result = n.b.add(result, n.b.cast(n.in(6), DType::F32));
  return {n.b.cast(result, n.b.dtype(n.in(2)))};
}

/// a in floats, which is quantised as one tensor; b, its scale and zero point; a bias of floats.
Results dynamicQuantizeMatMul(NodeImport &n) {
  Value x = n.in(0);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, n.b.rank(x)));
  Scaling scaling = dynamicScaling(n, x, axes);
  scaling = {n.b.reshape(scaling.scale, {}), n.b.reshape(scaling.zero, {})};
  Value whole = quantized(n, x, scaling, DType::U8);
  Value product = wholeProduct(n, whole, n.b.cast(scaling.zero, DType::U8), n.in(1), inputOrNone(n, 3));
  return {scaledSum(n, product, n.b.mul(scaling.scale, n.in(2)), 4)};
}

/// a, scale, zero; b, scale, zero; a bias of sums; scale and zero of the result, which is of floats without them.
Results gemmOfCodes(NodeImport &n) {
  auto turned = [&](size_t index, const char *attribute) {
    Value x = n.in(index);
    return n.integer(attribute, 0) && n.b.rank(x) == 2 ? n.b.transpose(x, {1, 0}) : x;
  };
  Value product = wholeProduct(n, turned(0, "transA"), n.in(2), turned(3, "transB"), n.in(5));
  if (n.has(6))
    product = n.b.add(product, n.b.cast(n.in(6), n.b.dtype(product)));
  Value scale = n.b.mul(n.in(1), n.in(4));
  Value real = n.b.mul(n.b.cast(product, DType::F32), n.b.mul(scale, n.b.scalar(n.number("alpha", 1), scale)));
  return n.has(7) ? requantized(n, real, 7, 0) : Results{real};
}

constexpr char quantizerDomain[] = "com.microsoft";
const OnnxOp quantizedTable[] = {
    {"QLinearAdd", 1, binaryOfCodes<addName>, quantizerDomain},
    {"QLinearMul", 1, binaryOfCodes<mulName>, quantizerDomain},
    {"QLinearSigmoid", 1, unaryOfCodes<sigmoidName, 13>, quantizerDomain},
    {"QLinearLeakyRelu", 1, unaryOfCodes<leakyReluName, 16>, quantizerDomain},
    {"QLinearAveragePool", 1, unaryOfCodes<averagePoolName, 19>, quantizerDomain},
    {"QLinearGlobalAveragePool", 1, unaryOfCodes<globalAveragePoolName, 1>, quantizerDomain},
    {"QLinearSoftmax", 1, softmaxOfCodes, quantizerDomain},
    {"QLinearWhere", 1, whereOfCodes, quantizerDomain},
    {"QLinearConcat", 1, concatOfCodes, quantizerDomain},
    {"MatMulIntegerToFloat", 1, matmulIntegerToFloat, quantizerDomain},
    {"DynamicQuantizeMatMul", 1, dynamicQuantizeMatMul, quantizerDomain},
    {"QGemm", 1, gemmOfCodes, quantizerDomain},
};

} // namespace

ArrayRef<OnnxOp> quantizedOps() { return quantizedTable; }

} // namespace hpc::onnx
