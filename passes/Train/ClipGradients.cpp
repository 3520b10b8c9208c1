// The norm over all gradients as one number, and the factor by which clipping scales every gradient. The gradients that
// are results stay unscaled: the optimizer applies the factor, so that it costs no pass over memory of its own.
#include "compiler/StepPart.h"
#include "passes/Train/Passes.h"
#include "passes/Train/Ports.h"
#include "passes/Train/Scalar.h"
#include "passes/Train/StepFunction.h"
#include "runtime/plan/StepPorts.h"

namespace hpc {

#define GEN_PASS_DEF_CLIPGRADIENTS
#include "passes/Train/Passes.h.inc"

using namespace train;

/// The type of the norm: the widest in which an update is computed.
static Type normType(ArrayRef<StepFunction::Result> gradients) {
  Type widest = updateType(getElementTypeOrSelf(gradients.front().value));
  for (const StepFunction::Result &gradient : gradients)
    if (Type type = updateType(getElementTypeOrSelf(gradient.value));
        type.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
      widest = type;
  return widest;
}

static Value normOf(OpBuilder &builder, ArrayRef<StepFunction::Result> gradients, Type type) {
  MLIRContext *context = builder.getContext();
  Value sum;
  for (const StepFunction::Result &gradient : gradients) {
    Location location = updateLocation(context, gradient.port.gradient);
    Value term = sumOfSquares(builder, location, gradient.value, type);
    sum = sum ? Value(nn::AddOp::create(builder, updateLocation(context, ""), sum, term)) : term;
  }
  return nn::SqrtOp::create(builder, updateLocation(context, ""), sum);
}

/// min(1, most / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ computes it.
static Value clipFactor(OpBuilder &builder, Value norm, double most) {
  Location location = updateLocation(builder.getContext(), "");
  Type type = getElementTypeOrSelf(norm);
  Value padded = nn::AddOp::create(builder, location, norm, constant(builder, location, 1e-6, type));
  Value ratio = nn::DivOp::create(builder, location, constant(builder, location, most, type), padded);
  return nn::MinOp::create(builder, location, ratio, constant(builder, location, 1, type));
}

namespace {
struct ClipGradients : impl::ClipGradientsBase<ClipGradients> {
  using ClipGradientsBase::ClipGradientsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    StepFunction step(function);
    SmallVector<StepFunction::Result> gradients = step.gradients();
    if (gradients.empty())
      return;
    OpBuilder builder = step.builder();
    Value norm = normOf(builder, gradients, normType(gradients));
    step.addResult(norm, {plan::gradientNormName, "", ""});
    if (maxNorm > 0)
      step.addResult(clipFactor(builder, norm, maxNorm), {clipFactorName, "", ""});
    step.write();
  }
};
} // namespace

} // namespace hpc
