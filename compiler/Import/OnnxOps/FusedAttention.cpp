// Attentions of ONNX Runtime's optimizer and exporters (domain com.microsoft): Attention, MultiHeadAttention,
// GroupQueryAttention, RotaryEmbedding. Masks of 0 and 1 add a finite number there, so that a row of which all is masked
// is weighed by its scores; causal masks hide.
#include "compiler/Import/OnnxOps/AttentionParts.h"
#include "runtime/base/CountText.h"

#include <cmath>

namespace hpc::onnx {
namespace {

/// An error that names the first of the inputs and attributes that is there.
bool refuses(NodeImport &n, ArrayRef<std::pair<size_t, const char *>> inputs, ArrayRef<const char *> flags) {
  for (auto [index, what] : inputs)
    if (n.has(index)) {
      n.unsupported(what);
      return true;
    }
  for (const char *flag : flags)
    if (n.integer(flag, 0) != 0) {
      n.unsupported("attribute '" + std::string(flag) + "'");
      return true;
    }
  return false;
}

double scaleOf(NodeImport &n, Value query) {
  double scale = n.number("scale", 0);
  return scale != 0 ? scale : 1 / std::sqrt(double(n.b.shape(query).back()));
}

/// [a0, .., an] of dims `starts` on, `size` long along the last.
Value sliceAlong(NodeImport &n, Value x, int64_t dim, int64_t start, int64_t size) {
  SmallVector<int64_t> sizes = n.b.shape(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (dim >= int64_t(sizes.size()) || start < 0 || size < 0 || start + size > sizes[size_t(dim)])
    return n.b.fail("an operand is too short along dim " + std::to_string(dim));
  sizes[size_t(dim)] = size, starts[size_t(dim)] = start;
  return n.b.slice(x, starts, steps, sizes);
}

/// Index `which` of dim `dim`, which is dropped.
Value pick(NodeImport &n, Value x, int64_t dim, int64_t which) {
  Value one = sliceAlong(n, x, dim, which, 1);
  SmallVector<int64_t> shape = n.b.shape(one);
  if (dim < int64_t(shape.size()))
    shape.erase(shape.begin() + dim);
  return n.b.reshape(one, shape);
}

/// The mask input of Attention and MultiHeadAttention as a bias: 1 is 0, 0 is the filter value. Keys [b, k], queries and
/// keys [b, q, k], ends of the keys [b], ends then starts [2b], or [b, 1, m, m] for all positions.
Value maskBias(NodeImport &n, Value mask, const Attending &a, int64_t past) {
  SmallVector<int64_t> shape = n.b.shape(mask);
  int64_t batch = n.b.shape(a.query)[0], queries = a.queries(), keys = a.keys();
  Value visible;
  if (shape.size() == 1) {
    if (shape[0] != batch && shape[0] != 2 * batch)
      return n.unsupported("a mask of " + countText(shape[0], "number") + " for a batch of " + std::to_string(batch));
    Value at = keyPositions(n, keys);
    visible = n.b.compare(nn::ComparePredicate::lt, at, perBatch(n, sliceAlong(n, mask, 0, 0, batch)));
    if (shape[0] != batch) {
      Value start = perBatch(n, sliceAlong(n, mask, 0, batch, batch));
      visible = n.b.binary<nn::AndOp>(visible, n.b.compare(nn::ComparePredicate::le, start, at));
    }
  } else {
    if (shape.size() == 2)
      mask = n.b.reshape(mask, {shape[0], 1, 1, shape[1]});
    else if (shape.size() == 3)
      mask = n.b.reshape(mask, {shape[0], 1, shape[1], shape[2]});
    else if (shape.size() == 4)
      mask = sliceAlong(n, sliceAlong(n, mask, 2, past, queries), 3, 0, keys);
    else
      return n.b.fail("a mask has " + countText(shape.size(), "dim") + "; 1 to 4 are known");
    visible = n.b.compare(nn::ComparePredicate::gt, mask, n.b.scalar(0, mask));
  }
  return n.b.select(visible, n.b.scalar(0, a.query), n.b.scalar(n.number("mask_filter_value", -10000), a.query));
}

void addBias(NodeImport &n, Attending &a, Value bias) { a.bias = a.bias ? n.b.add(a.bias, bias) : bias; }

/// x of [.., e] and its part of a bias of several; the bias may be missing.
Value withBias(NodeImport &n, Value x, Value bias, int64_t start) {
  return bias ? n.b.add(x, sliceAlong(n, bias, 0, start, n.b.shape(x).back())) : x;
}

// ---- Attention: one product for queries, keys and values -------------------------------------------

Results fusedAttention(NodeImport &n) {
  if (refuses(n, {{6, "a length of the past beside its shape"}}, {"do_rotary", "past_present_share_buffer"}))
    return {n.in(0)};
  n.ignoreAttributes({"mask_filter_value", "rotary_embedding_dim"}); // of a mask that may not be there, of do_rotary
  int64_t heads = n.integer("num_heads", 0);
  Value projected = n.b.matmul(n.in(0), n.in(1));
  if (n.has(2))
    projected = n.b.add(projected, n.in(2));
  if (n.b.rank(projected) != 3)
    return {n.b.fail("its input must be [batch, length, width] and its weights [width, queries + keys + values]")};
  int64_t all = n.b.shape(projected)[2];
  SmallVector<int64_t> sizes = n.integers("qkv_hidden_sizes").value_or(SmallVector<int64_t>(3, all / 3));
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != all)
    return {n.b.fail("queries, keys and values do not add up to the " + countText(all, "column") + " of its weights")};
  auto part = [&](int64_t start, int64_t size) { return splitHeads(n, sliceAlong(n, projected, 2, start, size), heads); };
  Attending a;
  a.query = part(0, sizes[0]);
  a.key = part(sizes[0], sizes[1]);
  a.value = part(sizes[0] + sizes[1], sizes[2]);
  int64_t past = 0;
  if (n.has(4)) { // [2, b, heads, p, d]
    if (n.b.rank(n.in(4)) != 5)
      return {n.b.fail("its past must be [2, batch, heads, length, size]")};
    past = n.b.shape(n.in(4))[3];
    a.key = n.b.concat({pick(n, n.in(4), 0, 0), a.key}, 2);
    a.value = n.b.concat({pick(n, n.in(4), 0, 1), a.value}, 2);
  }
  if (!n.b.status().ok())
    return {n.in(0)};
  a.scale = scaleOf(n, a.query);
  if (n.integer("unidirectional", 0))
    a.causalOffset = past;
  if (n.has(3))
    addBias(n, a, maskBias(n, n.in(3), a, past));
  if (n.has(5))
    addBias(n, a, fourDims(n, n.in(5)));
  Results results = {mergeHeads(n, attend(n, a).result)};
  if (n.wantsOutput(1)) {
    SmallVector<int64_t> shape = n.b.shape(a.key);
    shape.insert(shape.begin(), 1);
    results.push_back(n.b.concat({n.b.reshape(a.key, shape), n.b.reshape(a.value, shape)}, 0));
  }
  return results;
}

// ---- MultiHeadAttention: projected already, in several packings ------------------------------------

Results multiHeadAttention(NodeImport &n) {
  if (refuses(n, {{8, "a length of the past beside its shape"}, {9, "beams"}}, {}))
    return {n.in(0)};
  n.ignoreAttributes({"mask_filter_value"}); // of a mask that may not be there
  int64_t heads = n.integer("num_heads", 0);
  Value bias = n.has(3) ? n.in(3) : Value();
  Attending a;
  auto split = [&](Value x, int64_t start) { return splitHeads(n, withBias(n, x, bias, start), heads); };
  /// [b, s, heads, parts, d]: one part as [b, s, heads * d].
  auto unpack = [&](Value x, int64_t which) {
    Value part = pick(n, x, 3, which);
    SmallVector<int64_t> shape = n.b.shape(part);
    return shape.size() == 4 ? n.b.reshape(part, {shape[0], shape[1], shape[2] * shape[3]}) : part;
  };
  Value query = n.in(0), key, value;
  if (n.b.rank(query) == 5 && !n.has(1)) {
    value = unpack(query, 2), key = unpack(query, 1), query = unpack(query, 0);
  } else if (n.has(1) && n.b.rank(n.in(1)) == 5 && !n.has(2)) {
    key = unpack(n.in(1), 0), value = unpack(n.in(1), 1);
  } else {
    key = n.in(1), value = n.in(2);
  }
  auto isFlatOrSplit = [&](Value x) { return n.b.rank(x) == 3 || n.b.rank(x) == 4; };
  if (!n.b.status().ok() || n.b.rank(query) != 3 || !isFlatOrSplit(key) || !isFlatOrSplit(value))
    return {n.b.fail("its query, key and value must be [batch, length, width]; [batch, length, heads, 3, size] in one, "
                     "[batch, length, heads, 2, size] for key and value, or those as [batch, heads, length, size]")};
  int64_t width = n.b.shape(query)[2];
  a.query = split(query, 0);
  // Keys and values of a cross attention come as [b, heads, k, d] and have their bias.
  a.key = n.b.rank(key) == 4 ? key : split(key, width);
  a.value = n.b.rank(value) == 4 ? value : split(value, width + (n.b.rank(key) == 4 ? width : n.b.shape(key).back()));
  int64_t past = 0;
  if (n.has(6) != n.has(7))
    return {n.b.fail("past_key and past_value must be given together")};
  if (n.has(6)) {
    if (n.b.rank(n.in(6)) != 4 || n.b.rank(n.in(7)) != 4)
      return {n.b.fail("past_key and past_value must be [batch, heads, length, size]")};
    past = n.b.shape(n.in(6))[2];
    a.key = n.b.concat({n.in(6), a.key}, 2);
    a.value = n.b.concat({n.in(7), a.value}, 2);
  }
  if (!n.b.status().ok())
    return {n.in(0)};
  a.scale = scaleOf(n, a.query);
  if (n.integer("unidirectional", 0))
    a.causalOffset = past;
  if (n.has(4))
    addBias(n, a, maskBias(n, n.in(4), a, past));
  if (n.has(5))
    addBias(n, a, fourDims(n, n.in(5)));
  Attended attended = attend(n, a, n.wantsOutput(3) ? Scores::Scaled : Scores::None);
  Results results = {mergeHeads(n, attended.result), a.key, a.value};
  if (attended.scores)
    results.push_back(attended.scores);
  return results;
}

// ---- GroupQueryAttention: grouped, causal, lengths by batch entry, rotary inside -------------------

/// Angles [b, s, 1, r] for positions i64 [b, s] or [1, s].
Value fusedAnglesAt(NodeImport &n, Value cache, Value positions) {
  if (n.b.rank(cache) != 2 || n.b.rank(positions) != 2)
    return n.b.fail("its angles must be [positions, size / 2], its positions [batch, length]");
  Value angles = n.b.gather(n.b.settled(cache), positions, 0);
  SmallVector<int64_t> shape = n.b.shape(angles);
  return n.b.reshape(angles, {shape[0], shape[1], 1, shape[2]});
}

/// The cache after this step, [b, g, k, d]: `past` up to each entry's own length, then the new elements.
Value appended(NodeImport &n, Value past, Value fresh, Value pastLengths, int64_t keys) {
  SmallVector<int64_t> shape = n.b.shape(fresh); // [b, g, s, d]
  int64_t length = n.b.shape(past)[2];
  Value at = keyPositions(n, keys);
  Value isPast = n.b.compare(nn::ComparePredicate::lt, n.b.reshape(at, {1, 1, keys, 1}), pastLengths);
  // The new key at each position: an index per batch entry, in range even where none is chosen.
  Value index = n.b.sub(n.b.reshape(at, {1, keys, 1}), n.b.reshape(pastLengths, {shape[0], 1, 1}));
  index = n.b.binary<nn::MinOp>(n.b.binary<nn::MaxOp>(index, n.b.scalar(0, DType::I64)),
                                n.b.scalar(double(shape[2] - 1), DType::I64));
  Value moved = n.b.transpose(n.b.gatherNd(n.b.transpose(fresh, {0, 2, 1, 3}), index, 1), {0, 2, 1, 3});
  SmallVector<int64_t> none(4, 0);
  Value padded = length >= keys ? sliceAlong(n, past, 2, 0, keys)
                                : n.b.pad(past, none, {0, 0, keys - length, 0}, Tensor(n.b.dtype(past), {}));
  return n.b.select(isPast, padded, moved);
}

Results groupQueryAttention(NodeImport &n) {
  if (refuses(n, {{11, "attention sinks"}}, {"smooth_softmax", "sliding_window_cache"}) || n.wantsOutput(3))
    return {n.b.status().ok() ? n.unsupported("scores as an output") : n.in(0)};
  if (n.integer("causal", 1) != 1)
    return {n.unsupported("attention that is not causal (causal=0)")};
  // Attributes of norms' weights (inputs that are refused there), of do_rotary, and of quantised caches.
  n.ignoreAttributes({"q_norm_epsilon", "k_norm_epsilon", "qk_norm_epsilon", "rotary_interleaved", "kv_cache_bit_width"});
  for (const char *type : {"k_quant_type", "v_quant_type"})
    if (n.text(type, "NONE") != "NONE")
      return {n.unsupported("quantised keys and values (" + std::string(type) + ")")};
  int64_t heads = n.integer("num_heads", 0), groups = n.integer("kv_num_heads", 0);
  Value query = n.in(0), key, value;
  if (n.b.rank(query) != 3 || heads < 1 || groups < 1 || heads % groups)
    return {n.b.fail("its query must be [batch, length, width], its heads a multiple of its groups")};
  if (n.has(1)) {
    key = n.in(1), value = n.in(2);
  } else {
    int64_t width = n.b.shape(query)[2], size = width / (heads + 2 * groups);
    key = sliceAlong(n, query, 2, heads * size, groups * size);
    value = sliceAlong(n, query, 2, (heads + groups) * size, groups * size);
    query = sliceAlong(n, query, 2, 0, heads * size);
  }
  SmallVector<int64_t> shape = n.b.shape(query), keyShape = n.b.shape(key);
  if (!n.b.status().ok() || shape.size() != 3 || keyShape.size() != 3 || keyShape[2] % groups || shape[2] % heads)
    return {n.b.fail("its queries, keys and values must be [batch, length, heads * size]")};
  int64_t batch = shape[0], queries = shape[1];
  // 1. The past of each entry: the keys after this step are its seqlens_k + 1.
  Value total = n.b.add(perBatch(n, n.in(5)), n.b.scalar(1, DType::I64));
  if (n.has(3) != n.has(4) || (n.has(3) && (n.b.rank(n.in(3)) != 4 || n.b.rank(n.in(4)) != 4)))
    return {n.b.fail("past_key and past_value must be given together, as [batch, groups, length, size]")};
  bool hasPast = n.has(3) && n.b.shape(n.in(3))[2] > 0 && queries > 0;
  Value pastLengths = hasPast ? n.b.sub(total, n.b.scalar(double(queries), DType::I64))
                              : n.b.reshape(n.b.indices(SmallVector<int64_t>(size_t(batch), 0)), {batch, 1, 1, 1});
  // 2. Rotary positions continue from there. The total length is redundant; angles are unused without do_rotary.
  for (size_t index : {6, 7, 8, 9})
    n.ignore(index);
  if (n.integer("do_rotary", 0)) {
    Value positions = n.has(9) ? n.in(9)
                               : n.b.add(n.b.reshape(pastLengths, {batch, 1}),
                                         n.b.reshape(queryPositions(n, queries), {1, queries}));
    Value cos = fusedAnglesAt(n, n.in(7), positions), sin = fusedAnglesAt(n, n.in(8), positions);
    if (!n.b.status().ok())
      return {n.in(0)};
    auto rotated = [&](Value x, int64_t count) {
      SmallVector<int64_t> flat = n.b.shape(x);
      x = n.b.reshape(x, {flat[0], flat[1], count, flat[2] / count});
      return n.b.reshape(rotate(n, x, cos, sin, 2 * n.b.shape(cos).back(), n.integer("rotary_interleaved", 0)), flat);
    };
    query = rotated(query, heads), key = rotated(key, groups);
  }
  // 3. The cache.
  Attending a;
  a.query = splitHeads(n, query, heads);
  a.key = splitHeads(n, key, groups);
  a.value = splitHeads(n, value, groups);
  if (!n.b.status().ok())
    return {n.in(0)};
  if (hasPast) {
    int64_t length = n.b.shape(n.in(3))[2], keys = length + queries;
    if (n.has(6) && n.b.isKnown(n.in(6))) // otherwise its shape means that the past is full
      keys = std::max(length, int64_t(n.b.number(n.in(6), "total_sequence_length")));
    a.key = appended(n, n.in(3), a.key, pastLengths, keys);
    a.value = appended(n, n.in(4), a.value, pastLengths, keys);
    if (!n.b.status().ok())
      return {n.in(0)};
  }
  // 4. Query i of an entry sees its keys up to past + i, and no more than a window of them.
  a.scale = scaleOf(n, a.query);
  a.softcap = n.number("softcap", 0);
  int64_t window = n.integer("local_window_size", -1);
  Value keys = keyPositions(n, a.keys()), at = n.b.add(queryPositions(n, queries), pastLengths);
  if (hasPast)
    a.see(n, n.b.compare(nn::ComparePredicate::le, keys, at));
  else
    a.causalOffset = 0;
  if (window > 0)
    a.see(n, n.b.compare(nn::ComparePredicate::gt, keys, n.b.sub(at, n.b.scalar(double(window), DType::I64))));
  if (n.has(10))
    addBias(n, a, fourDims(n, n.in(10)));
  return {mergeHeads(n, attend(n, a).result), a.key, a.value};
}

// ---- RotaryEmbedding -------------------------------------------------------------------------------

Results fusedRotaryEmbedding(NodeImport &n) {
  if (refuses(n, {}, {"is_packed_batching"}))
    return {n.in(0)};
  if (n.number("scale", 1) != 1)
    return {n.unsupported("attribute 'scale'")};
  n.ignoreAttributes({"rotary_embedding_dim"}); // twice the cosines'
  Value x = n.in(0), positions = n.in(1);
  SmallVector<int64_t> shape = n.b.shape(x);
  bool flat = shape.size() == 3;
  if ((!flat && shape.size() != 4) || n.b.rank(n.in(2)) != 2)
    return {n.b.fail("its input must be [batch, heads, length, size] or [batch, length, heads * size]")};
  int64_t length = flat ? shape[1] : shape[2];
  // One position is that of the first token.
  if (elementCount(n.b.shape(positions)) == 1)
    positions = n.b.add(n.b.reshape(n.b.cast(positions, DType::I64), {1, 1}),
                        n.b.reshape(queryPositions(n, length), {1, length}));
  Value cos = fusedAnglesAt(n, n.in(2), positions), sin = fusedAnglesAt(n, n.in(3), positions);
  if (!n.b.status().ok())
    return {x};
  int64_t angles = n.b.shape(cos).back(), heads = n.integer("num_heads", 0);
  if (flat) {
    int64_t size = heads ? shape[2] / heads : 2 * angles;
    if (size < 1 || shape[2] % size)
      return {n.b.fail("its width " + std::to_string(shape[2]) + " is no multiple of the head size")};
    x = n.b.reshape(x, {shape[0], shape[1], shape[2] / size, size});
  } else { // [b, s, 1, r] to [b, 1, s, r]
    cos = n.b.transpose(cos, {0, 2, 1, 3}), sin = n.b.transpose(sin, {0, 2, 1, 3});
  }
  return {n.b.reshape(rotate(n, x, cos, sin, 2 * angles, n.integer("interleaved", 0)), shape)};
}

const OnnxOp fusedAttentionTable[] = {
    {"Attention", 1, fusedAttention, "com.microsoft"},
    {"MultiHeadAttention", 1, multiHeadAttention, "com.microsoft"},
    {"GroupQueryAttention", 1, groupQueryAttention, "com.microsoft"},
    {"RotaryEmbedding", 1, fusedRotaryEmbedding, "com.microsoft"},
};

} // namespace

ArrayRef<OnnxOp> fusedAttentionOps() { return fusedAttentionTable; }

} // namespace hpc::onnx
