// Every parameter that has a gradient gets its update: states as arguments, next values as results. In a step whose gradient
// norm is not finite all of them stay as they were, by a select of one number.
#include "compiler/Diagnostics.h"
#include "compiler/Sidecar/Sidecar.h"
#include "compiler/StepPart.h"
#include "passes/Train/Optimizer.h"
#include "passes/Train/Passes.h"
#include "passes/Train/Ports.h"
#include "passes/Train/Scalar.h"
#include "runtime/plan/StepPorts.h"

namespace hpc {

#define GEN_PASS_DEF_APPENDOPTIMIZER
#include "passes/Train/Passes.h.inc"

using namespace train;

/// Whether a parameter decays: all, matrices (two dims and more), or patterns of names with commas between.
static bool decays(StringRef which, StringRef name, Value parameter) {
  if (which == "all")
    return true;
  if (which == "matrices")
    return nn::tensorType(parameter).getRank() >= 2;
  return llvm::any_of(llvm::split(which, ","),
                      [&](StringRef pattern) { return matchesName(pattern.str(), name.str()); });
}

/// The factor of clipping, removed from the results; null: gradients are not clipped.
static Value takeClipFactor(StepFunction &step) {
  Value factor = step.resultNamed(clipFactorName);
  llvm::erase_if(step.results, [](const StepFunction::Result &result) { return result.port.name == clipFactorName; });
  return factor;
}

/// Whether the norm is finite, so that the step counts; null without a norm.
static Value isFinite(StepFunction &step) {
  Value norm = step.resultNamed(plan::gradientNormName);
  if (!norm)
    return {};
  OpBuilder builder = step.builder();
  Location location = updateLocation(builder.getContext(), "");
  double infinity = std::numeric_limits<double>::infinity();
  return nn::CompareOp::create(builder, location, nn::ComparePredicate::lt, norm,
                               constant(builder, location, infinity, getElementTypeOrSelf(norm)));
}

namespace {
struct AppendOptimizer : impl::AppendOptimizerBase<AppendOptimizer> {
  using AppendOptimizerBase::AppendOptimizerBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    std::optional<OptimizerKind> kind = optimizerKind(optimizer);
    if (!kind) {
      userError(function, ErrorKind::Usage)
          << "--optimizer=" << optimizer << " is unknown; use one of " << optimizerNames();
      return signalPassFailure();
    }
    StepFunction step(function);
    SmallVector<StepFunction::Result> gradients = step.gradients();
    if (failed(checkGradients(function, step, gradients)) || failed(checkDecay(function, gradients)))
      return signalPassFailure();
    Value factor = takeClipFactor(step), finite = isFinite(step);
    Optimizer updates(step, {*kind, momentum, nesterov, beta1, beta2, epsilon});
    for (const StepFunction::Result &gradient : gradients)
      append(step, updates, gradient, factor, finite);
    step.write();
  }

  /// A hand-written file may name parameters that do not exist.
  static LogicalResult checkGradients(func::FuncOp function, const StepFunction &step,
                                      ArrayRef<StepFunction::Result> gradients) {
    for (const StepFunction::Result &gradient : gradients)
      if (Value parameter = step.parameter(gradient.port.gradient);
          !parameter || parameter.getType() != gradient.value.getType())
        return userError(function, ErrorKind::Model)
               << "a result of type " << gradient.value.getType() << " is the gradient of '" << gradient.port.gradient
               << "', which is no parameter of that type";
    return success();
  }

  /// A pattern that matches no trained parameter is most likely a typing error.
  LogicalResult checkDecay(func::FuncOp function, ArrayRef<StepFunction::Result> gradients) {
    if (decay == "all" || decay == "matrices" || weightDecay == 0)
      return success();
    for (StringRef pattern : llvm::split(decay, ","))
      if (llvm::none_of(gradients, [&](const StepFunction::Result &gradient) {
            return matchesName(pattern.str(), gradient.port.gradient);
          }))
        return userError(function, ErrorKind::Usage)
               << "--decay: '" << pattern << "' matches no parameter that is trained; use all, matrices, or a pattern "
               << "of names as hpc-opt --list-params shows them";
    return success();
  }

  void append(StepFunction &step, Optimizer &updates, const StepFunction::Result &result, Value factor,
              Value finite) {
    const std::string &name = result.port.gradient;
    Value stored = step.parameter(name);
    OpBuilder builder = step.builder();
    Location location = updateLocation(builder.getContext(), name);
    Type type = updateType(getElementTypeOrSelf(stored));
    Value parameter = castTo(builder, location, stored, type);
    Value gradient = castTo(builder, location, result.value, type);
    // No update begins before the norm over all gradients is known: otherwise every parameter's next value would have
    // to be held until then. In a step that does not count the results, computed from zeros, are dropped.
    if (factor)
      gradient = nn::MulOp::create(builder, location, gradient, castTo(builder, location, factor, type));
    else if (finite)
      gradient = nn::SelectOp::create(builder, location, finite, gradient, constant(builder, location, 0, type));
    Optimizer::Update update =
        updates.update(name, parameter, gradient, decays(decay, name, stored) ? double(weightDecay) : 0.0);
    auto write = [&](const std::string &target, Value old, Value next) {
      OpBuilder builder = step.builder();
      next = castTo(builder, location, next, getElementTypeOrSelf(old));
      if (finite)
        next = nn::SelectOp::create(builder, location, finite, next, old);
      step.addResult(next, {"", target, ""});
    };
    write(name, stored, update.parameter);
    for (const Optimizer::Update::State &state : update.states)
      write(state.name, state.old, state.next);
  }
};
} // namespace

} // namespace hpc
