// Activations, as compositions of elementwise nn ops; phase raise recognises the important ones again.
#include "compiler/Import/OnnxOps/Slopes.h"

#include "runtime/base/NumberText.h"

namespace hpc::onnx {
namespace {

Results gelu(NodeImport &n) { return {n.b.gelu(n.in(0), n.text("approximate", "none") == "tanh")}; }

/// com.microsoft: the tanh approximation of x + bias.
Results fastGelu(NodeImport &n) {
  Value x = n.has(1) ? n.b.add(n.in(0), n.in(1)) : n.in(0);
  return {n.b.gelu(x, true)};
}
Results biasGelu(NodeImport &n) { return {n.b.gelu(n.b.add(n.in(0), n.in(1)), false)}; }

/// com.microsoft: x * sigmoid(alpha x).
Results quickGelu(NodeImport &n) {
  Value x = n.in(0);
  return {n.b.mul(x, n.b.unary<nn::SigmoidOp>(n.b.mul(x, n.b.scalar(n.number("alpha", 1.702f), x))))};
}

/// com.microsoft: of x + bias, the left half times the gelu of the right one.
Results biasSplitGelu(NodeImport &n) {
  Value x = n.b.add(n.in(0), n.in(1));
  SmallVector<int64_t> sizes = n.b.shape(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (sizes.empty() || sizes.back() % 2)
    return {n.b.fail("its last dim must be even")};
  starts.back() = sizes.back() /= 2;
  Value right = n.b.slice(x, starts, steps, sizes);
  return {n.b.mul(n.b.slice(x, SmallVector<int64_t>(sizes.size(), 0), steps, sizes), n.b.gelu(right, false))};
}

/// max(x, 0), which unlike select keeps NaN.
Value positivePart(NodeImport &n, Value x) { return n.b.unary<nn::ReluOp>(x); }

Results leakyRelu(NodeImport &n) {
  Value x = n.in(0);
  return {whereNegative(n, x, n.b.mul(x, n.b.scalar(n.number("alpha", 0.01), x)))};
}
Results pRelu(NodeImport &n) { return {whereNegative(n, n.in(0), n.b.mul(n.in(0), n.in(1)))}; }

/// x where x >= 0, else factor (exp(x / width) - 1).
Value exponentialBelowZero(NodeImport &n, Value x, Value factor, Value width = {}) {
  Value below = belowZero(n, x), exponential = n.b.unary<nn::ExpOp>(width ? n.b.div(below, width) : below);
  return whereNegative(n, x, n.b.mul(n.b.sub(exponential, n.b.scalar(1, x)), factor));
}

Results elu(NodeImport &n) {
  Value x = n.in(0);
  return {exponentialBelowZero(n, x, n.b.scalar(n.number("alpha", 1), x))};
}
Results selu(NodeImport &n) {
  Value x = n.in(0);
  Value y = exponentialBelowZero(n, x, n.b.scalar(n.number("alpha", 1.67326319217681884765625), x));
  return {n.b.mul(y, n.b.scalar(n.number("gamma", 1.05070102214813232421875), x))};
}

Value hardSigmoid(NodeImport &n, Value x, double alpha, double beta) {
  Value line = n.b.add(n.b.mul(x, n.b.scalar(alpha, x)), n.b.scalar(beta, x));
  return clamped(n, positivePart(n, line), Value(), n.b.scalar(1, x));
}
Results hardSigmoid(NodeImport &n) { return {hardSigmoid(n, n.in(0), n.number("alpha", 0.2), n.number("beta", 0.5))}; }
Results hardSwish(NodeImport &n) { return {n.b.mul(n.in(0), hardSigmoid(n, n.in(0), 1.0 / 6, 0.5))}; }

/// x * sigmoid(alpha x)
Value swish(NodeImport &n, Value x, double alpha) {
  Value inner = alpha == 1 ? x : n.b.mul(x, n.b.scalar(alpha, x));
  return n.b.mul(x, n.b.unary<nn::SigmoidOp>(inner));
}
Results swish(NodeImport &n) { return {swish(n, n.in(0), n.number("alpha", 1))}; }
Results swiGlu(NodeImport &n) { return {n.b.mul(swish(n, n.in(0), n.number("alpha", 1)), n.in(1))}; }

/// max(0, x) + min(0, alpha (exp(x / alpha) - 1)): elu with another slope at 0.
Results celu(NodeImport &n) {
  Value x = n.in(0), alpha = n.b.scalar(n.number("alpha", 1), x);
  return {exponentialBelowZero(n, x, alpha, alpha)};
}

Results thresholdedRelu(NodeImport &n) {
  Value x = n.in(0);
  Value isAbove = n.b.compare(nn::ComparePredicate::gt, x, n.b.scalar(n.number("alpha", 1), x));
  return {n.b.select(isAbove, x, n.b.scalar(0, x))};
}

/// x + bias below -lambd, x - bias above lambd, 0 between.
Results shrink(NodeImport &n) {
  Value x = n.in(0);
  double limit = n.number("lambd", 0.5);
  Value bias = n.b.scalar(n.number("bias", 0), x);
  Value isLow = n.b.compare(nn::ComparePredicate::lt, x, n.b.scalar(-limit, x));
  Value isHigh = n.b.compare(nn::ComparePredicate::gt, x, n.b.scalar(limit, x));
  return {n.b.select(isLow, n.b.add(x, bias), n.b.select(isHigh, n.b.sub(x, bias), n.b.scalar(0, x)))};
}

/// log(1 + exp x) = max(x, 0) + log(1 + u) with u = exp(-|x|), which does not overflow. log(1 + u) = 2 atanh(u / (2 + u)),
/// which keeps the digits of a small u.
Value softplus(NodeImport &n, Value x) {
  Value u = n.b.unary<nn::ExpOp>(n.b.unary<nn::NegOp>(n.b.unary<nn::AbsOp>(x))), two = n.b.scalar(2, x);
  Value logarithm = n.b.mul(two, n.b.unary<nn::AtanhOp>(n.b.div(u, n.b.add(u, two))));
  return n.b.add(reluHalfAtZero(n, x), logarithm);
}
Results softplus(NodeImport &n) { return {softplus(n, n.in(0))}; }
Results mish(NodeImport &n) { return {n.b.mul(n.in(0), n.b.unary<nn::TanhOp>(softplus(n, n.in(0))))}; }

Results softsign(NodeImport &n) {
  Value x = n.in(0);
  return {n.b.div(x, n.b.add(n.b.unary<nn::AbsOp>(x), n.b.scalar(1, x)))};
}

/// Whether the node draws random numbers to drop a share `ratio`. Since opset 12 an input decides; before that a
/// Dropout draws whenever the graph is trained.
bool drops(NodeImport &n, double &ratio) {
  ratio = n.version >= 12 ? (n.has(1) ? n.b.number(n.in(1), "ratio") : 0.5) : n.number("ratio", 0.5);
  bool isTraining = n.version < 12 ? n.mode.training : n.has(2) && n.b.number(n.in(2), "training_mode") != 0;
  if (isTraining && !(ratio >= 0 && ratio < 1))
    n.b.fail("ratio=" + numberText(ratio) + " must be at least 0 and less than 1");
  return isTraining && ratio != 0;
}

/// In inference it passes its input, with a mask that is all true.
Results dropout(NodeImport &n) {
  Value x = n.in(0);
  n.ignore(1); // the ratio counts in training alone
  double ratio = 0;
  if (n.mode.inference) {
    if (n.has(2))
      n.mode.switched.push_back(n.node.name);
  } else if (drops(n, ratio)) {
    if (!n.mode.training)
      return {n.unsupported("training mode, which draws random numbers; with --inference it passes its input, and "
                            "hpc-opt --train takes it as it is")};
    int64_t site = n.mode.dropouts++;
    Value result = n.b.dropout(x, site, ratio);
    if (!n.wantsOutput(1))
      return {result};
    Value drawn = n.b.dropout(n.b.broadcast(n.b.scalar(1, x), n.b.shape(x)), site, ratio);
    return {result, n.b.compare(nn::ComparePredicate::ne, drawn, n.b.scalar(0, x))};
  }
  KnownTensor mask(n.b.shape(x), Tensor(DType::Bool, SmallVector<int64_t>(size_t(n.b.rank(x)), 1)));
  for (int64_t &element : mask.compact.ints)
    element = 1;
  return {x, n.b.known(std::move(mask))};
}

const OnnxOp activationTable[] = {
    {"Gelu", 20, gelu},
    {"Gelu", 1, gelu, "com.microsoft"},
    {"FastGelu", 1, fastGelu, "com.microsoft"},
    {"BiasGelu", 1, biasGelu, "com.microsoft"},
    {"BiasSplitGelu", 1, biasSplitGelu, "com.microsoft"},
    {"QuickGelu", 1, inF32<quickGelu>, "com.microsoft"},
    {"LeakyRelu", 6, leakyRelu},
    {"PRelu", 9, pRelu},
    {"Elu", 6, inF32<elu>},
    {"Selu", 6, inF32<selu>},
    {"HardSigmoid", 6, inF32<hardSigmoid>},
    {"HardSwish", 14, inF32<hardSwish>},
    {"Swish", 24, inF32<swish>},
    {"SwiGLU", 28, inF32<swiGlu>},
    {"Celu", 12, inF32<celu>},
    {"ThresholdedRelu", 10, thresholdedRelu},
    {"Shrink", 9, shrink},
    {"Softplus", 1, inF32<softplus>},
    {"Mish", 18, inF32<mish>},
    {"Softsign", 1, inF32<softsign>},
    {"Dropout", 7, dropout},
};

} // namespace

ArrayRef<OnnxOp> activationOps() { return activationTable; }

} // namespace hpc::onnx
