// The standard's own Attention (opset 23), as one nn.attention.
#include "compiler/Import/OnnxOps/OnnxOp.h"

#include <cmath>
#include <limits>

namespace hpc::onnx {
namespace {

/// [b, s, heads * d] -> [b, heads, s, d]; rank 4 stays.
Value splitHeads(NodeImport &n, Value x, int64_t heads) {
  SmallVector<int64_t> shape = n.b.shape(x);
  if (shape.size() == 4)
    return x;
  if (shape.size() != 3 || heads < 1 || shape[2] % heads)
    return n.b.fail("queries, keys and values must be [batch, heads, length, size] or [batch, length, heads * size]");
  return n.b.transpose(n.b.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

/// A bias of four dims. What a boolean mask hides gets the lowest number, as onnxruntime does: with -inf a query that
/// sees nothing would be NaN, and in the next layer make NaN of every query that must not see it.
Value fourDims(NodeImport &n, Value bias, Value like) {
  if (n.b.dtype(bias) == DType::Bool) {
    double lowest = n.b.dtype(like) == DType::F16   ? -65504.0
                    : n.b.dtype(like) == DType::F64 ? std::numeric_limits<double>::lowest()
                                                    : -0x1.fep127;
    bias = n.b.select(bias, n.b.scalar(0, like), n.b.scalar(lowest, like));
  }
  SmallVector<int64_t> shape = n.b.shape(bias);
  if (shape.size() < 4)
    shape.insert(shape.begin(), 4 - shape.size(), 1);
  return n.b.reshape(bias, shape);
}

Results attention(NodeImport &n) {
  if (n.number("softcap", 0) != 0 || n.wantsOutput(3))
    return {n.unsupported("a softcap, or scores as an output")};
  if (n.has(6))
    return {n.unsupported("lengths of keys as an input")};
  for (const auto &[name, attribute] : n.node.attributes)
    if (name.find("window") != std::string::npos)
      return {n.unsupported("attribute '" + name + "'")};
  bool flat = n.b.rank(n.in(0)) == 3, causal = n.integer("is_causal", 0);
  Value query = splitHeads(n, n.in(0), n.integer("q_num_heads", 0));
  Value key = splitHeads(n, n.in(1), n.integer("kv_num_heads", 0));
  Value value = splitHeads(n, n.in(2), n.integer("kv_num_heads", 0));
  if (n.has(4)) {
    if (causal)
      return {n.unsupported("a causal mask with past keys")};
    key = n.b.concat({n.in(4), key}, 2);
    value = n.b.concat({n.in(5), value}, 2);
  }
  if (!n.b.status().ok())
    return {n.in(0)};
  Value bias = n.has(3) ? fourDims(n, n.in(3), query) : Value();
  double scale = n.number("scale", 1 / std::sqrt(double(n.b.shape(query).back())));
  Value result = n.b.attention(query, key, value, bias, scale, causal);
  if (flat) {
    SmallVector<int64_t> shape = n.b.shape(result);
    if (shape.size() == 4)
      result = n.b.reshape(n.b.transpose(result, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
  }
  return {result, key, value};
}

const OnnxOp table[] = {{"Attention", 23, attention}};

} // namespace

ArrayRef<OnnxOp> attentionOps() { return table; }

} // namespace hpc::onnx
