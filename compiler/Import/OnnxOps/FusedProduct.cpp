// Products of ONNX Runtime's optimizer (domain com.microsoft): with transposes of any dims, with an activation after
// them, and with weights of a few bits.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

/// [m, batch ..., k] -> [batch ..., m, k]
Value batchFirst(NodeImport &n, Value x) {
  SmallVector<int64_t> permutation;
  int64_t rank = n.b.rank(x);
  for (int64_t dim = 1; dim + 1 < rank; ++dim)
    permutation.push_back(dim);
  permutation.append({0, rank - 1});
  return rank < 2 ? x : n.b.transpose(x, permutation);
}

/// alpha * A B, each with its batch dims between its two others, or its last two swapped.
Results fusedMatmul(NodeImport &n) {
  Value x = n.in(0), y = n.in(1);
  // A vector has no dims to swap; it is a row on the left and a column on the right.
  bool isRow = n.b.rank(x) == 1, isColumn = n.b.rank(y) == 1;
  if (isRow)
    x = n.b.reshape(x, {1, n.b.shape(x)[0]});
  if (isColumn)
    y = n.b.reshape(y, {n.b.shape(y)[0], 1});
  if (n.integer("transBatchA", 0))
    x = batchFirst(n, x);
  if (n.integer("transBatchB", 0))
    y = batchFirst(n, y);
  bool transposesX = !isRow && n.integer("transA", 0), transposesY = !isColumn && n.integer("transB", 0);
  Value product = n.b.cast(scaledProduct(n, x, y, transposesX, transposesY, n.number("alpha", 1)), n.b.dtype(x));
  SmallVector<int64_t> shape = n.b.shape(product);
  if (shape.size() < 2)
    return {product}; // after an error
  if (isColumn)
    shape.pop_back();
  if (isRow)
    shape.erase(shape.end() - (isColumn ? 1 : 2));
  return {n.b.reshape(product, shape)};
}

/// Bytes [rows, columns] as numbers of `bits` bits each, the low ones first: [rows, columns * 8 / bits].
Value unpacked(NodeImport &n, Value bytes, int64_t bits) {
  SmallVector<int64_t> shape = n.b.shape(bytes);
  if (bits == 8 || shape.size() != 2)
    return bytes;
  SmallVector<Value> parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    Value high = shift ? n.b.div(bytes, n.b.scalar(double(1 << shift), bytes)) : bytes;
    Value part = shift + bits < 8 ? n.b.binary<nn::ModOp>(high, n.b.scalar(double(1 << bits), bytes)) : high;
    parts.push_back(n.b.reshape(part, {shape[0], shape[1], 1}));
  }
  return n.b.reshape(n.b.concat(parts, 2), {shape[0], shape[1] * 8 / bits});
}

/// A B^T of B [N, K], kept as blocks along K of a few bits, one scale and one zero point a block.
Results matmulNBits(NodeImport &n) {
  n.ignoreAttributes({"accuracy_level"}); // the least that will do
  int64_t bits = n.integer("bits", 4), size = n.integer("block_size", 0), rows = n.integer("N", 0), columns = n.integer("K", 0);
  if (n.has(4))
    return {n.unsupported("an order of columns (g_idx)")};
  constexpr int64_t most = int64_t(1) << 31; // of rows, columns or a block: their products do not overflow
  if ((bits != 2 && bits != 4 && bits != 8) || size < 8 / bits || size > most || size * bits % 8)
    return {n.unsupported(std::to_string(bits) + " bits in blocks of " + std::to_string(size))};
  if (rows < 1 || rows > most || columns < 1 || columns > most)
    return {n.b.fail("N = " + std::to_string(rows) + ", K = " + std::to_string(columns) + " is no size of a weight; 1 to 2^31 are")};
  int64_t blocks = (columns + size - 1) / size;
  auto flat = [&](Value x, int64_t width, const char *what) {
    if (elementCount(n.b.shape(x)) != rows * width)
      return n.b.fail(std::string(what) + " must have " + std::to_string(rows) + " x " + countText(width, "element"));
    return n.b.reshape(x, {rows, width});
  };
  // The bytes stay a parameter, even if they are known.
  Value packed = n.b.dtype(n.in(1)) == DType::U8 ? n.b.real(n.b.parameter(n.in(1))) : n.b.fail("its weights must be uint8");
  Value numbers = unpacked(n, flat(packed, blocks * size * bits / 8, "its weights"), bits);
  Value scales = flat(n.in(2), blocks, "its scales");
  DType type = n.b.dtype(scales);
  if (type != n.b.dtype(n.in(0)))
    return {n.b.fail(std::string("its scales are ") + name(type) + " and its input is " + name(n.b.dtype(n.in(0))) +
                     "; both have one type: cast the scales")};
  Value zeros = n.b.scalar(double(1 << (bits - 1)), scales);
  if (n.has(3)) {
    zeros = n.in(3);
    if (n.b.dtype(zeros) == DType::U8) {
      int64_t bytes = (blocks * bits + 7) / 8;
      zeros = unpacked(n, flat(zeros, bytes, "its zero points"), bits);
      if (n.b.status().ok())
        zeros = n.b.slice(zeros, {0, 0}, {1, 1}, {rows, blocks});
    }
    zeros = n.b.reshape(n.b.cast(flat(zeros, blocks, "its zero points"), type), {rows, blocks, 1});
  }
  if (!n.b.status().ok())
    return {n.in(0)};
  Value centered = n.b.sub(n.b.cast(n.b.reshape(numbers, {rows, blocks, size}), type), zeros);
  Value weight = n.b.reshape(n.b.mul(centered, n.b.reshape(scales, {rows, blocks, 1})), {rows, blocks * size});
  weight = n.b.cast(n.b.slice(weight, {0, 0}, {1, 1}, {rows, columns}), n.b.dtype(n.in(0)));
  Value product = n.b.matmul(n.in(0), weight, false, true);
  return {n.has(5) ? n.b.add(product, n.in(5)) : product};
}

/// The attributes of an activation inside another node: its own name and the number.
using Numbers = std::map<std::string, double>;

/// The standard's activation of that name, applied to x.
Value activated(NodeImport &n, Value x, const Numbers &numbers) {
  Node inner;
  inner.name = n.node.name;
  inner.op = n.text("activation", "");
  inner.modulePath = n.node.modulePath;
  for (const auto &[name, number] : numbers) {
    Attribute &attribute = inner.attributes[name];
    attribute.kind = Attribute::Float;
    attribute.f = float(number);
  }
  // Those that ONNX Runtime fuses; before opset 11 Clip has its limits as attributes.
  const int64_t version = inner.op == "Clip" ? 6 : 22;
  static const StringSet<> known = {"Celu", "Clip", "Elu",  "HardSigmoid", "LeakyRelu", "Relu",
                                    "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"};
  const OnnxOp *op = known.contains(inner.op) ? findOnnxOp("", inner.op, version) : nullptr;
  if (!op)
    return n.unsupported("activation '" + inner.op + "'");
  NodeImport activation = n.in(inner, version, x);
  return op->import(activation).front();
}

/// The standard's op of that name, with the node's attributes.
Value standardOp(NodeImport &n, const char *name, int64_t version) {
  return findOnnxOp("", name, version)->import(n).front();
}

/// An activation of alpha A B + beta C.
Results fusedGemm(NodeImport &n) {
  Numbers numbers;
  for (const char *name : {"alpha", "beta", "gamma"})
    if (std::string own = std::string("activation_") + name; n.hasAttribute(own))
      numbers[name] = n.number(own, 0);
  Value product = standardOp(n, "Gemm", 13);
  return {activated(n, product, numbers)};
}

/// An activation applied to a convolution plus an added input.
Results fusedConv(NodeImport &n) {
  n.ignoreAttributes({"kernel_shape"}); // the weight's
  Value result = standardOp(n, "Conv", 11);
  if (n.has(3))
    result = n.b.add(result, n.in(3));
  if (!n.hasAttribute("activation"))
    return {result};
  static const std::map<std::string, std::vector<const char *>> names = {
      {"LeakyRelu", {"alpha"}}, {"Clip", {"min", "max"}}, {"HardSigmoid", {"alpha", "beta"}}};
  Numbers numbers;
  auto own = names.find(n.text("activation", ""));
  n.ignoreAttributes({"activation_params"}); // read here
  auto given = n.node.attributes.find("activation_params");
  if (given != n.node.attributes.end()) {
    const size_t known = own == names.end() ? 0 : own->second.size();
    if (given->second.floats.size() > known)
      return {n.unsupported(countText(given->second.floats.size(), "number") + " for activation '" + n.text("activation", "") + "'")};
    for (size_t i = 0; i < given->second.floats.size(); ++i)
      numbers[own->second[i]] = given->second.floats[i];
  }
  return {activated(n, result, numbers)};
}

const OnnxOp fusedProductTable[] = {
    {"FusedGemm", 1, fusedGemm, "com.microsoft"},
    {"FusedConv", 1, fusedConv, "com.microsoft"},
    {"FusedMatMul", 1, fusedMatmul, "com.microsoft"},
    {"TransposeMatMul", 1, fusedMatmul, "com.microsoft"},
    {"MatMulNBits", 1, matmulNBits, "com.microsoft"},
};

} // namespace

ArrayRef<OnnxOp> fusedProductOps() { return fusedProductTable; }

} // namespace hpc::onnx
