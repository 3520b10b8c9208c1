// Ops of domain ai.onnx.ml that prepare features before a network: numbers in, floats out. Trees, strings and look-ups are not here.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

constexpr char domain[] = "ai.onnx.ml";

/// The floats of an attribute as f32, one for all features or one for each of the last dim; null where the node has none.
Value perFeature(NodeImport &n, const std::string &name, Value x) {
  if (!n.hasAttribute(name))
    return Value();
  const std::vector<float> &given = n.node.attributes.at(name).floats;
  int64_t features = n.b.rank(x) ? n.b.shape(x).back() : 1;
  if (given.size() != 1 && int64_t(given.size()) != features)
    return n.b.fail("its " + name + " has " + countText(int64_t(given.size()), "number") + "; one, or one for each of " +
                    countText(features, "feature") + ", are possible");
  Tensor numbers(DType::F32, {int64_t(given.size())});
  for (size_t i = 0; i < given.size(); ++i)
    numbers.setNumber(int64_t(i), given[i]);
  return n.b.known(std::move(numbers));
}

Value asFloat(NodeImport &n, size_t index) { return n.b.cast(n.in(index), DType::F32); }

/// (x - offset) * scale
Results scaler(NodeImport &n) {
  Value x = asFloat(n, 0);
  if (Value offset = perFeature(n, "offset", x))
    x = n.b.sub(x, offset);
  Value scale = n.b.status().ok() ? perFeature(n, "scale", x) : Value();
  return {scale ? n.b.mul(x, scale) : x};
}

/// 1 above the threshold, else 0.
Results binarizer(NodeImport &n) {
  Value x = n.in(0);
  return {n.b.cast(n.b.compare(nn::ComparePredicate::gt, x, n.b.scalar(n.number("threshold", 0), x)), n.b.dtype(x))};
}

/// Each row over its largest element, its sum of magnitudes or its length; a row of zeros stays, as in ONNX Runtime.
Results normalizer(NodeImport &n) {
  std::string kind = n.text("norm", "MAX");
  Value x = asFloat(n, 0);
  Value magnitudes = kind == "L1" ? n.b.unary<nn::AbsOp>(x) : kind == "L2" ? n.b.mul(x, x) : x;
  if (kind != "L1" && kind != "L2" && kind != "MAX")
    return {n.b.fail("its norm is '" + kind + "'; MAX, L1, L2 are possible")};
  if (n.b.rank(x) == 0)
    return {n.b.fail("a norm of a scalar")};
  Value size = n.b.reduce(kind == "MAX" ? ReduceKind::Max : ReduceKind::Sum, magnitudes, {n.b.rank(x) - 1});
  if (kind == "L2")
    size = n.b.unary<nn::SqrtOp>(size);
  Value isNone = n.b.compare(nn::ComparePredicate::eq, size, n.b.scalar(0, size));
  return {n.b.div(x, n.b.select(isNone, n.b.scalar(1, size), size))};
}

/// Values that count as missing, NaN or a number, are replaced feature by feature.
Results imputer(NodeImport &n) {
  Value x = n.in(0);
  if (!isFloat(n.b.dtype(x)))
    return {n.unsupported("whole numbers; cast them to f32 before it")};
  Value filling = perFeature(n, "imputed_value_floats", x);
  if (!filling)
    return {n.b.fail("it has no imputed_value_floats")};
  double missing = n.number("replaced_value_float", 0);
  Value isMissing = std::isnan(missing) ? n.b.compare(nn::ComparePredicate::ne, x, x)
                                        : n.b.compare(nn::ComparePredicate::eq, x, n.b.scalar(missing, x));
  return {n.b.select(isMissing, n.b.cast(filling, n.b.dtype(x)), x)};
}

const OnnxOp featureTable[] = {
    {"Scaler", 1, scaler, domain}, {"Binarizer", 1, binarizer, domain}, {"Normalizer", 1, normalizer, domain}, {"Imputer", 1, imputer, domain}};

} // namespace

ArrayRef<OnnxOp> featureOps() { return featureTable; }

} // namespace hpc::onnx
