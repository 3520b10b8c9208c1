// Losses of class labels. The element of the right class is found by comparison, not by a gather: so classes may be
// cut, as a vocabulary is.
#include "compiler/Dialect/NN/Statistic.h"
#include "compiler/Import/OnnxOps/Dims.h"

namespace hpc::onnx {
namespace {

Value sumAll(NodeImport &n, Value x) {
  return n.b.reshape(n.b.reduce(ReduceKind::Sum, x, llvm::to_vector(llvm::seq<int64_t>(0, n.b.rank(x)))), {});
}

/// -input[i, target[i, ...], ...] of input [N, C, ...], weighted by class, and made one number by `reduction`.
Value negativeLogLikelihood(NodeImport &n, Value input, Value target, Value weight) {
  SmallVector<int64_t> shape = n.b.shape(input);
  std::string reduction = n.text("reduction", "mean");
  if (shape.size() < 2)
    return n.b.fail("its input needs a batch and classes");
  SmallVector<int64_t> expected = shape;
  expected.erase(expected.begin() + 1);
  if (n.b.shape(target) != expected)
    return n.b.fail("its target must have the input's shape without the classes");
  if (weight && n.b.shape(weight) != SmallVector<int64_t>{shape[1]})
    return n.b.fail("its weight must have one number for each of the " + std::to_string(shape[1]) + " classes");
  int64_t rank = int64_t(shape.size());
  Value isClass = n.b.compare(nn::ComparePredicate::eq, insertDim(n, target, 1), countAlong(n, rank, 1, shape[1]));
  auto ofClass = [&](Value perClass) {
    Value chosen = n.b.select(isClass, perClass, n.b.scalar(0, perClass));
    return n.b.reshape(n.b.reduce(ReduceKind::Sum, chosen, {1}), expected);
  };
  Value loss = n.b.unary<nn::NegOp>(ofClass(input)), weights;
  if (weight) {
    nn::markStatistic(weight); // trained, a loss would make itself small by counting nothing
    SmallVector<int64_t> along(size_t(rank), 1);
    along[1] = shape[1];
    weights = ofClass(n.b.reshape(weight, along));
  }
  if (n.hasAttribute("ignore_index")) {
    Tensor number(DType::I64, {});
    number.ints[0] = n.integer("ignore_index", 0);
    Value counts = n.b.compare(nn::ComparePredicate::ne, target, n.b.known(std::move(number)));
    Value zero = n.b.scalar(0, input);
    loss = n.b.select(counts, loss, zero);
    weights = n.b.select(counts, weights ? weights : n.b.scalar(1, input), zero);
  }
  if (weights)
    loss = n.b.mul(loss, weights);
  if (reduction == "none")
    return loss;
  if (reduction == "sum")
    return sumAll(n, loss);
  if (reduction != "mean")
    return n.b.fail("reduction '" + reduction + "' is none of none, sum, mean");
  Value sum = sumAll(n, loss);
  return n.b.div(sum, weights ? sumAll(n, weights) : n.b.scalar(double(elementCount(expected)), sum));
}

Results nllLoss(NodeImport &n) {
  return {negativeLogLikelihood(n, n.in(0), indexInput(n, 1), n.has(2) ? n.in(2) : Value())};
}

/// Whether PyTorch's loss had label smoothing: the last of (scores, target, weight, reduction, ignore_index,
/// smoothing).
bool isSmoothed(const NodeImport &n) {
  SmallVector<StringRef> arguments = n.torchArguments("aten.cross_entropy_loss");
  constexpr size_t smoothing = 5;
  double value = 0;
  return arguments.size() > smoothing && !arguments[smoothing].getAsDouble(value) && value != 0;
}

/// The same of log(softmax) over the classes, dim 1.
Results softmaxCrossEntropy(NodeImport &n) {
  if (isSmoothed(n))
    n.mode.smoothed.push_back(n.node.name);
  Value scores = n.in(0);
  if (n.b.rank(scores) < 2)
    return {n.b.fail("its scores need a batch and classes"), scores};
  Value shifted = n.b.sub(scores, n.b.reduce(ReduceKind::Max, scores, {1}));
  Value sum = n.b.reduce(ReduceKind::Sum, n.b.unary<nn::ExpOp>(shifted), {1});
  Value logarithm = n.b.sub(shifted, n.b.unary<nn::LogOp>(sum));
  return {negativeLogLikelihood(n, logarithm, indexInput(n, 1), n.has(2) ? n.in(2) : Value()), logarithm};
}

const OnnxOp table[] = {
    {"NegativeLogLikelihoodLoss", 12, inF32<nllLoss>},
    {"SoftmaxCrossEntropyLoss", 12, inF32<softmaxCrossEntropy>},
};

} // namespace

ArrayRef<OnnxOp> lossOps() { return table; }

} // namespace hpc::onnx
