// Reductions: nn keeps reduced dims with size 1; a reshape drops them where ONNX does.
#include "compiler/Import/OnnxOps/Slopes.h"

namespace hpc::onnx {
namespace {

/// The dims that a node reduces. With noop_with_empty_axes none: each element is then combined with no other, so that
/// ReduceSumSquare is a square.
SmallVector<int64_t> reducedAxes(NodeImport &n) {
  auto given = n.attributeOrInput("axes", 1);
  int64_t rank = n.b.rank(n.in(0));
  if (given && !given->empty())
    return n.axes(*given, rank);
  if (n.integer("noop_with_empty_axes", 0))
    return {};
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

/// `combine` reduces a value over axes, keeping dims.
template <typename Combine> Results reduce(NodeImport &n, Combine combine) {
  Value x = n.in(0);
  SmallVector<int64_t> axes = reducedAxes(n);
  if (!n.b.status().ok())
    return {x};
  Value result = combine(x, axes);
  if (n.integer("keepdims", 1))
    return {result};
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(n.b.shape(x)))
    if (!llvm::is_contained(axes, int64_t(dim)))
      shape.push_back(size);
  return {n.b.reshape(result, shape)};
}

template <ReduceKind kind> Results plain(NodeImport &n) {
  return reduce(n, [&](Value x, ArrayRef<int64_t> axes) { return n.b.reduce(kind, x, axes); });
}

Results reduceMean(NodeImport &n) {
  return reduce(n, [&](Value x, ArrayRef<int64_t> axes) { return n.b.mean(x, axes); });
}

Value sum(NodeImport &n, Value x, ArrayRef<int64_t> axes) { return n.b.reduce(ReduceKind::Sum, x, axes); }

Results sumSquare(NodeImport &n) {
  return reduce(n, [&](Value x, ArrayRef<int64_t> axes) { return sum(n, n.b.mul(x, x), axes); });
}
Results l1(NodeImport &n) {
  return reduce(n, [&](Value x, ArrayRef<int64_t> axes) { return sum(n, n.b.unary<nn::AbsOp>(x), axes); });
}
Results l2(NodeImport &n) {
  return reduce(n, [&](Value x, ArrayRef<int64_t> axes) { return lengthOf(n, sum(n, n.b.mul(x, x), axes)); });
}
Results logSum(NodeImport &n) {
  return reduce(n, [&](Value x, ArrayRef<int64_t> axes) { return n.b.unary<nn::LogOp>(sum(n, x, axes)); });
}
/// max + log(sum(exp(x - max))), which does not overflow. An infinite maximum is not subtracted (inf -
/// inf is NaN): a row with +inf gives +inf, a row of -inf alone -inf. A row of one element gives that
/// element.
Results logSumExp(NodeImport &n) {
  return reduce(n, [&](Value x, ArrayRef<int64_t> axes) {
    if (axes.empty())
      return x;
    Value max = n.b.reduce(ReduceKind::Max, x, axes);
    Value shift = n.b.select(n.b.unary<nn::IsInfOp>(max), n.b.scalar(0, max), max);
    return n.b.add(shift, n.b.unary<nn::LogOp>(sum(n, n.b.unary<nn::ExpOp>(n.b.sub(x, shift)), axes)));
  });
}

const OnnxOp reduceTable[] = {
    {"ReduceSum", 1, plain<ReduceKind::Sum>},
    {"ReduceMax", 1, plain<ReduceKind::Max>},
    {"ReduceMin", 1, plain<ReduceKind::Min>},
    {"ReduceProd", 1, plain<ReduceKind::Prod>},
    {"ReduceMean", 1, reduceMean},
    {"ReduceSumSquare", 1, inF32<sumSquare>},
    {"ReduceL1", 1, inF32<l1>},
    {"ReduceL2", 1, inF32<l2>},
    {"ReduceLogSum", 1, inF32<logSum>},
    {"ReduceLogSumExp", 1, inF32<logSumExp>},
};

} // namespace

ArrayRef<OnnxOp> reduceOps() { return reduceTable; }

} // namespace hpc::onnx
