// attend(): one nn.attention, which layouts and kernels support, where it can express everything; it cannot express a
// softcap or scores as results.
#include "compiler/Import/OnnxOps/AttentionParts.h"
#include "runtime/base/CountText.h"

#include <limits>

namespace hpc::onnx {

constexpr double infinity = std::numeric_limits<double>::infinity();

void Attending::see(NodeImport &n, Value condition) {
  visible = visible ? n.b.binary<nn::AndOp>(visible, condition) : condition;
}

Value splitHeads(NodeImport &n, Value x, int64_t heads) {
  SmallVector<int64_t> shape = n.b.shape(x);
  if (shape.size() == 4)
    return x;
  if (shape.size() != 3 || heads < 1 || shape[2] % heads)
    return n.b.fail("queries, keys and values must be [batch, heads, length, size] or [batch, length, heads * size]; "
                    "here are " +
                    shapeText({shape.begin(), shape.end()}) + " and " + countText(heads, "head"));
  return n.b.transpose(n.b.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Value mergeHeads(NodeImport &n, Value x) {
  SmallVector<int64_t> shape = n.b.shape(x);
  if (shape.size() != 4)
    return x; // after an error
  return n.b.reshape(n.b.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

Value fourDims(NodeImport &n, Value x) {
  SmallVector<int64_t> shape = n.b.shape(x);
  if (shape.size() > 4)
    return n.b.fail("a mask has " + countText(shape.size(), "dim") + "; scores have four");
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return n.b.reshape(x, shape);
}

Value perBatch(NodeImport &n, Value x) {
  return n.b.reshape(n.b.cast(x, DType::I64), {elementCount(n.b.shape(x)), 1, 1, 1});
}

static Value counted(NodeImport &n, int64_t count, ArrayRef<int64_t> shape) {
  return n.b.reshape(n.b.indices(llvm::to_vector(llvm::seq<int64_t>(0, count))), shape);
}
Value queryPositions(NodeImport &n, int64_t count) { return counted(n, count, {1, 1, count, 1}); }
Value keyPositions(NodeImport &n, int64_t count) { return counted(n, count, {1, 1, 1, count}); }

// ---- masks --------------------------------------------------------------------------------------

static Value causalCondition(NodeImport &n, const Attending &a) {
  Value last = n.b.add(queryPositions(n, a.queries()), n.b.scalar(double(*a.causalOffset), DType::I64));
  return n.b.compare(nn::ComparePredicate::le, keyPositions(n, a.keys()), last);
}

/// The bias with -inf where `visible` does not hold; null where nothing is masked or added.
static Value maskedBias(NodeImport &n, Value bias, Value visible, Value like) {
  if (!visible)
    return bias;
  return n.b.select(visible, bias ? bias : n.b.scalar(0, like), n.b.scalar(-infinity, like));
}

/// `x`, one value of each query, with 0 for queries that see no key: their bias is -inf everywhere, whatever their
/// scores. `bias` includes the causal mask.
static Value zeroUnseen(NodeImport &n, Value x, Value bias) {
  Value highest = n.b.reduce(ReduceKind::Max, bias, {3});
  Value unseen = n.b.compare(nn::ComparePredicate::eq, highest, n.b.scalar(-infinity, highest));
  return n.b.select(unseen, n.b.scalar(0, x), x);
}

// ---- spelled out --------------------------------------------------------------------------------

/// [b, h, ...] -> [b, g, h / g, ...]: grouped heads get a dim along which keys and values broadcast.
static Value grouped(NodeImport &n, Value x, int64_t groups) {
  SmallVector<int64_t> shape = n.b.shape(x);
  int64_t repeat = groups ? shape[1] / groups : 1;
  shape[1] = groups;
  shape.insert(shape.begin() + 2, repeat);
  return n.b.reshape(x, shape);
}

static Value product(NodeImport &n, Value x, Value y, bool transposeY, bool isWide) {
  return isWide ? n.b.wideMatmul(x, y, false, transposeY) : n.b.matmul(x, y, false, transposeY);
}

Value groupedProduct(NodeImport &n, Value x, Value y, bool transposeY, bool isWide) {
  int64_t heads = n.b.shape(x)[1], groups = n.b.shape(y)[1];
  if (heads == groups)
    return product(n, x, y, transposeY, isWide);
  SmallVector<int64_t> shape = n.b.shape(x);
  shape[3] = n.b.shape(y)[transposeY ? 2 : 3];
  return n.b.reshape(product(n, grouped(n, x, groups), grouped(n, y, groups), transposeY, isWide), shape);
}

static Attended spellOut(NodeImport &n, const Attending &a, Value bias, Scores wanted, std::optional<DType> precision) {
  DType type = n.b.dtype(a.query);
  Value scores = groupedProduct(n, a.query, a.key, true, /*isWide=*/true), scaled, capped, masked;
  scaled = capped = scores = n.b.mul(scores, n.b.scalar(a.scale, scores));
  if (a.softcap != 0) {
    Value cap = n.b.scalar(a.softcap, scaled);
    capped = n.b.mul(n.b.unary<nn::TanhOp>(n.b.div(scaled, cap)), cap);
  }
  masked = bias ? n.b.add(capped, n.b.cast(bias, n.b.dtype(capped))) : capped;
  Value weights = n.b.cast(n.b.softmax(n.b.widened(precision ? n.b.cast(masked, *precision) : masked)), type);
  if (bias && a.zeroUnseen)
    weights = zeroUnseen(n, weights, bias);
  Attended attended{groupedProduct(n, weights, a.value, false), {}};
  switch (wanted) {
  case Scores::None:
    break;
  case Scores::Scaled:
    attended.scores = scaled;
    break;
  case Scores::Capped:
    attended.scores = capped;
    break;
  case Scores::Masked:
    attended.scores = masked;
    break;
  case Scores::Weights:
    attended.scores = weights;
    break;
  }
  if (attended.scores)
    attended.scores = n.b.cast(attended.scores, type);
  return attended;
}

bool haveFittingShapes(NodeImport &n, const Attending &a) {
  SmallVector<int64_t> q = n.b.shape(a.query), k = n.b.shape(a.key), v = n.b.shape(a.value);
  bool fit = q.size() == 4 && k.size() == 4 && v.size() == 4 && q[0] == k[0] && q[3] == k[3] && k[0] == v[0] &&
             k[1] == v[1] && k[2] == v[2] && (k[1] == 0 ? q[1] == 0 : q[1] % k[1] == 0);
  if (!fit)
    n.b.fail("queries, keys and values do not fit: they must be [b, h, q, d], [b, g, k, d], [b, g, k, x] with g a divisor of h");
  return fit;
}

Attended attend(NodeImport &n, Attending a, Scores wanted, std::optional<DType> precision) {
  if (!n.b.status().ok() || !haveFittingShapes(n, a))
    return {a.query, a.query};
  bool isSpelledOut = a.softcap != 0 || wanted != Scores::None;
  if (a.bias)
    a.bias = n.b.cast(fourDims(n, a.bias), n.b.dtype(a.query));
  // Some query sees no key: nn.attention has no such causal mask.
  if (a.causalOffset && (isSpelledOut || *a.causalOffset < 0)) {
    a.see(n, causalCondition(n, a));
    a.causalOffset.reset();
  }
  Value bias = maskedBias(n, a.bias, a.visible, a.query);
  if (isSpelledOut)
    return spellOut(n, a, bias, wanted, precision);
  Value result = n.b.attention(a.query, a.key, a.value, bias, a.scale, a.causalOffset);
  if (bias && a.zeroUnseen && n.b.status().ok()) {
    Value all = a.causalOffset ? maskedBias(n, bias, causalCondition(n, a), a.query) : bias;
    result = zeroUnseen(n, result, all);
  }
  return {result, {}};
}

// ---- rotary positions ---------------------------------------------------------------------------

/// A slice of x's last dim, from `start` in steps.
static Value sliceLast(NodeImport &n, Value x, int64_t start, int64_t step, int64_t size) {
  SmallVector<int64_t> sizes = n.b.shape(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes.back() = size, starts.back() = start, steps.back() = step;
  return n.b.slice(x, starts, steps, sizes);
}

Value rotate(NodeImport &n, Value x, Value cos, Value sin, int64_t size, bool interleaved) {
  SmallVector<int64_t> shape = n.b.shape(x);
  int64_t last = int64_t(shape.size()) - 1, half = size / 2;
  if (shape.empty() || size < 2 || size % 2 || size > shape.back() || n.b.shape(cos).back() != half ||
      n.b.shape(sin).back() != half)
    return n.b.fail("rotates " + std::to_string(size) + " of " +
                    countText(shape.empty() ? 0 : shape.back(), "element") + " by " +
                    countText(n.b.shape(cos).back(), "angle") +
                    "; the angles must be half as many as the elements that they rotate");
  Value first = sliceLast(n, x, 0, interleaved ? 2 : 1, half);
  Value second = sliceLast(n, x, interleaved ? 1 : half, interleaved ? 2 : 1, half);
  Value real = n.b.sub(n.b.mul(first, cos), n.b.mul(second, sin));
  Value imaginary = n.b.add(n.b.mul(first, sin), n.b.mul(second, cos));
  Value rotated;
  if (interleaved) {
    SmallVector<int64_t> pairs = n.b.shape(real);
    pairs.push_back(1);
    rotated = n.b.concat({n.b.reshape(real, pairs), n.b.reshape(imaginary, pairs)}, last + 1);
    SmallVector<int64_t> flat = shape;
    flat.back() = size;
    rotated = n.b.reshape(rotated, flat);
  } else {
    rotated = n.b.concat({real, imaginary}, last);
  }
  return size == shape.back() ? rotated : n.b.concat({rotated, sliceLast(n, x, size, 1, shape.back() - size)}, last);
}

} // namespace hpc::onnx
