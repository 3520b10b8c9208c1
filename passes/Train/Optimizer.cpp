// One function a formula; the arithmetic is spelled by a small builder, so that it reads as the papers do.
#include "passes/Train/Optimizer.h"

#include "compiler/StepPart.h"
#include "passes/Train/Scalar.h"
#include "runtime/plan/StepPorts.h"

namespace hpc::train {

static constexpr std::pair<const char *, OptimizerKind> kinds[] = {
    {"sgd", OptimizerKind::Sgd}, {"adam", OptimizerKind::Adam}, {"adamw", OptimizerKind::AdamW},
    {"lamb", OptimizerKind::Lamb}};

std::optional<OptimizerKind> optimizerKind(StringRef name) {
  for (auto [known, kind] : kinds)
    if (name == known)
      return kind;
  return std::nullopt;
}

std::string optimizerNames() {
  std::string names;
  for (auto [known, kind] : kinds)
    names += (names.empty() ? "" : ", ") + std::string(known);
  return names;
}

namespace {
/// Elementwise arithmetic at one location; numbers become constants of the tensor's type.
struct Arithmetic {
  OpBuilder builder;
  Location location;

  Arithmetic(StepFunction &step, StringRef parameter)
      : builder(step.builder()), location(updateLocation(builder.getContext(), parameter)) {}

  Value number(double value, Value like) { return constant(builder, location, value, getElementTypeOrSelf(like)); }
  Value add(Value a, Value b) { return nn::AddOp::create(builder, location, a, b); }
  Value sub(Value a, Value b) { return nn::SubOp::create(builder, location, a, b); }
  Value mul(Value a, Value b) { return nn::MulOp::create(builder, location, a, b); }
  Value div(Value a, Value b) { return nn::DivOp::create(builder, location, a, b); }
  Value sqrt(Value a) { return nn::SqrtOp::create(builder, location, a); }
  Value scale(Value a, double factor) { return factor == 1 ? a : mul(a, number(factor, a)); }
  Value cast(Value a, Type type) { return castTo(builder, location, a, type); }
};
} // namespace

const Optimizer::Shared &Optimizer::shared(Type type) {
  auto [known, isNew] = sharedByType.try_emplace(type);
  Shared &shared = known->second;
  if (!isNew)
    return shared;
  Arithmetic a(step, "");
  Value lr = step.stepScalar(plan::learningRateName);
  shared.learningRate = a.cast(lr, type);
  if (recipe.kind == OptimizerKind::Sgd)
    return shared;
  Value count = step.stepScalar(plan::updateName);
  auto correction = [&](double beta) {
    Value power = nn::PowOp::create(a.builder, a.location, a.number(beta, count), count);
    return a.sub(a.number(1, count), power);
  };
  Value first = correction(recipe.beta1);
  shared.correction1 = a.cast(first, type);
  shared.stepSize = a.cast(a.div(lr, first), type);
  shared.rootOfCorrection2 = a.cast(a.sqrt(correction(recipe.beta2)), type);
  return shared;
}

Value Optimizer::state(Update &update, StringRef kind, StringRef name, Value parameter) {
  nn::ArgumentPort port;
  port.state = (kind + "/" + name).str();
  Value old = step.addArgument(nn::tensorType(parameter), port, updateLocation(parameter.getContext(), name));
  update.states.push_back({port.state, old, {}});
  return old;
}

Optimizer::Update Optimizer::updateSgd(StringRef name, Value parameter, Value gradient, double weightDecay) {
  Update update;
  Arithmetic a(step, name);
  if (weightDecay != 0)
    gradient = a.add(gradient, a.scale(parameter, weightDecay));
  Value direction = gradient;
  if (recipe.momentum != 0) {
    // torch starts with the gradient itself, which equals a step from a momentum of 0.
    Value old = state(update, "momentum", name, parameter);
    Value next = update.states.back().next = a.add(a.scale(old, recipe.momentum), gradient);
    direction = recipe.nesterov ? a.add(gradient, a.scale(next, recipe.momentum)) : next;
  }
  Type type = getElementTypeOrSelf(parameter);
  update.parameter = a.sub(parameter, a.mul(direction, shared(type).learningRate));
  return update;
}

Optimizer::Moments Optimizer::moments(Update &update, StringRef name, Value parameter, Value gradient) {
  Arithmetic a(step, name);
  Value m = state(update, "adam.m", name, parameter), v = state(update, "adam.v", name, parameter);
  Value nextM = a.add(a.scale(m, recipe.beta1), a.scale(gradient, 1 - recipe.beta1));
  Value nextV = a.add(a.scale(v, recipe.beta2), a.scale(a.mul(gradient, gradient), 1 - recipe.beta2));
  update.states[0].next = nextM;
  update.states[1].next = nextV;
  Value root = a.div(a.sqrt(nextV), shared(getElementTypeOrSelf(parameter)).rootOfCorrection2);
  return {nextM, a.add(root, a.number(recipe.epsilon, root))};
}

/// Adam adds the decay to the gradient (L2), AdamW takes it off the parameter.
Optimizer::Update Optimizer::updateAdam(StringRef name, Value parameter, Value gradient, double weightDecay) {
  Update update;
  Arithmetic a(step, name);
  const Shared &numbers = shared(getElementTypeOrSelf(parameter));
  bool isDecoupled = recipe.kind == OptimizerKind::AdamW;
  if (weightDecay != 0 && !isDecoupled)
    gradient = a.add(gradient, a.scale(parameter, weightDecay));
  Value decayed = parameter;
  if (weightDecay != 0 && isDecoupled)
    decayed = a.mul(parameter, a.sub(a.number(1, parameter), a.scale(numbers.learningRate, weightDecay)));
  Moments now = moments(update, name, parameter, gradient);
  update.parameter = a.sub(decayed, a.mul(a.div(now.first, now.root), numbers.stepSize));
  return update;
}

/// The trust ratio ||p|| / ||r||, and 1 where either is 0.
Optimizer::Update Optimizer::updateLamb(StringRef name, Value parameter, Value gradient, double weightDecay) {
  Update update;
  Arithmetic a(step, name);
  Type type = getElementTypeOrSelf(parameter);
  const Shared &numbers = shared(type);
  Moments now = moments(update, name, parameter, gradient);
  Value direction = a.div(a.div(now.first, numbers.correction1), now.root);
  if (weightDecay != 0)
    direction = a.add(direction, a.scale(parameter, weightDecay));
  Value ofParameter = a.sqrt(sumOfSquares(a.builder, a.location, parameter, type));
  Value ofDirection = a.sqrt(sumOfSquares(a.builder, a.location, direction, type));
  Value none = a.number(0, parameter), one = a.number(1, parameter);
  auto isPositive = [&](Value norm) -> Value {
    return nn::CompareOp::create(a.builder, a.location, nn::ComparePredicate::gt, norm, none);
  };
  Value both = nn::AndOp::create(a.builder, a.location, isPositive(ofParameter), isPositive(ofDirection));
  Value ratio = nn::SelectOp::create(a.builder, a.location, both, a.div(ofParameter, ofDirection), one);
  update.parameter = a.sub(parameter, a.mul(direction, a.mul(ratio, numbers.learningRate)));
  return update;
}

Optimizer::Update Optimizer::update(StringRef name, Value parameter, Value gradient, double weightDecay) {
  switch (recipe.kind) {
  case OptimizerKind::Sgd:
    return updateSgd(name, parameter, gradient, weightDecay);
  case OptimizerKind::Adam:
  case OptimizerKind::AdamW:
    return updateAdam(name, parameter, gradient, weightDecay);
  case OptimizerKind::Lamb:
    return updateLamb(name, parameter, gradient, weightDecay);
  }
  llvm_unreachable("all kinds are above");
}

} // namespace hpc::train
