// A stranger's model through the whole compiler, in one process and context of its own a run.
#include "test/fuzz/Targets.h"

#include "compiler/DiagnosticText.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/ModuleAttributes.h"
#include "passes/Lower/Lower.h"
#include "passes/Phases.h"
#include "passes/Place/Place.h"
#include "passes/Schedule/Schedule.h"
#include "runtime/plan/PlanCheck.h"

#include "mlir/Pass/PassManager.h"

namespace hpc::fuzz {

static bool runCompile(std::string_view bytes) {
  static const DialectRegistry registry = [] {
    DialectRegistry registry;
    registerDialects(registry);
    registerPasses();
    return registry;
  }();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::optional<ErrorKind> firstError;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && !firstError) {
      std::string text = describeDiagnostic(diagnostic);
      firstError = text.find("error[internal]") == std::string::npos ? ErrorKind::Unsupported : ErrorKind::Internal;
      holds(Status::error(*firstError, text));
    }
    return success();
  });
  TemporaryFile file(bytes);
  ImportOptions imports;
  imports.dims = {{"batch", 2}};
  Expected<OwningOpRef<ModuleOp>> module = importOnnx(file.path(), imports, &context);
  if (!holds(module.status()))
    return false;
  Options options;
  options.degrees = dist::degreesOf({{"tp", 2}});
  (**module)->setAttr(optionsAttrName, options.toAttribute(&context));
  (**module)->setAttr(phaseAttrName, StringAttr::get(&context, "import"));
  if (failed(runPhases(**module, options, "", [](StringRef) { return success(); }, [](PassManager &) {}))) {
    return holds(Status::error(firstError.value_or(ErrorKind::Internal), "a phase failed without an error"));
  }
  Expected<Lowered> lowered = lowerToPlan(**module, {"fuzz", file.folder});
  if (!holds(lowered.status()))
    return false;
  holds(schedulePlan(lowered->plan, lowered->noted));
  if (!holds(placeBuffers(lowered->plan)))
    return false;
  if (Status checked = plan::checkPlan(lowered->plan); !checked.ok())
    holds(Status::error(ErrorKind::Internal, "the compiler made a plan that its check refuses: " + checked.text()));
  return true;
}

const std::vector<Target> &compileTargets() {
  static const std::vector<Target> all = {{"compile", runCompile, models, Format::Protobuf, nodeModels}};
  return all;
}

} // namespace hpc::fuzz
