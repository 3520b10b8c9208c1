// The optimizers against their formulas, written once more in plain C++ in double: a whole vector, four steps, learning rates
// that change. PyTorch's own numbers come with the recipes of test/models/train.py; LAMB's are of the paper alone.
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interpreter/Steps.h"
#include "passes/Phases.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace hpc;

namespace {

using Vector = std::vector<double>;

struct Numbers {
  double lr, decay, momentum, beta1, beta2, eps;
  bool nesterov;
};

double norm(const Vector &v) {
  double sum = 0;
  for (double x : v)
    sum += x * x;
  return std::sqrt(sum);
}

/// One formula: what a step makes of a parameter, given its memory of steps before.
struct Reference {
  Vector p, m, v;
  int step = 0;

  void sgd(const Vector &gradient, const Numbers &n) {
    ++step;
    for (size_t i = 0; i < p.size(); ++i) {
      double g = gradient[i] + n.decay * p[i];
      m[i] = step == 1 ? g : n.momentum * m[i] + g; // torch starts with the gradient
      double d = n.momentum == 0 ? g : n.nesterov ? g + n.momentum * m[i] : m[i];
      p[i] -= n.lr * d;
    }
  }
  void adam(const Vector &gradient, const Numbers &n, bool decoupled) {
    ++step;
    for (size_t i = 0; i < p.size(); ++i) {
      double g = gradient[i] + (decoupled ? 0 : n.decay * p[i]);
      if (decoupled)
        p[i] *= 1 - n.lr * n.decay;
      p[i] -= n.lr / (1 - std::pow(n.beta1, step)) * direction(i, g, n);
    }
  }
  void lamb(const Vector &gradient, const Numbers &n) {
    ++step;
    Vector r(p.size());
    for (size_t i = 0; i < p.size(); ++i)
      r[i] = direction(i, gradient[i], n) / (1 - std::pow(n.beta1, step)) + n.decay * p[i];
    double ratio = norm(p) > 0 && norm(r) > 0 ? norm(p) / norm(r) : 1;
    for (size_t i = 0; i < p.size(); ++i)
      p[i] -= n.lr * ratio * r[i];
  }
  /// m / (sqrt(v / (1 - beta2^step)) + eps)
  double direction(size_t i, double g, const Numbers &n) {
    m[i] = n.beta1 * m[i] + (1 - n.beta1) * g;
    v[i] = n.beta2 * v[i] + (1 - n.beta2) * g * g;
    return m[i] / (std::sqrt(v[i] / (1 - std::pow(n.beta2, step))) + n.eps);
  }
};

struct OptimizerCase {
  const char *name, *options;
  Numbers numbers;
  std::function<void(Reference &, const Vector &, const Numbers &)> step;
  std::vector<double> start = {0.5, -0.25, 2};
};

std::vector<OptimizerCase> optimizerCases() {
  auto sgd = [](Reference &r, const Vector &g, const Numbers &n) { r.sgd(g, n); };
  auto adam = [](Reference &r, const Vector &g, const Numbers &n) { r.adam(g, n, false); };
  auto adamw = [](Reference &r, const Vector &g, const Numbers &n) { r.adam(g, n, true); };
  auto lamb = [](Reference &r, const Vector &g, const Numbers &n) { r.lamb(g, n); };
  return {{"sgd", "optimizer=sgd", {0, 0, 0, 0, 0, 0, false}, sgd},
          {"sgd_decay", "optimizer=sgd weight-decay=0.125", {0, 0.125, 0, 0, 0, 0, false}, sgd},
          {"momentum", "optimizer=sgd momentum=0.75 weight-decay=0.125", {0, 0.125, 0.75, 0, 0, 0, false}, sgd},
          {"nesterov", "optimizer=sgd momentum=0.75 nesterov=true", {0, 0, 0.75, 0, 0, 0, true}, sgd},
          {"adam", "optimizer=adam beta1=0.75 beta2=0.875 epsilon=0.5", {0, 0, 0, 0.75, 0.875, 0.5, false}, adam},
          {"adam_decay", "optimizer=adam weight-decay=0.125", {0, 0.125, 0, 0.9, 0.999, 1e-8, false}, adam},
          {"adamw", "optimizer=adamw weight-decay=0.125", {0, 0.125, 0, 0.9, 0.999, 1e-8, false}, adamw},
          {"lamb", "optimizer=lamb weight-decay=0.125 epsilon=1e-6", {0, 0.125, 0, 0.9, 0.999, 1e-6, false}, lamb},
          // A parameter that is 0 could never move by a ratio of 0.
          {"lamb_zero", "optimizer=lamb", {0, 0, 0, 0.9, 0.999, 1e-8, false}, lamb, {0, 0, 0}}};
}

struct Optimizers : testing::TestWithParam<OptimizerCase> {};

TEST_P(Optimizers, equalTheirFormula) {
  const OptimizerCase &given = GetParam();
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  [[maybe_unused]] static const bool areRegistered = (registerPasses(), true);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    func.func @main(%g: tensor<3xf32>) -> (tensor<3xf32> {nn.gradient = "w"}) {
      %w = nn.parameter "w" stored <file = "w", bytes = 12, hashes = [0]> : tensor<3xf32>
      return %g : tensor<3xf32>
    })", &context);
  ASSERT_TRUE(module);
  PassManager passes(&context, ModuleOp::getOperationName());
  std::string text = std::string("hpc-clip-gradients,hpc-append-optimizer{") + given.options + "}";
  ASSERT_TRUE(succeeded(parsePassPipeline(text, passes)) && succeeded(passes.run(*module)));
  auto main = module->lookupSymbol<func::FuncOp>("main");

  Reference reference{given.start, Vector(3), Vector(3)};
  RunOptions options;
  options.doublePrecision = true;
  options.parameters = [&](nn::ParameterOp op, ArrayRef<int64_t> shape) -> Expected<Tensor> {
    Tensor tensor(DType::F32, shape);
    for (int64_t i = 0; i < 3; ++i)
      tensor.setNumber(i, given.start[size_t(i)]);
    return tensor;
  };
  KeptTensors kept;
  for (int step = 0; step < 4; ++step) {
    Numbers numbers = given.numbers;
    numbers.lr = 0.25 / (1 + step);
    Vector gradient = {0.5 + step, -1.0 / (1 + step), 0.25};
    std::vector<Tensor> inputs;
    for (BlockArgument argument : main.getArguments()) {
      nn::ArgumentPort port = nn::argumentPort(main, argument.getArgNumber());
      if (port.isState())
        continue;
      Tensor tensor(port.stepScalar.empty() ? DType::F32 : DType::F64, nn::shapeOf(argument));
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.setNumber(i, port.stepScalar == "lr" ? numbers.lr : port.stepScalar == "update" ? step + 1 : gradient[size_t(i)]);
      inputs.push_back(std::move(tensor));
    }
    // A step whose gradient is not finite is as if it had not been: neither the parameter nor what is kept of it moves.
    std::vector<Tensor> broken = inputs;
    broken[0].setNumber(1, step % 2 ? NAN : INFINITY);
    KeptTensors before = kept;
    if (step > 0) {
      ASSERT_TRUE(runStep(main, broken, kept, nullptr, options).ok());
      for (auto &[name, tensor] : before)
        for (int64_t i = 0; i < 3; ++i)
          EXPECT_EQ(kept.at(name).number(i), tensor.number(i)) << name;
    }
    ASSERT_TRUE(runStep(main, inputs, kept, nullptr, options).ok());
    given.step(reference, gradient, numbers);
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_NEAR(kept.at("w").number(i), reference.p[size_t(i)], 2e-7 * (1 + std::fabs(reference.p[size_t(i)])))
          << "step " << step << ", element " << i; // constants are f32
  }
}

INSTANTIATE_TEST_SUITE_P(Formulas, Optimizers, testing::ValuesIn(optimizerCases()),
                         [](const testing::TestParamInfo<OptimizerCase> &info) { return std::string(info.param.name); });

} // namespace
