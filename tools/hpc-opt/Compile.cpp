// The way of the data: import, the phases, lower, place, check; then what the user asked to see or to have proved.
// Nothing is written before everything has succeeded.
#include "tools/hpc-opt/Compile.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/Sidecar/TensorRules.h"
#include "passes/Lower/Lower.h"
#include "passes/Phases.h"
#include "passes/Place/Place.h"
#include "runtime/base/CountText.h"
#include "runtime/base/File.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanExplain.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanStructure.h"
#include "tools/OutputFiles.h"
#include "tools/hpc-opt/Alternatives.h"
#include "tools/hpc-opt/ByteSize.h"
#include "tools/hpc-opt/CommandLine.h"
#include "tools/hpc-opt/DiagnosticPrinter.h"
#include "tools/hpc-opt/DropoutRate.h"
#include "tools/hpc-opt/Imbalance.h"
#include "tools/hpc-opt/InputKind.h"
#include "tools/hpc-opt/ModelSource.h"
#include "tools/hpc-opt/SidecarReasons.h"
#include "tools/hpc-opt/SpecFile.h"
#include "tools/hpc-opt/TrainingSettings.h"
#include "tools/hpc-opt/Trial.h"
#include "tools/hpc-opt/Verify.h"
#include "tools/hpc-opt/WriteAnnotations.h"
#include "tools/hpc-opt/WriteSpec.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <set>

namespace hpc {

namespace {
struct Compilation {
  CommandLine line;
  MLIRContext &context;
  DiagnosticPrinter &diagnostics;
  OwningOpRef<ModuleOp> module;
  OwningOpRef<ModuleOp> serial; ///< --verify: what was imported
  OwningOpRef<ModuleOp> propagated; ///< --verify: the same, after propagate
  OwningOpRef<ModuleOp> uncut; ///< --memory: as it is before phase annotate
  std::optional<SpecFile> spec;
  std::optional<Sidecar> chosen; ///< --write-spec
  onnx::ChosenLayout layout;     ///< --write-onnx-annotations
  Status failure; ///< an error that came from no diagnostic
  bool isProgram = false; ///< the input is .mlir

  /// Takes a Status for a place where MLIR wants a LogicalResult.
  LogicalResult check(Status status) {
    if (status.ok())
      return success();
    failure = status;
    return mlir::failure();
  }

  std::string text() {
    std::string result;
    llvm::raw_string_ostream out(result);
    OpPrintingFlags flags;
    flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
    module->print(out, flags);
    result += "\n";
    return result;
  }

  LogicalResult dump(StringRef phase) {
    std::optional<size_t> number = phasesUpTo(phase);
    if (line.dumpPhases.empty() || !number) // a phase that is none is the error of runPhases
      return success();
    *number -= size_t(llvm::count_if(phases().take_front(*number), [&](const Phase &before) {
      return !before.isPartOf(line.options);
    }));
    std::string digits = (*number < 10 ? "0" : "") + std::to_string(*number);
    std::string path = (std::filesystem::path(line.dumpPhases) / (digits + "-" + phase.str() + ".mlir")).string();
    return check(writeFile(path, text()));
  }

  /// A dumped phase carries the options that it was made with; a program without them takes those of the command line.
  Status takeOptions() {
    DictionaryAttr given = line.options.toAttribute(&context);
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
    if ((line.givesOptions || given != Options().toAttribute(&context)) && given != own)
      return Status::error(ErrorKind::Usage, line.input + " was made with other options than the flags say; leave them "
                                                          "out, or start from the .onnx model");
    Expected<Options> options = Options::fromAttribute(own);
    if (!options.ok())
      return options.status();
    options->kernelCache = line.options.kernelCache;
    line.options = *options;
    return Status::success();
  }

  /// Finds the sidecar, and with it the degrees.
  Status takeSpec() {
    if (line.listParams) { // names are what a broken sidecar is mended with
      line.spec = "none";
      line.configuration.clear();
    }
    Expected<std::optional<SpecFile>> found = findSpec(line.spec, line.configuration, line.input);
    if (!found.ok())
      return found.status();
    spec = std::move(*found);
    Expected<dist::Mesh> degrees =
        dist::resolveDegrees(line.degrees, line.devices, spec ? spec->sidecar.mesh : dist::GivenSizes(), plan::maxRanks);
    if (!degrees.ok())
      return degrees.status();
    line.options.degrees = *degrees;
    return Status::success();
  }

  /// Gives a program that no phase has touched its sidecar; a dumped phase has its own.
  Status attachSpec(ModuleOp root) {
    if (!spec)
      return Status::success();
    if (root->hasAttr(sidecarAttrName) || phasesDone(root) != 0)
      return Status::error(ErrorKind::Usage, "--spec=" + line.spec + ": " + line.input +
                                                 " was made with the annotations that it has; leave --spec out, or "
                                                 "start from the .onnx model");
    setSidecar(root, spec->path, spec->text);
    noteTensors(root, spec->sidecar);
    if (spec->isDefault)
      mlir::emitRemark(root.getLoc()) << "taking the annotations of " << spec->path << (spec->choice.empty() ? "" : ", ") << spec->choice
                                      << "; --spec=none ignores them";
    return Status::success();
  }

  Status load() {
    Expected<InputKind> kind = inputKindOf(line.input);
    HPC_RETURN_IF_ERROR(kind.status());
    HPC_RETURN_IF_ERROR(takeSpec());
    isProgram = *kind == InputKind::Program;
    if (isProgram) {
      if (!std::filesystem::is_regular_file(line.input))
        return Status::error(ErrorKind::Io, line.input + ": no such file");
      diagnostics.untagged = ErrorKind::Model;
      module = parseSourceFile<ModuleOp>(line.input, &context);
      diagnostics.untagged = ErrorKind::Internal;
      if (!module)
        return Status::error(ErrorKind::Model,
                             line.input + " does not parse; give a file of --dump-phases, or the .onnx model");
      if (!module->lookupSymbol<func::FuncOp>("main"))
        return Status::error(ErrorKind::Model,
                             line.input + " has no func.func @main; give a file of --dump-phases, or the .onnx model");
      if (line.dropout)
        return Status::error(ErrorKind::Usage, "--dropout: " + line.input +
                                                   " has its rates already; leave --dropout out, or start from the "
                                                   ".onnx model");
      HPC_RETURN_IF_ERROR(attachSpec(*module));
      return takeOptions();
    }
    Expected<OwningOpRef<ModuleOp>> imported = import(line.input, line.dims, line.constants);
    if (!imported.ok())
      return imported.status();
    module = std::move(*imported);
    return attachSpec(*module);
  }

  Expected<OwningOpRef<ModuleOp>> import(const std::string &file, const std::map<std::string, int64_t> &dims,
                                         const std::map<std::string, std::string> &constants) {
    ImportOptions options;
    options.dims = dims;
    options.constants = constants;
    options.inference = line.inference;
    options.training = line.options.trains();
    options.withoutWeights = line.noWeights;
    options.followLinks = line.followLinks;
    Expected<OwningOpRef<ModuleOp>> imported = importOnnx(file, options, &context);
    if (!imported.ok())
      return imported;
    ModuleOp root = **imported;
    if (line.dropout)
      HPC_RETURN_IF_ERROR(setDropoutRate(root, *line.dropout));
    Builder builder(&context);
    ModelSource{file, dims, line.inference, line.dropout, constants}.write(root);
    root->setAttr(optionsAttrName, line.options.toAttribute(&context));
    root->setAttr(phaseAttrName, builder.getStringAttr("import"));
    return imported;
  }

  /// What --verify compares with. A file of --dump-phases may have been changed since, so its model is imported once
  /// more; a .mlir that no phase has touched is a serial program itself.
  Status makeReference() {
    if (isProgram && (*module)->hasAttr(phaseAttrName)) {
      Expected<std::optional<ModelSource>> source = ModelSource::read(*module);
      if (!source.ok())
        return source.status();
      if (!*source)
        return Status::error(
            ErrorKind::Usage,
            line.input +
                " does not say which model it stems from (module attribute hpc.source), so --verify has nothing "
                "to compare it with; start from the .onnx model or a file of --dump-phases");
      line.inference |= (*source)->inference;
      line.dropout = (*source)->dropout;
      Expected<OwningOpRef<ModuleOp>> imported = import((*source)->file, (*source)->dims, (*source)->constants);
      if (!imported.ok())
        return imported.status();
      serial = std::move(*imported);
      copySidecar(*module, *serial);
    } else {
      serial = module->clone();
    }
    if (line.options.trains()) { // the serial step, of which no phase makes another
      auto ignore = [](StringRef) { return success(); };
      if (failed(runPhases(*serial, line.options, "train", ignore, [](PassManager &) {})))
        return Status::error(diagnostics.first.value_or(ErrorKind::Internal), "");
    }
    propagated = serial->clone();
    auto nothing = [](StringRef) { return success(); };
    if (failed(runPhases(*propagated, line.options, "propagate", nothing, [](PassManager &) {})))
      return Status::error(diagnostics.first.value_or(ErrorKind::Internal), "");
    return Status::success();
  }

  /// Keeps for --write-spec what the phases have chosen.
  void noteChoices(StringRef phase) {
    if (line.writeSpec.empty() && line.writeAnnotations.empty())
      return;
    if (phase == "annotate") {
      Expected<Sidecar> spec = chosenSpec(*module, line.options);
      failure = spec.status();
      if (spec.ok())
        chosen = std::move(*spec);
      layout = chosenLayout(*module, line.options);
    } else if (phase == "propagate" && chosen) {
      addPropagatedParams(*module, *chosen);
    } else if (phase == "stage" && chosen) {
      addStageRules(*module, *chosen);
      addStages(*module, layout);
    }
  }

  Status writeChoices() {
    if (!line.writeSpec.empty() && !chosen)
      return Status::error(ErrorKind::Usage, "--write-spec=" + line.writeSpec + ": " + line.input +
                                                 " is past phase annotate, where layouts are chosen; start from the "
                                                 ".onnx model or an earlier file of --dump-phases");
    if (!line.writeSpec.empty())
      HPC_RETURN_IF_ERROR(writeFile(line.writeSpec, sidecarText(*chosen)));
    return line.writeAnnotations.empty() ? Status::success()
                                         : writeAnnotatedModel(line.input, line.writeAnnotations, line.options, *module, layout);
  }

  Status runThePhases() {
    auto after = [&](StringRef phase) {
      noteChoices(phase);
      return success(failure.ok() && succeeded(dump(phase)));
    };
    auto configure = [](PassManager &passes) {
      (void)applyPassManagerCLOptions(passes);
      applyDefaultTimingPassManagerCLOptions(passes);
    };
    auto run = [&](StringRef last) {
      if (succeeded(runPhases(*module, line.options, last, after, configure)))
        return Status::success();
      return failure.ok() ? Status::error(diagnostics.first.value_or(ErrorKind::Internal), "") : failure;
    };
    // What is told where the plan does not fit begins before anything is cut; what is kept is chosen once it is.
    std::optional<size_t> last = line.compileTo.empty() ? phases().size() : phasesUpTo(line.compileTo);
    auto isOnTheWay = [&](StringRef phase) {
      return phasesDone(*module) < phasesUpTo(phase) && last && *last > *phasesUpTo(phase);
    };
    if (line.options.memory && isOnTheWay("precision")) {
      HPC_RETURN_IF_ERROR(run("precision"));
      uncut = module->clone();
    }
    if (line.options.trains() && line.options.recompute == "auto" && isOnTheWay("stage")) {
      HPC_RETURN_IF_ERROR(run("stage"));
      Expected<SmallVector<int64_t>> budgets = chooseBudgets(*module, line.options);
      if (!budgets.ok())
        return budgets.status();
      line.options.budgets = *budgets;
    }
    return run(line.compileTo);
  }

  /// A plan that does not fit: what would.
  Status withAlternatives(Status status) {
    if (status.ok() || status.kind() != ErrorKind::Capacity || !uncut)
      return status;
    std::string fitting = cheapestThatFit(*uncut, line.options);
    return Status::error(ErrorKind::Capacity,
                         status.message() + "; " +
                             (fitting.empty() ? "nothing that was tried fits, up to 8 times the ranks"
                                              : "what fits, cheapest first: " + fitting));
  }

  std::string planFolder() const {
    std::string folder = std::filesystem::path(line.output).parent_path().string();
    return folder.empty() ? "." : folder;
  }

  bool printsProgram() const { return !line.compileTo.empty() && (line.output.empty() || line.output == "-"); }

  /// -o, --write-onnx-annotations and --write-spec.
  std::vector<NamedFile> outputs() const {
    return {{"-o " + line.output, printsProgram() ? "" : line.output},
            {"--write-onnx-annotations=" + line.writeAnnotations, line.writeAnnotations},
            {"--write-spec=" + line.writeSpec, line.writeSpec}};
  }

  Status checkArguments() const {
    if (line.input.empty())
      return Status::error(ErrorKind::Usage, "no model is given; see hpc-opt --help");
    if (!line.compileTo.empty() && !phasesUpTo(line.compileTo))
      return Status::error(ErrorKind::Usage,
                           "--compile-to=" + line.compileTo + " is no phase; phases are " + phaseNames());
    for (const NamedFile &file : outputs())
      HPC_RETURN_IF_ERROR(checkDestination(file));
    // Layouts are chosen in annotate, stages in stage.
    for (auto [name, file, last] : {std::tuple("--write-spec=", &line.writeSpec, "annotate"),
                                    {"--write-onnx-annotations=", &line.writeAnnotations, "stage"}})
      if (!file->empty() && !line.compileTo.empty() && *phasesUpTo(line.compileTo) < *phasesUpTo(last))
        return Status::error(ErrorKind::Usage, name + *file + " needs what phase " + last +
                                                   " chooses, and --compile-to=" + line.compileTo +
                                                   " stops before; leave one of them out");
    if (!line.dumpPhases.empty()) {
      std::error_code error;
      std::filesystem::create_directories(line.dumpPhases, error);
      if (error)
        return Status::error(ErrorKind::Io, "--dump-phases=" + line.dumpPhases + " cannot be made: " + error.message() +
                                                "; name another folder");
      HPC_RETURN_IF_ERROR(checkDestination(
          {"--dump-phases=" + line.dumpPhases, (std::filesystem::path(line.dumpPhases) / "01-import.mlir").string()}));
    }
    return Status::success();
  }

  /// Only a sidecar may take the place of the one that was read.
  Status checkFiles() {
    std::vector<NamedFile> read = {{"the model", line.input}, {"--verify=" + line.verifyInputs, line.verifyInputs}};
    for (const auto &[name, file] : line.constants)
      read.push_back({"--const " + name + "=" + file, file});
    std::set<std::string> weights;
    module->walk([&](nn::ParameterOp op) { weights.insert(op.getFile().str()); });
    for (const std::string &file : weights)
      read.push_back({"the file of weights '" + file + "'", file});
    std::vector<NamedFile> written = outputs();
    HPC_RETURN_IF_ERROR(checkOutputFiles({written.back()}, read));
    if (spec)
      read.push_back({"the sidecar '" + spec->path + "'", spec->path});
    HPC_RETURN_IF_ERROR(checkOutputFiles({written[0], written[1]}, read));
    return checkOutputFiles(written, {});
  }

  /// A proof on numbers needs the numbers.
  Status checkWeightsAreThere() {
    Status status;
    module->walk([&](nn::ParameterOp op) {
      if (status.ok() && op.isAbsent() && !std::filesystem::exists(op.getFile().str()))
        status = Status::error(ErrorKind::Usage, "--verify computes with the weights, and '" + op.getFile().str() +
                                                     "', which holds '" + op.getName().str() +
                                                     "', is not there; put it beside the model, or leave --verify out");
    });
    return status;
  }

  Status printModule() {
    if (printsProgram()) {
      OpPrintingFlags flags;
      module->print(llvm::outs(), flags);
      llvm::outs() << "\n";
      return Status::success();
    }
    return writeFile(line.output, text());
  }

  Status run() {
    HPC_RETURN_IF_ERROR(checkArguments());
    // 1. The model.
    HPC_RETURN_IF_ERROR(load());
    HPC_RETURN_IF_ERROR(checkFiles());
    if (line.listParams) {
      llvm::outs() << listParameters(*module);
      return Status::success();
    }
    if (line.verify) {
      HPC_RETURN_IF_ERROR(checkWeightsAreThere());
      HPC_RETURN_IF_ERROR(makeReference());
    }
    auto phase = (*module)->getAttrOfType<StringAttr>(phaseAttrName);
    if (failed(dump(phase ? phase.getValue() : "import")))
      return failure;
    // 2. The phases.
    HPC_RETURN_IF_ERROR(runThePhases());
    if (!line.compileTo.empty()) {
      HPC_RETURN_IF_ERROR(writeChoices());
      return printModule();
    }
    // 3. The plan.
    LowerOptions lowerOptions;
    // A file of --dump-phases still knows the model that it stems from.
    Expected<std::optional<ModelSource>> source = ModelSource::read(*module);
    if (!source.ok())
      return source.status();
    std::filesystem::path model = *source ? (*source)->file : line.input;
    lowerOptions.modelName = model.stem().string();
    lowerOptions.planFolder = planFolder();
    Expected<Lowered> lowered = lowerToPlan(*module, lowerOptions);
    if (!lowered.ok())
      return lowered.status();
    lowered->plan.training = trainingSettings(*module, line.options, *source ? (*source)->dropout : line.dropout);
    HPC_RETURN_IF_ERROR(withAlternatives(placeBuffers(lowered->plan, {line.options.memory})));
    Expected<plan::PlanFacts> facts = plan::analysePlan(lowered->plan);
    if (!facts.ok())
      return Status::error(ErrorKind::Internal,
                           "the plan that was made fails its own check: " + facts.status().message());
    // 4. What is told and proved of it.
    for (const std::string &text : imbalances(lowered->plan))
      mlir::emitRemark((*module)->getLoc()) << text;
    if (line.explain) {
      plan::Plan explained = withSidecarPlaces(lowered->plan, sidecarPlaces(*module));
      llvm::outs() << (line.explainAsJson ? plan::explainPlanJson(explained, *facts)
                                          : plan::explainPlan(explained, *facts));
    }
    if (line.verify) {
      Verification verification{*serial, *propagated, *module, *lowered, lowerOptions.planFolder, line.verifyInputs};
      Expected<std::string> report = verifyPlan(verification);
      if (!report.ok())
        return report.status();
      llvm::outs() << *report;
    }
    // 5. Only now it is written.
    HPC_RETURN_IF_ERROR(writeChoices());
    if (!line.output.empty())
      return plan::writePlan(lowered->plan, line.output);
    if (line.explain || line.verify || !line.writeSpec.empty())
      return Status::success();
    int64_t most = 0;
    for (const plan::MemoryFacts &memory : facts->memory)
      most = std::max(most, memory.total());
    llvm::outs() << "compiled a plan for " << countText(lowered->plan.worldSize(), "rank") << " of at most "
                 << byteSizeText(most) << " each; nothing is written without -o PLAN\n";
    return Status::success();
  }
};
} // namespace

int compileMain(int argc, char **argv, DialectRegistry &registry) {
  Expected<CommandLine> line = parseCommandLine(argc, argv);
  Status status = line.status();
  if (line.ok() && !line->help.empty()) {
    llvm::outs() << line->help;
  } else if (line.ok()) {
    MLIRContext context(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading(); // deterministic remarks; a compilation takes no time that threads would save
    DiagnosticPrinter diagnostics(&context, line->allRemarks);
    Compilation compilation{*line, context, diagnostics, {}, {}, {}, {}, {}, {}, {}, {}};
    status = compilation.run();
  }
  llvm::outs().flush();
  if (std::error_code error = llvm::outs().error()) { // LLVM would end without telling what it was
    llvm::outs().clear_error();
    if (status.ok())
      status = Status::error(ErrorKind::Io,
                             "standard output cannot be written, so what it has is not whole: " + error.message());
  }
  if (!status.ok() && !status.message().empty())
    llvm::errs() << "hpc-opt: " << status.text() << "\n";
  return status.exitCode();
}

} // namespace hpc
