// From a model to a plan, as a library: what hpc-opt does between its flags and its messages. The steps of a Compilation
// are taken in order; `compile` takes them all.
#pragma once

#include "compiler/Import/AnnotationRules.h"
#include "passes/Driver/DiagnosticPrinter.h"
#include "passes/Driver/SpecFile.h"
#include "passes/Driver/Trial.h"
#include "passes/Driver/Verify.h"
#include "passes/Lower/Lower.h"
#include "passes/Options.h"
#include "runtime/plan/PlanFacts.h"

namespace hpc {

/// What is compiled, and how.
struct CompileRequest {
  std::string input; ///< .onnx or .mlir
  Options options;   ///< its degrees follow from the next two and the sidecar (dist::resolveDegrees)
  dist::GivenSizes degrees;
  std::optional<int64_t> devices;
  std::set<std::string> given; ///< flags of the user, without dashes: they beat what a sidecar's "plan" has
  bool givesLayout = false;  ///< the user says the arrangement of tp's ranks, which beats a sidecar's
  bool givesOptions = false; ///< the user says what is in `options`, be it what they are anyway
  std::string spec;          ///< sidecar; "" = the one beside the model, "none" = none
  std::string specText;      ///< of a sidecar, in place of all files; "" = none
  std::string configuration; ///< the device configuration of an .onnx model; "" = its first
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::string> constants; ///< inputs bound at compile time: name -> file
  int64_t batch = 0;             ///< rows of a plan for generation; 0 = by `dims`, else 1
  int64_t prefillChunk = 0;      ///< its most positions in a step of prefill; 0 = chosen (Generation.h)
  bool inference = false;        ///< nodes in training mode are compiled for inference
  std::optional<double> dropout; ///< the rate of all dropouts, in place of the model's own
  bool evaluate = false;         ///< a training plan gets the entry `evaluate` (passes/Schedule/EvaluationEntry.h)
  bool noWeights = false;        ///< external data is not read
  bool followLinks = false;      ///< external data may be or lie behind links
  std::string compileTo;         ///< phase after which to stop; "" = the whole way
  enum { ComparesNone, ComparesSmall, ComparesAll } layouts = ComparesNone; ///< models that are compared with other layouts (LayoutComparison.h)
  bool verify = false;
  std::string verifyInputs; ///< .npz; "" = made up
  bool checkRewrites = false; ///< the plan is checked between its rewrites (passes/Schedule), for tests
  bool keepsChoices = false; ///< Compilation::chosen and ::layout are filled in
  std::string planFolder = "."; ///< where the plan will lie: files of weights are named from there
};

class Compilation {
public:
  /// Called after import and after each phase; a Status that is not ok ends the compilation.
  std::function<Status(StringRef phase)> afterPhase = [](StringRef) { return Status::success(); };
  std::function<void(PassManager &)> configure = [](PassManager &) {};

  CompileRequest request;
  std::optional<SpecFile> spec;     ///< after load
  OwningOpRef<ModuleOp> module;     ///< after load, and as the phases leave it
  std::optional<Sidecar> chosen;    ///< after runPhases: the layout as a sidecar
  onnx::ChosenLayout layout;        ///< and as ONNX device configurations
  std::optional<Lowered> lowered;   ///< after makePlan
  std::string comparison;           ///< after makePlan: with other layouts, where the request asks for it
  plan::PlanFacts facts;            ///< after makePlan

  Compilation(CompileRequest request, MLIRContext &context, DiagnosticPrinter &diagnostics)
      : request(std::move(request)), context(context), diagnostics(diagnostics) {}

  // Errors are those of the step's own; where the message is empty, a diagnostic has it.

  /// The model, its sidecar, the degrees, and what --verify compares with.
  Status load();
  Status runPhases();
  /// Lowers, schedules, places and checks the plan. An error of kind Capacity says what would fit.
  Status makePlan();
  /// What was compared and how close it was. Needs `request.verify` and makePlan.
  Expected<std::string> verify();
  /// The step of a plan for generation, and the model on whole sequences. They need `request.verify` and makePlan.
  Verification verification() { return {*serial, *propagated, *module, *lowered, request.planFolder, request.verifyInputs}; }
  ModuleOp wholeSequences() { return *whole; }

private:
  Status takeOptions();
  Status takeSpec();
  Status attachSpec(ModuleOp root);
  Status loadProgram();
  Expected<OwningOpRef<ModuleOp>> import(const std::string &file, const std::map<std::string, int64_t> &dims,
                                         const std::map<std::string, std::string> &constants);
  Status checkWeightsAreThere();
  Status makeReference();
  Status noteChoices(StringRef phase);
  Status checkMemory(StagedTrials &tries, Trials &others);
  std::string compared();
  Status runTo(StringRef last);

  MLIRContext &context;
  DiagnosticPrinter &diagnostics;
  OwningOpRef<ModuleOp> whole;      ///< for verify of generation: what was imported
  OwningOpRef<ModuleOp> serial;     ///< for verify: what was imported; of training and generation, the step
  OwningOpRef<ModuleOp> propagated; ///< the same after propagate
  OwningOpRef<ModuleOp> uncut;      ///< for trials: after precision
  OwningOpRef<ModuleOp> raised;     ///< for profiles: after raise
  bool isProgram = false;           ///< the input is .mlir
};

struct CompiledPlan {
  plan::Plan plan; ///< with the options' maxLength the plan for generation (Generation.h)
  plan::PlanFacts facts;
  std::string verified; ///< the report, where the request asks for one
};

/// All steps, with a context of their own. An error's message is whole: it has the text of the diagnostic where there is one.
Expected<CompiledPlan> compile(const CompileRequest &request);

} // namespace hpc
