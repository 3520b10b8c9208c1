// Losses of class labels. A comparison, not a gather, selects the log-probability of the right class: so classes may be
// cut, as a vocabulary is.
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Import/OnnxOps/Dims.h"

namespace hpc::onnx {
namespace {

Value sumAll(NodeImport &n, Value x) {
  return n.b.reshape(n.b.reduce(ReduceKind::Sum, x, llvm::to_vector(llvm::seq<int64_t>(0, n.b.rank(x)))), {});
}

/// Whether a target [N, ...] and a weight [C] fit scores [N, C, ...]; else there is an error.
bool fitTogether(NodeImport &n, Value scores, Value target, Value weight) {
  SmallVector<int64_t> shape = n.b.shape(scores);
  if (shape.size() < 2) {
    n.b.fail("its scores need a batch and classes");
    return false;
  }
  SmallVector<int64_t> expected = shape;
  expected.erase(expected.begin() + 1);
  if (n.b.shape(target) != expected)
    n.b.fail("its target must have the scores' shape without the classes");
  else if (weight && n.b.shape(weight) != SmallVector<int64_t>{shape[1]})
    n.b.fail("its weight must have one number for each of the " + std::to_string(shape[1]) + " classes");
  return n.b.status().ok();
}

/// The elements of the target's classes, [N, ...], from numbers [N, C, ...] or numbers that broadcast to them.
Value ofClass(NodeImport &n, Value perClass, Value target, int64_t classes) {
  SmallVector<int64_t> shape = n.b.shape(target);
  Value isClass = n.b.compare(nn::ComparePredicate::eq, insertDim(n, target, 1),
                              countAlong(n, int64_t(shape.size()) + 1, 1, classes));
  Value chosen = n.b.select(isClass, perClass, n.b.scalar(0, perClass));
  return n.b.reshape(n.b.reduce(ReduceKind::Sum, chosen, {1}), shape);
}

std::optional<int64_t> ignoredClass(NodeImport &n) {
  return n.hasAttribute("ignore_index") ? std::optional(n.integer("ignore_index", 0)) : std::nullopt;
}

/// The loss of every label, weighted by class, 0 where the label is ignored, and made one number by `reduction`.
Value reduced(NodeImport &n, Value loss, Value target, Value weight) {
  std::string reduction = n.text("reduction", "mean");
  Value weights;
  if (weight) {
    nn::markStatistic(weight); // trained, a loss would make itself small by counting nothing
    SmallVector<int64_t> along(size_t(n.b.rank(target)) + 1, 1);
    int64_t classes = along[1] = n.b.shape(weight)[0];
    weights = ofClass(n, n.b.reshape(weight, along), target, classes);
  }
  if (std::optional<int64_t> ignored = ignoredClass(n)) {
    Tensor number(DType::I64, {});
    number.ints[0] = *ignored;
    Value counts = n.b.compare(nn::ComparePredicate::ne, target, n.b.known(std::move(number)));
    Value zero = n.b.scalar(0, loss);
    loss = n.b.select(counts, loss, zero);
    weights = n.b.select(counts, weights ? weights : n.b.scalar(1, loss), zero);
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
  return n.b.div(sum, weights ? sumAll(n, weights) : n.b.scalar(double(elementCount(n.b.shape(target))), sum));
}

/// -input[i, target[i, ...], ...]
Value negativeLogLikelihood(NodeImport &n, Value input, Value target, Value weight) {
  if (!fitTogether(n, input, target, weight))
    return input;
  return reduced(n, n.b.unary<nn::NegOp>(ofClass(n, input, target, n.b.shape(input)[1])), target, weight);
}

/// The target's classes; PyTorch's exporter writes the node for a target of probabilities too, which ONNX has no loss for.
Value classesOf(NodeImport &n) {
  if (n.has(1) && isFloat(n.b.dtype(n.in(1))))
    return n.b.fail("its target holds " + std::string(name(n.b.dtype(n.in(1)))) +
                    ", and it takes classes; write a loss of probabilities p out in the model, as -(p * log_softmax(x, 1)).sum(1).mean()");
  return indexInput(n, 1);
}

Results nllLoss(NodeImport &n) {
  return {negativeLogLikelihood(n, n.in(0), classesOf(n), n.has(2) ? n.in(2) : Value())};
}

/// Whether PyTorch's loss had label smoothing: the last of (scores, target, weight, reduction, ignore_index,
/// smoothing).
bool isSmoothed(const NodeImport &n) {
  SmallVector<StringRef> arguments = n.torchArguments("aten.cross_entropy_loss");
  constexpr size_t smoothing = 5;
  double value = 0;
  return arguments.size() > smoothing && !arguments[smoothing].getAsDouble(value) && value != 0;
}

/// Over the classes, dim 1.
Value logSoftmax(NodeImport &n, Value scores) {
  Value shifted = n.b.sub(scores, n.b.reduce(ReduceKind::Max, scores, {1}));
  Value sum = n.b.reduce(ReduceKind::Sum, n.b.unary<nn::ExpOp>(shifted), {1});
  return n.b.sub(shifted, n.b.unary<nn::LogOp>(sum));
}

/// The same for log(softmax). If all inputs are known, it is composed of ops that fold.
Results softmaxCrossEntropy(NodeImport &n) {
  if (isSmoothed(n))
    n.mode.smoothed.push_back(n.node.name);
  Value scores = n.in(0), target = classesOf(n), weight = n.has(2) ? n.in(2) : Value();
  if (!fitTogether(n, scores, target, weight))
    return {scores, scores};
  if (n.b.isKnown(scores) && n.b.isKnown(target)) {
    Value logarithm = logSoftmax(n, scores);
    return {negativeLogLikelihood(n, logarithm, target, weight), logarithm};
  }
  Value loss = n.b.crossEntropy(moveToLast(n, scores, 1), target, ignoredClass(n));
  return {reduced(n, loss, target, weight), n.wantsOutput(1) ? logSoftmax(n, scores) : scores};
}

const OnnxOp lossTable[] = {
    {"NegativeLogLikelihoodLoss", 12, inF32<nllLoss>},
    {"SoftmaxCrossEntropyLoss", 12, inF32<softmaxCrossEntropy>},
};

} // namespace

ArrayRef<OnnxOp> lossOps() { return lossTable; }

} // namespace hpc::onnx
