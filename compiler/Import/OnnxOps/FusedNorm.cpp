// Norms of ONNX Runtime's optimizer that include the ops before them (domain com.microsoft): residual sums, biases, the
// embeddings of a BERT.
#include "compiler/Import/OnnxOps/NormParts.h"

namespace hpc::onnx {
namespace {

/// Results of a norm of `sum`: itself, mean and 1 / deviation if requested, and the sum.
Results resultsOf(NodeImport &n, Value sum, Value weight, Value bias, bool isSimplified) {
  if (n.b.rank(sum) == 0)
    return {n.b.fail("a norm of a scalar")};
  double epsilon = n.number("epsilon", 1e-12f);
  Value result = normOf(n, isSimplified ? NormKind::Rms : NormKind::Layer, sum, weight, bias, epsilon);
  Value mean, deviation;
  if (n.wantsOutput(1) || n.wantsOutput(2)) {
    Value x = stashed(n, sum);
    mean = meanLast(n, x);
    Value centered = isSimplified ? x : n.b.sub(x, mean);
    Value variance = meanLast(n, n.b.mul(centered, centered));
    deviation = n.b.unary<nn::ReciprocalOp>(
        n.b.unary<nn::SqrtOp>(n.b.add(variance, n.b.scalar(epsilon, variance))));
  }
  return {result, mean, deviation, sum};
}

/// input + skip (+ bias), normed. `skip` may lack the batch.
template <bool isSimplified> Results skipNorm(NodeImport &n) {
  size_t biasOfSum = isSimplified ? 3 : 4;
  Value sum = n.b.add(n.in(0), n.in(1));
  if (n.b.status().ok() && n.b.shape(sum) != n.b.shape(n.in(0)))
    return {n.b.fail("its skip must broadcast to its input")};
  if (n.has(biasOfSum))
    sum = n.b.add(sum, n.in(biasOfSum));
  return resultsOf(n, sum, n.in(2), !isSimplified && n.has(3) ? n.in(3) : Value(), isSimplified);
}

/// Tokens, positions and segments looked up, added and normed.
Results embedNorm(NodeImport &n) {
  n.ignoreAttributes({"mask_index_type"}); // for shapes alone
  Value ids = n.in(0);
  SmallVector<int64_t> shape = n.b.shape(ids);
  if (shape.size() != 2 || (n.has(7) && n.b.rank(n.in(7)) != 2))
    return {n.b.fail("its ids and its mask must be [batch, length]")};
  auto lookUp = [&](Value table, Value ids) {
    return n.b.rank(table) == 2 ? n.b.gather(table, ids, 0) : n.b.fail("its tables must be [rows, width]");
  };
  Value positions = n.has(8) ? n.in(8) : n.b.reshape(n.b.indices(llvm::to_vector(llvm::seq<int64_t>(0, shape[1]))), {1, shape[1]});
  Value sum = n.b.add(lookUp(n.in(2), ids), lookUp(n.in(3), positions));
  n.ignore(4); // there are no segment ids
  if (n.has(1))
    sum = n.b.add(sum, lookUp(n.in(4), n.in(1)));
  Results normed = resultsOf(n, sum, n.in(5), n.in(6), false);
  // How many tokens of each sequence are no padding.
  Value count = n.b.known(Tensor(DType::I32, {shape[0]}));
  if (n.has(7)) {
    Value isToken = n.b.compare(nn::ComparePredicate::eq, n.in(7), n.b.scalar(1, n.in(7)));
    count = n.b.reshape(n.b.reduce(ReduceKind::Sum, n.b.cast(isToken, DType::I32), {1}), {shape[0]});
  }
  return {normed[0], count, sum};
}

const OnnxOp fusedNormTable[] = {
    {"SkipLayerNormalization", 1, skipNorm<false>, "com.microsoft"},
    {"SkipSimplifiedLayerNormalization", 1, skipNorm<true>, "com.microsoft"},
    {"EmbedLayerNormalization", 1, embedNorm, "com.microsoft"},
};

} // namespace

ArrayRef<OnnxOp> fusedNormOps() { return fusedNormTable; }

} // namespace hpc::onnx
