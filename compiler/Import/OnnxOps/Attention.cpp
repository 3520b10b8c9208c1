// The standard's own Attention (opsets 23 to 25) and RotaryEmbedding (23), and the preview's FlexAttention, whose
// subgraphs modify scores and weights.
#include "compiler/Import/OnnxOps/AttentionParts.h"

#include <cmath>
#include <limits>

namespace hpc::onnx {
namespace {

/// A mask may have fewer keys than there are: the rest is hidden.
Value padMask(NodeImport &n, Value mask, int64_t keys) {
  SmallVector<int64_t> shape = n.b.shape(mask);
  if (shape.empty() || shape.back() >= keys)
    return mask;
  SmallVector<int64_t> low(shape.size(), 0), high(shape.size(), 0);
  high.back() = keys - shape.back();
  Tensor hidden(n.b.dtype(mask), {});
  hidden.setNumber(0, n.b.dtype(mask) == DType::Bool ? 0 : -std::numeric_limits<double>::infinity());
  return n.b.pad(mask, low, high, hidden);
}

/// Query i is at position i + offset; `offset` is i64 and broadcasts to [b, 1, 1, 1].
void addPositions(NodeImport &n, Attending &a, Value offset, bool causal) {
  Value at = n.b.add(queryPositions(n, a.queries()), offset), keys = keyPositions(n, a.keys());
  auto upTo = [&](Value x, Value y) { a.see(n, n.b.compare(nn::ComparePredicate::le, x, y)); };
  if (causal)
    upTo(keys, at);
  if (int64_t left = n.integer("left_window_size", -1); left >= 0)
    upTo(n.b.sub(at, n.b.scalar(double(left), DType::I64)), keys);
  if (int64_t right = n.integer("right_window_size", -1); right >= 0)
    upTo(keys, n.b.add(at, n.b.scalar(double(right), DType::I64)));
}

/// Which keys a query sees, by masks, positions and lengths.
void addMasks(NodeImport &n, Attending &a, int64_t pastKeys) {
  if (n.has(3)) {
    Value mask = fourDims(n, padMask(n, n.in(3), a.keys()));
    if (n.b.dtype(mask) == DType::Bool)
      a.see(n, mask);
    else
      a.bias = mask;
  }
  bool causal = n.integer("is_causal", 0);
  Value lengths = n.has(6) ? perBatch(n, n.in(6)) : Value();
  if (lengths) {
    a.see(n, n.b.compare(nn::ComparePredicate::lt, keyPositions(n, a.keys()), lengths));
    addPositions(n, a, n.b.sub(lengths, n.b.scalar(double(a.queries()), DType::I64)), causal);
    return;
  }
  if (causal)
    a.causalOffset = pastKeys;
  addPositions(n, a, n.b.scalar(double(pastKeys), DType::I64), false);
}

Results attention(NodeImport &n) {
  bool flat = n.b.rank(n.in(0)) == 3;
  Attending a;
  a.query = splitHeads(n, n.in(0), n.integer("q_num_heads", 0));
  a.key = splitHeads(n, n.in(1), n.integer("kv_num_heads", 0));
  a.value = splitHeads(n, n.in(2), n.integer("kv_num_heads", 0));
  if (n.has(4) != n.has(5))
    return {n.b.fail("past_key and past_value must be given together")};
  if (n.has(4) && n.has(6))
    return {n.b.fail("nonpad_kv_seqlen counts keys of a cache that is kept outside; it cannot come with past_key")};
  int64_t past = 0;
  if (n.has(4)) {
    if (n.b.rank(n.in(4)) != 4 || n.b.rank(n.in(5)) != 4)
      return {n.b.fail("past_key and past_value must be [batch, heads, length, size]")};
    past = n.b.shape(n.in(4))[2];
    a.key = n.b.concat({n.in(4), a.key}, 2);
    a.value = n.b.concat({n.in(5), a.value}, 2);
  }
  if (!n.b.status().ok())
    return {n.in(0)};
  a.scale = n.number("scale", 1 / std::sqrt(double(n.b.shape(a.query).back())));
  a.softcap = n.number("softcap", 0);
  a.zeroUnseen = true;
  addMasks(n, a, past);

  std::optional<DType> precision = dtypeOfCode(n.integer("softmax_precision", 0));
  constexpr Scores modes[] = {Scores::Scaled, Scores::Capped, Scores::Masked, Scores::Weights};
  int64_t mode = n.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return {n.b.fail("qk_matmul_output_mode " + std::to_string(mode) + " is none of 0 to 3")};
  Attended attended = attend(n, a, n.wantsOutput(3) ? modes[mode] : Scores::None, precision);
  Results results = {flat ? mergeHeads(n, attended.result) : attended.result, a.key, a.value};
  if (attended.scores)
    results.push_back(attended.scores);
  return results;
}

/// The node's subgraph `name` applied to x; x where there is none.
Value modified(NodeImport &n, const std::string &name, Value x) {
  const Subgraph *body = n.hasAttribute(name) ? n.graph(name) : nullptr;
  if (!body || !n.b.status().ok())
    return x;
  if (body->inputs.size() != 1 || body->outputs.size() != 1)
    return n.b.fail("its " + name + " must take one value and give one");
  Results results = n.importBody(*body, {x});
  if (!n.b.status().ok())
    return x;
  if (n.b.shape(results[0]) != n.b.shape(x))
    return n.b.fail("its " + name + " must give a value of the shape that it takes");
  return n.b.cast(results[0], n.b.dtype(x));
}

Results flexAttention(NodeImport &n) {
  Attending a;
  a.query = n.in(0), a.key = n.in(1), a.value = n.in(2);
  if (!n.b.status().ok() || !haveFittingShapes(n, a))
    return {n.in(0)};
  DType type = n.b.dtype(a.query);
  DType precision = dtypeOfCode(n.integer("softmax_precision", 0)).value_or(type == DType::F64 ? type : DType::F32);
  if (!isFloat(precision) || !isFloat(type))
    return {n.b.fail("its inputs and its softmax_precision must be floats")};
  double scale = n.number("scale", 1 / std::sqrt(double(n.b.shape(a.query).back())));
  Value scores = n.b.cast(groupedProduct(n, a.query, a.key, true, /*isWide=*/true), precision);
  scores = modified(n, "score_mod", n.b.mul(scores, n.b.scalar(scale, scores)));
  Value weights = modified(n, "prob_mod", n.b.softmax(scores));
  if (!n.b.status().ok())
    return {a.query};
  Value result = groupedProduct(n, weights, n.b.cast(a.value, precision), false);
  return {n.b.cast(result, n.b.dtype(a.value))};
}

/// Angles by position, [b, s, size / 2]: looked up by ids, or as they are.
Value anglesAt(NodeImport &n, Value cache, Value ids) {
  int64_t rank = ids ? 2 : 3;
  if (n.b.rank(cache) != rank || (ids && n.b.rank(ids) != 2))
    return n.b.fail("its angles must be [positions, size / 2] with position_ids [batch, length], or [batch, length, size / 2]");
  return ids ? n.b.gather(n.b.settled(cache), ids, 0) : cache;
}

Results rotaryEmbedding(NodeImport &n) {
  Value x = n.in(0), ids = n.has(3) ? n.in(3) : Value();
  SmallVector<int64_t> shape = n.b.shape(x);
  Value cos = anglesAt(n, n.in(1), ids), sin = anglesAt(n, n.in(2), ids);
  int64_t heads = n.integer("num_heads", 0);
  bool flat = shape.size() == 3;
  if (!n.b.status().ok())
    return {x};
  if ((!flat && shape.size() != 4) || n.b.rank(cos) != 3 || n.b.rank(sin) != 3 ||
      (flat && (heads < 1 || shape[2] % heads)))
    return {n.b.fail("its input must be [batch, heads, length, size], or [batch, length, heads * size] with num_heads")};
  // Heads follow positions in a flat input and precede them otherwise.
  auto spread = [&](Value angles) {
    SmallVector<int64_t> to = n.b.shape(angles);
    to.insert(to.begin() + (flat ? 2 : 1), 1);
    return n.b.reshape(angles, to);
  };
  if (flat)
    x = n.b.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  int64_t size = n.integer("rotary_embedding_dim", 0);
  x = rotate(n, x, spread(cos), spread(sin), size ? size : n.b.shape(x).back(), n.integer("interleaved", 0));
  return {n.b.reshape(x, shape)};
}

const OnnxOp attentionTable[] = {{"Attention", 23, attention},
                        {"RotaryEmbedding", 23, rotaryEmbedding},
                        {"FlexAttention", 1, flexAttention, "ai.onnx.preview"}};

} // namespace

ArrayRef<OnnxOp> attentionOps() { return attentionTable; }

} // namespace hpc::onnx
