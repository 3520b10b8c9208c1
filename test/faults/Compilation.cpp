// The sequence of passes/Driver/Compilation.cpp with a break in the middle.
#include "test/faults/Compilation.h"

#include "compiler/DiagnosticText.h"
#include "compiler/Import/OnnxImporter.h"
#include "passes/Driver/Verify.h"
#include "passes/Phases.h"
#include "passes/Place/Place.h"
#include "passes/Schedule/Schedule.h"
#include "runtime/plan/PlanCheck.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cstdio>
#include <cstdlib>

namespace hpc::test {

static Options degrees(int64_t tp, int64_t dp, int64_t pp, int64_t microBatches) {
  Options options;
  options.degrees = dist::degreesOf({{"mb", microBatches}, {"dp", dp}, {"pp", pp}, {"tp", tp}});
  return options;
}

static constexpr const char *oddModel = "gpt2-odd/dynamo-eager-op18.onnx";
Layout oddLayout() { return {oddModel, degrees(2, 1, 2, 2), {{"batch_size", 4}, {"sequence_length", 9}}}; }
Layout oddDataParallel() { return {oddModel, degrees(2, 2, 1, 1), {{"batch_size", 4}, {"sequence_length", 9}}}; }
static constexpr const char *tinyModel = "gpt2-tiny/dynamo-eager-op18.onnx";
Layout tinyLayout() { return {tinyModel, degrees(2, 1, 1, 1), {{"batch_size", 2}, {"sequence_length", 7}}}; }
Layout tinyFourStages() { return {tinyModel, degrees(2, 1, 4, 1), {{"batch_size", 2}, {"sequence_length", 7}}}; }
Layout mlpLayout() { return {"mlp/dynamo-op18.onnx", degrees(2, 1, 1, 1), {{"batch", 4}}}; }

static Layout arranged(Layout layout, const char *tpLayout) {
  layout.options.tpLayout = tpLayout;
  return layout;
}
Layout oddTwoDimensional() { return arranged({oddModel, degrees(4, 1, 1, 1), {{"batch_size", 4}, {"sequence_length", 9}}}, "2d:2x2"); }

Layout oddZigzag() {
  Layout layout = oddLayout();
  layout.options.degrees = dist::degreesOf({{"cp", 2}});
  return layout;
}

static Layout training(Layout layout) {
  layout.options.loss = "causal-lm";
  layout.options.optimizer = "adam";
  layout.options.clip = 0.01; // far below the norm, so that every gradient is scaled
  return layout;
}
Layout oddTraining() {
  Layout layout = training({oddModel, degrees(2, 2, 2, 2), {{"batch_size", 4}, {"sequence_length", 9}}});
  layout.options.ppSchedule = "zb-h1";
  return layout;
}
Layout tinyTraining() { return training(tinyLayout()); }
Layout tinyRing() {
  Layout layout = training({tinyModel, {}, {{"batch_size", 2}, {"sequence_length", 9}}});
  layout.options.degrees = dist::degreesOf({{"cp", 3}});
  layout.options.cpMode = "ring";
  layout.options.cpBalance = "plain";
  return layout;
}
Layout tinyExact() {
  Layout layout{tinyModel, degrees(1, 1, 1, 1), {{"batch_size", 2}, {"sequence_length", 15}}};
  layout.options.loss = "causal-lm";
  layout.options.optimizer = "adamw";
  layout.options.deterministic = true;
  return layout;
}
Layout mlpDepth() {
  Layout layout = training(arranged({"mlp/dynamo-op18.onnx", degrees(8, 1, 1, 1), {{"batch", 8}}}, "2.5d:2x2x2"));
  layout.options.loss = "mse";
  return layout;
}

static void die(const std::string &what) {
  std::fprintf(stderr, "the unbroken compilation fails: %s\n", what.c_str());
  std::exit(1);
}

Compilation &Compilation::of(const Layout &layout, StringRef phase) {
  static std::map<std::string, std::unique_ptr<Compilation>> known;
  std::string key = layout.model + (" " + phase.str()) + " " + layout.options.loss + " " + layout.options.ppSchedule + " " + layout.options.weights + " " + layout.options.tpLayout + " " + layout.options.cpMode + (layout.options.panels ? " panels" : "");
  for (const dist::Mesh::Axis &axis : layout.options.degrees.axes)
    key += " " + std::to_string(axis.size);
  std::unique_ptr<Compilation> &found = known[key];
  if (!found)
    found.reset(new Compilation(layout, phase));
  return *found;
}

Compilation::Compilation(const Layout &layout, StringRef phase) : layout(layout), phase(phase.str()) {
  static bool registered = (registerPasses(), true);
  (void)registered;
  DialectRegistry registry;
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  context->disableMultithreading();
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      errors += describeDiagnostic(diagnostic) + "\n";
    return success();
  });
  Expected<OwningOpRef<ModuleOp>> imported =
      importOnnx(std::string(HPC_SOURCE_DIR "/models/") + layout.model, ImportOptions{layout.dims, {}}, context.get());
  if (!imported.ok())
    die(imported.status().text());
  module = std::move(*imported);
  (*module)->setAttr(optionsAttrName, layout.options.toAttribute(context.get()));
  (*module)->setAttr(phaseAttrName, StringAttr::get(context.get(), "import"));
  // The serial step is what train makes: import has none.
  if (layout.options.trains() && failed(runTo(*module, "train")))
    die(errors);
  serial = module->clone();
  if (failed(runTo(*module, "propagate")))
    die(errors);
  propagated = module->clone();
  if (failed(runTo(*module, phase)))
    die(errors);
}

LogicalResult Compilation::runTo(ModuleOp module, StringRef last) {
  return runPhases(module, layout.options, last, [](StringRef) { return success(); }, [](PassManager &) {});
}

std::string Compilation::verifyPhase(const BreakModule &breakIt) {
  OwningOpRef<ModuleOp> broken = module->clone();
  breakIt(*broken);
  errors.clear();
  PassManager passes(context.get());
  const char *verifier = phase == "stage" ? "hpc-verify-staged" : layout.options.cpMode == "ring" ? "hpc-verify-rings" : "hpc-verify-partitioned";
  if (failed(parsePassPipeline(verifier, passes)))
    die("no verify pass of phase " + phase);
  bool accepted = succeeded(passes.run(*broken));
  return accepted ? "" : errors.empty() ? "an error without a text" : errors;
}

Expected<Lowered> Compilation::lower(ModuleOp broken) {
  errors.clear();
  if (failed(runTo(broken, "")))
    return Status::error(ErrorKind::Internal, errors);
  LowerOptions options;
  options.modelName = "broken";
  Expected<Lowered> lowered = lowerToPlan(broken, options);
  if (!lowered.ok())
    return lowered;
  HPC_RETURN_IF_ERROR(schedulePlan(lowered->plan, lowered->noted));
  HPC_RETURN_IF_ERROR(placeBuffers(lowered->plan));
  return lowered;
}

std::string Compilation::compileAndVerify(const BreakModule &breakIt) {
  OwningOpRef<ModuleOp> broken = module->clone();
  breakIt(*broken);
  Expected<Lowered> lowered = lower(*broken);
  if (!lowered.ok())
    return lowered.status().text();
  if (Status status = plan::checkPlan(lowered->plan); !status.ok())
    return status.text();
  Expected<std::string> report = hpc::verifyPlan({*serial, *propagated, *broken, *lowered, ".", ""});
  return report.ok() ? "" : report.status().text();
}

const Lowered &Compilation::unbroken() {
  if (!plan) {
    compiled = module->clone();
    Expected<Lowered> lowered = lower(*compiled);
    if (!lowered.ok())
      die(lowered.status().text());
    plan = std::move(*lowered);
  }
  return *plan;
}

std::string Compilation::verifySerial(const BreakModule &breakIt) {
  Lowered lowered = unbroken();
  OwningOpRef<ModuleOp> broken = propagated->clone();
  breakIt(*broken);
  Expected<std::string> report = hpc::verifyPlan({*serial, *broken, *compiled, lowered, ".", ""});
  return report.ok() ? "" : report.status().text();
}

std::string Compilation::checkPlan(const BreakPlan &breakIt) {
  plan::Plan broken = unbroken().plan;
  breakIt(broken);
  Status status = plan::checkPlan(broken);
  return status.ok() ? "" : status.text();
}

std::string Compilation::verifyPlan(const BreakPlan &breakIt) {
  Lowered broken = unbroken();
  breakIt(broken.plan);
  Expected<std::string> report = hpc::verifyPlan({*serial, *propagated, *compiled, broken, ".", ""});
  return report.ok() ? "" : report.status().text();
}

} // namespace hpc::test
