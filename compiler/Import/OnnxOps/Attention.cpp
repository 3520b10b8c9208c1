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

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A bias of four dims; what a boolean mask hides gets -inf.
Value fourDims(NodeImport &n, Value bias, Value like) {
  if (n.b.dtype(bias) == DType::Bool)
    bias = n.b.select(bias, n.b.scalar(0, like), n.b.scalar(-infinity, like));
  SmallVector<int64_t> shape = n.b.shape(bias);
  if (shape.size() < 4)
    shape.insert(shape.begin(), 4 - shape.size(), 1);
  return n.b.reshape(bias, shape);
}

/// The result with 0 for the queries that see no key, as the standard wants (its errata of opset 23): those whose bias
/// and causal mask are -inf everywhere. A softmax makes NaN of them, and the next layer of all that reads them.
Value zeroUnseen(NodeImport &n, Value result, Value bias, int64_t queries, int64_t keys, bool causal) {
  if (causal) {
    SmallVector<int64_t> rows, columns;
    rows.assign(llvm::seq<int64_t>(0, queries).begin(), llvm::seq<int64_t>(0, queries).end());
    columns.assign(llvm::seq<int64_t>(0, keys).begin(), llvm::seq<int64_t>(0, keys).end());
    Value visible = n.b.compare(nn::ComparePredicate::ge, n.b.reshape(n.b.indices(rows), {queries, 1}),
                                n.b.reshape(n.b.indices(columns), {1, keys}));
    bias = n.b.select(visible, bias, n.b.scalar(-infinity, bias));
  }
  Value highest = n.b.reduce(nn::ReduceKind::max, bias, {3});
  Value unseen = n.b.compare(nn::ComparePredicate::eq, highest, n.b.scalar(-infinity, highest));
  return n.b.select(unseen, n.b.scalar(0, result), result);
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
  if (bias && n.b.status().ok())
    result = zeroUnseen(n, result, bias, n.b.shape(query)[2], n.b.shape(key)[2], causal);
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
