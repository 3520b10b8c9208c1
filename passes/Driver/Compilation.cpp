// The steps, in order; each leaves in the Compilation what the next needs.
#include "passes/Driver/Compilation.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "compiler/Sidecar/TensorRules.h"
#include "passes/Driver/Alternatives.h"
#include "passes/Driver/DropoutRate.h"
#include "passes/Driver/Generation.h"
#include "passes/Driver/Imbalance.h"
#include "passes/Driver/InputKind.h"
#include "passes/Driver/LayoutComparison.h"
#include "passes/Driver/ModelSource.h"
#include "passes/Driver/ProgramText.h"
#include "passes/Driver/RequestDegrees.h"
#include "passes/Driver/TrainingSettings.h"
#include "passes/Driver/Verify.h"
#include "passes/Driver/WriteAnnotations.h"
#include "passes/Driver/WriteSpec.h"
#include "passes/Kernels/KernelName.h"
#include "passes/Phases.h"
#include "passes/Place/Place.h"
#include "passes/Schedule/EvaluationEntry.h"
#include "passes/Schedule/Schedule.h"
#include "runtime/base/ByteSize.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanStructure.h"
#include "runtime/plan/StepPorts.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <filesystem>

namespace hpc {

// ---- load ---------------------------------------------------------------------------------------

/// A dumped phase carries the options that it was made with; a program without them takes those of the request.
Status Compilation::takeOptions() {
  DictionaryAttr given = request.options.toAttribute(&context);
  Attribute attribute = (*module)->getAttr(optionsAttrName);
  if (!attribute) {
    (*module)->setAttr(optionsAttrName, given);
    return Status::success();
  }
  auto own = dyn_cast<DictionaryAttr>(attribute);
  if (!own)
    return Status::error(ErrorKind::Model, std::string(optionsAttrName) +
                                               " is no dictionary; leave the attribute as hpc-opt --dump-phases "
                                               "wrote it");
  if ((request.givesOptions || given != Options().toAttribute(&context)) && given != own)
    return Status::error(ErrorKind::Usage, request.input + " was made with other options than the flags say; leave them "
                                                        "out, or start from the .onnx model");
  Expected<Options> options = Options::fromAttribute(own);
  if (!options.ok())
    return options.status();
  if (request.options.withoutCode && phasesDone(*module) >= phasesUpTo("kernels"))
    return Status::error(ErrorKind::Usage, "--no-code: " + request.input + " has the code of its kernels already; leave the flag out, or start from an earlier phase");
  options->kernelCache = request.options.kernelCache;
  options->withoutCode = request.options.withoutCode;
  request.options = *options;
  return Status::success();
}

/// Finds the sidecar, and with it the degrees.
Status Compilation::takeSpec() {
  Expected<std::optional<SpecFile>> found = findSpec(request.spec, request.configuration, request.input);
  if (!found.ok())
    return found.status();
  spec = std::move(*found);
  if (!request.specText.empty()) {
    SpecFile given{"the layout of --auto", request.specText, {}, false, ""};
    Expected<Sidecar> sidecar = parseSidecar(given.text, given.path);
    HPC_RETURN_IF_ERROR(sidecar.status());
    given.sidecar = std::move(*sidecar);
    spec = std::move(given);
  }
  return takeDegrees(request, spec);
}

/// Gives a program that no phase has touched its sidecar; a dumped phase has its own.
Status Compilation::attachSpec(ModuleOp root) {
  if (!spec)
    return Status::success();
  if (root->hasAttr(sidecarAttrName) || phasesDone(root) != 0)
    return Status::error(ErrorKind::Usage, "--spec=" + request.spec + ": " + request.input +
                                               " was made with the annotations that it has; leave --spec out, or "
                                               "start from the .onnx model");
  setSidecar(root, spec->path, spec->text);
  noteTensors(root, spec->sidecar);
  if (spec->isDefault)
    mlir::emitRemark(root.getLoc()) << "taking the annotations of " << spec->path << (spec->choice.empty() ? "" : ", ") << spec->choice
                                    << "; --spec=none ignores them";
  return Status::success();
}

Expected<OwningOpRef<ModuleOp>> Compilation::import(const std::string &file, const std::map<std::string, int64_t> &dims,
                                                    const std::map<std::string, std::string> &constants) {
  ImportOptions options;
  options.dims = dims;
  options.constants = constants;
  options.inference = request.inference || request.options.generates();
  options.training = request.options.trains();
  options.sequenceLength = request.options.maxLength;
  options.sequenceRows = request.batch;
  options.withoutWeights = request.noWeights;
  options.followLinks = request.followLinks;
  Expected<OwningOpRef<ModuleOp>> imported = importOnnx(file, options, &context);
  if (!imported.ok())
    return imported;
  ModuleOp root = **imported;
  if (request.dropout)
    HPC_RETURN_IF_ERROR(setDropoutRate(root, *request.dropout));
  Builder builder(&context);
  ModelSource{file, dims, request.inference, request.dropout, constants}.write(root);
  root->setAttr(optionsAttrName, request.options.toAttribute(&context));
  root->setAttr(phaseAttrName, builder.getStringAttr("import"));
  if (request.options.generates())
    root->setAttr(kernels::kernelPrefixAttrName, builder.getStringAttr("rows" + std::to_string(request.options.stepRows) + "_"));
  return imported;
}

Status Compilation::loadProgram() {
  if (!std::filesystem::is_regular_file(request.input))
    return Status::error(ErrorKind::Io, request.input + ": no such file");
  diagnostics.untagged = ErrorKind::Model;
  module = parseSourceFile<ModuleOp>(request.input, ParserConfig(&context, /*verifyAfterParse=*/false));
  const bool isWhole = module && succeeded(takeLocations(*module)) && succeeded(mlir::verify(*module));
  diagnostics.untagged = ErrorKind::Internal;
  if (!module)
    return Status::error(ErrorKind::Model,
                         request.input + " does not parse; give a file of --dump-phases, or the .onnx model");
  if (!module->lookupSymbol<func::FuncOp>("main"))
    return Status::error(ErrorKind::Model,
                         request.input + " has no func.func @main; give a file of --dump-phases, or the .onnx model");
  if (request.dropout)
    return Status::error(ErrorKind::Usage, "--dropout: " + request.input +
                                               " has its rates already; leave --dropout out, or start from the "
                                               ".onnx model");
  if (!isWhole)
    return Status::error(ErrorKind::Model, "");
  HPC_RETURN_IF_ERROR(attachSpec(*module));
  return takeOptions();
}

Status Compilation::load() {
  Expected<InputKind> kind = inputKindOf(request.input);
  HPC_RETURN_IF_ERROR(kind.status());
  HPC_RETURN_IF_ERROR(takeSpec());
  isProgram = *kind == InputKind::Program;
  if (isProgram)
    return loadProgram();
  Expected<OwningOpRef<ModuleOp>> imported = import(request.input, request.dims, request.constants);
  if (!imported.ok())
    return imported.status();
  module = std::move(*imported);
  return attachSpec(*module);
}

/// A proof on numbers needs the numbers.
Status Compilation::checkWeightsAreThere() {
  Status status;
  module->walk([&](nn::ParameterOp op) {
    if (status.ok() && op.isAbsent() && !std::filesystem::exists(op.getFile().str()))
      status = Status::error(ErrorKind::Usage, "--verify computes with the weights, and '" + op.getFile().str() +
                                                   "', which holds '" + op.getName().str() +
                                                   "', is not there; put it beside the model, or leave --verify out");
  });
  return status;
}

/// The reference of --verify. A file of --dump-phases may have been changed since, so its model is imported once
/// more; a .mlir that no phase has touched is a serial program itself.
Status Compilation::makeReference() {
  if (isProgram && (*module)->hasAttr(phaseAttrName)) {
    Expected<std::optional<ModelSource>> source = ModelSource::read(*module);
    if (!source.ok())
      return source.status();
    if (!*source)
      return Status::error(
          ErrorKind::Usage,
          request.input +
              " does not say which model it stems from (module attribute hpc.source), so --verify has nothing "
              "to compare it with; start from the .onnx model or a file of --dump-phases");
    request.inference |= (*source)->inference;
    request.dropout = (*source)->dropout;
    Expected<OwningOpRef<ModuleOp>> imported = import((*source)->file, (*source)->dims, (*source)->constants);
    if (!imported.ok())
      return imported.status();
    serial = std::move(*imported);
    copySidecar(*module, *serial);
  } else {
    serial = module->clone();
  }
  if (request.options.generates())
    whole = serial->clone();
  if (request.options.trains() || request.options.generates()) { // the serial step, of which no phase makes another
    auto ignore = [](StringRef) { return success(); };
    if (failed(hpc::runPhases(*serial, request.options, request.options.trains() ? "train" : "generate", ignore, [](PassManager &) {})))
      return Status::error(diagnostics.first.value_or(ErrorKind::Internal), "");
  }
  propagated = serial->clone();
  auto nothing = [](StringRef) { return success(); };
  if (failed(hpc::runPhases(*propagated, request.options, "propagate", nothing, [](PassManager &) {})))
    return Status::error(diagnostics.first.value_or(ErrorKind::Internal), "");
  return Status::success();
}

// ---- the phases ---------------------------------------------------------------------------------

/// Keeps what a phase has chosen.
Status Compilation::noteChoices(StringRef phase) {
  if (!request.keepsChoices)
    return Status::success();
  if (phase == "annotate") {
    Expected<Sidecar> spec = chosenSpec(*module, request.options);
    HPC_RETURN_IF_ERROR(spec.status());
    chosen = std::move(*spec);
    layout = chosenLayout(*module, request.options);
  } else if (phase == "propagate" && chosen) {
    addPropagatedParams(*module, *chosen);
  } else if (phase == "stage" && chosen) {
    addStageRules(*module, *chosen);
    addStages(*module, layout);
  }
  return Status::success();
}

Status Compilation::runTo(StringRef last) {
  Status failure; // an error that came from no diagnostic
  auto after = [&](StringRef phase) {
    failure = noteChoices(phase);
    if (failure.ok())
      failure = afterPhase(phase);
    return success(failure.ok());
  };
  if (succeeded(hpc::runPhases(*module, request.options, last, after, configure)))
    return Status::success();
  return failure.ok() ? Status::error(diagnostics.first.value_or(ErrorKind::Internal), "") : failure;
}

static int64_t opsOf(ModuleOp module) { return int64_t(module.lookupSymbol<func::FuncOp>("main").front().getOperations().size()); }

/// What a plan takes is known without its code, so one that does not fit is refused before any is generated, and what
/// would fit is named. Other errors are left to the phases themselves, which print them.
Status Compilation::checkMemory(StagedTrials &tries, Trials &others) {
  HPC_RETURN_IF_ERROR(runTo("stage"));
  Expected<Trial> trial = tries.run(*module, request.options);
  if (!trial.ok() || trial->fits.ok())
    return Status::success();
  std::optional<BlockProfiler> blocks;
  if (raised && opsOf(*uncut) > compiledProposals)
    blocks.emplace(*raised, request.options);
  std::string fitting = cheapestThatFit(others, blocks && blocks->repeats() ? &*blocks : nullptr, request.options, *trial);
  mlir::emitRemark((*module)->getLoc()) << "[hpc-memory] to name what fits, " << others.made("partition") << " partitioned and "
                                        << others.made("stage") << " staged programs and " << others.madePlans.load() << " plans were made";
  return Status::error(ErrorKind::Capacity,
                       trial->fits.message() + "; " +
                           (fitting.empty() ? "nothing that was tried fits, up to 8 times the ranks"
                                            : "what fits, cheapest first: " + fitting));
}

Status Compilation::runPhases() {
  if (request.evaluate && !request.options.trains())
    return Status::error(ErrorKind::Usage, "--evaluate is about a training step; add --train");
  if (request.verify) {
    HPC_RETURN_IF_ERROR(checkWeightsAreThere());
    HPC_RETURN_IF_ERROR(makeReference());
  }
  auto phase = (*module)->getAttrOfType<StringAttr>(phaseAttrName);
  HPC_RETURN_IF_ERROR(afterPhase(phase ? phase.getValue() : "import"));
  // A report on a plan that does not fit begins before anything is cut; kept values are chosen afterwards.
  std::optional<size_t> last = request.compileTo.empty() ? phases().size() : phasesUpTo(request.compileTo);
  auto isOnTheWay = [&](StringRef phase) {
    return phasesDone(*module) < phasesUpTo(phase) && last && *last > *phasesUpTo(phase);
  };
  std::optional<Trials> others;
  const bool compares = request.layouts != CompileRequest::ComparesNone && request.options.degrees.sizeOf(dist::AxisRole::Tensor) > 1;
  if ((request.options.memory || compares) && isOnTheWay("precision") && request.compileTo.empty()) {
    if (request.options.memory && isOnTheWay("raise")) {
      HPC_RETURN_IF_ERROR(runTo("raise"));
      raised = module->clone();
    }
    HPC_RETURN_IF_ERROR(runTo("precision"));
    uncut = module->clone();
  }
  if (request.options.memory && uncut) {
    others.emplace(*uncut);
    HPC_RETURN_IF_ERROR(runTo("partition"));
    others->takePartitioned(request.options, module->clone());
  }
  StagedTrials tries;
  if (request.options.trains() && request.options.recompute == "auto" && isOnTheWay("stage")) {
    HPC_RETURN_IF_ERROR(runTo("stage"));
    Expected<SmallVector<int64_t>> budgets = chooseBudgets(tries, *module, request.options);
    HPC_RETURN_IF_ERROR(budgets.status());
    request.options.budgets = *budgets;
  }
  if (others)
    HPC_RETURN_IF_ERROR(checkMemory(tries, *others));
  return runTo(request.compileTo);
}

/// A large model is compared where the user asks for it.
std::string Compilation::compared() {
  if (request.layouts == CompileRequest::ComparesNone || !uncut)
    return "";
  if (request.layouts == CompileRequest::ComparesSmall && opsOf(*uncut) > comparedUnasked)
    return "other layouts of tp: --explain=layouts compares them; each takes a compilation without code\n";
  return compareLayouts(*uncut, request.options, plan::summarize(lowered->plan, facts));
}

// ---- the plan -----------------------------------------------------------------------------------

/// A plan without --memory may take more than the machine has.
static std::string tooLargeForMachine(const Lowered &lowered, const plan::PlanFacts &facts, const Options &options) {
  if (options.memory != 0 || options.machine.empty())
    return "";
  const cost::Machine machine = machineOf(options);
  const int64_t ranks = lowered.plan.ranksPerStage();
  for (size_t stage = 0; stage < facts.memory.size(); ++stage) {
    const int64_t needed = facts.memory[stage].total(), there = machine.memoryOf(int64_t(stage) * ranks, ranks);
    if (there && needed > there)
      return "a rank of stage " + std::to_string(stage) + " needs " + byteSizeText(needed) + ", and " + machine.name + " has " + byteSizeText(there) + "; --memory=" +
             std::to_string(there) + " names layouts that fit";
  }
  return "";
}

Status Compilation::makePlan() {
  LowerOptions lowerOptions;
  // A file of --dump-phases still knows the model that it stems from.
  Expected<std::optional<ModelSource>> source = ModelSource::read(*module);
  HPC_RETURN_IF_ERROR(source.status());
  std::filesystem::path model = *source ? (*source)->file : request.input;
  lowerOptions.modelName = model.stem().string();
  lowerOptions.planFolder = request.planFolder;
  Expected<Lowered> made = lowerToPlan(*module, lowerOptions);
  HPC_RETURN_IF_ERROR(made.status());
  lowered = std::move(*made);
  lowered->plan.training = trainingSettings(*module, request.options, *source ? (*source)->dropout : request.dropout);
  HPC_RETURN_IF_ERROR(schedulePlan(lowered->plan, lowered->noted, request.checkRewrites ? checkUnplaced : RewriteCheck()));
  HPC_RETURN_IF_ERROR(placeBuffers(lowered->plan, {request.options.memory}));
  const std::vector<std::string> unequal = imbalances(lowered->plan);
  if (request.evaluate)
    addEvaluation(lowered->plan, {plan::lossName, plan::validTokensName});
  Expected<plan::PlanFacts> analysed = plan::analysePlan(lowered->plan);
  if (!analysed.ok())
    return Status::error(ErrorKind::Internal,
                         "the plan that was made fails its own check: " + analysed.status().message());
  facts = std::move(*analysed);
  comparison = compared();
  if (std::string text = tooLargeForMachine(*lowered, facts, request.options); !text.empty())
    mlir::emitRemark((*module)->getLoc()) << text;
  for (const std::string &text : unequal)
    mlir::emitRemark((*module)->getLoc()) << text;
  return Status::success();
}

Expected<std::string> Compilation::verify() {
  return verifyPlan(verification());
}

// ---- all of it ----------------------------------------------------------------------------------

Expected<CompiledPlan> compile(const CompileRequest &request) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading(); // remarks come in one order
  std::string said; // by the first error
  DiagnosticPrinter diagnostics(&context, /*allRemarks=*/false, [&](DiagnosticSeverity severity, ErrorKind, const std::string &text) {
    if (said.empty() && severity == DiagnosticSeverity::Error)
      said = text;
  });
  const bool generates = request.options.generates();
  Compilation compilation(generates ? decodeRequest(request) : request, context, diagnostics);
  auto whole = [&](const Status &status) {
    return status.ok() || !status.message().empty() ? status : Status::error(status.kind(), said);
  };
  for (auto step : {&Compilation::load, &Compilation::runPhases, &Compilation::makePlan})
    HPC_RETURN_IF_ERROR(whole((compilation.*step)()));
  CompiledPlan compiled;
  if (generates) {
    Expected<Generation> generation = makeGeneration(compilation, context, diagnostics);
    HPC_RETURN_IF_ERROR(whole(generation.status()));
    if (request.verify) {
      Expected<std::string> report = verify(*generation, compilation);
      HPC_RETURN_IF_ERROR(whole(report.status()));
      compiled.verified = std::move(*report);
    }
    compiled.plan = std::move(generation->merged.plan);
    compiled.facts = std::move(generation->facts);
    return compiled;
  }
  if (request.verify) {
    Expected<std::string> report = compilation.verify();
    HPC_RETURN_IF_ERROR(whole(report.status()));
    compiled.verified = std::move(*report);
  }
  compiled.plan = std::move(compilation.lowered->plan);
  compiled.facts = std::move(compilation.facts);
  return compiled;
}

} // namespace hpc
