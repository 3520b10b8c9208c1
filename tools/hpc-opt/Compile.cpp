// The command line: flags become a request, the driver compiles it, and this file checks, explains and writes it.
#include "tools/hpc-opt/Compile.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxImporter.h"
#include "runtime/base/ByteSize.h"
#include "passes/Driver/Compilation.h"
#include "passes/Driver/Generation.h"
#include "passes/Driver/ProgramText.h"
#include "passes/Driver/SidecarReasons.h"
#include "passes/Driver/TrainedFolder.h"
#include "passes/Driver/TrainedOnnx.h"
#include "passes/Driver/WriteAnnotations.h"
#include "passes/Phases.h"
#include "passes/Search/SearchReport.h"
#include "runtime/base/CountText.h"
#include "runtime/base/File.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanExplain.h"
#include "runtime/plan/PlanFile.h"
#include "tools/OutputFiles.h"
#include "tools/compiling/PredictedStep.h"
#include "tools/hpc-opt/CommandLine.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <filesystem>
#include <set>

namespace hpc {

namespace {
struct Command {
  const CommandLine &line;
  Compilation &compilation;
  MLIRContext &context;
  DiagnosticPrinter &diagnostics;

  ModuleOp module() const { return *compilation.module; }

  Status dump(StringRef phase) {
    std::optional<size_t> number = phasesUpTo(phase);
    if (line.dumpPhases.empty() || !number) // a phase that is none is the error of runPhases
      return Status::success();
    *number -= size_t(llvm::count_if(phases().take_front(*number), [&](const Phase &before) {
      return !before.isPartOf(compilation.request.options);
    }));
    std::string digits = (*number < 10 ? "0" : "") + std::to_string(*number);
    std::string path = (std::filesystem::path(line.dumpPhases) / (digits + "-" + phase.str() + ".mlir")).string();
    return writeFile(path, programText(module()));
  }

  Status writeChoices() {
    if (!line.writeSpec.empty() && !compilation.chosen)
      return Status::error(ErrorKind::Usage, "--write-spec=" + line.writeSpec + ": " + line.input +
                                                 " is past phase annotate, where layouts are chosen; start from the "
                                                 ".onnx model or an earlier file of --dump-phases");
    if (!line.writeSpec.empty())
      HPC_RETURN_IF_ERROR(writeFile(line.writeSpec, sidecarText(*compilation.chosen)));
    return line.writeAnnotations.empty() ? Status::success()
                                         : writeAnnotatedModel(line.input, line.writeAnnotations, compilation.request.options, module(), compilation.layout);
  }

  bool printsProgram() const { return !line.compileTo.empty() && (line.output.empty() || line.output == "-"); }

  /// -o, --write-onnx-annotations and --write-spec.
  std::vector<NamedFile> outputs() const {
    return {{"-o " + line.output, printsProgram() ? "" : line.output},
            {"--write-onnx-annotations=" + line.writeAnnotations, line.writeAnnotations},
            {"--write-spec=" + line.writeSpec, line.writeSpec}};
  }

  Status checkArguments() const {
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
    module().walk([&](nn::ParameterOp op) { weights.insert(op.getFile().str()); });
    for (const std::string &file : weights)
      read.push_back({"the file of weights '" + file + "'", file});
    std::vector<NamedFile> written = outputs();
    HPC_RETURN_IF_ERROR(checkOutputFiles({written.back()}, read));
    if (compilation.spec)
      read.push_back({"the sidecar '" + compilation.spec->path + "'", compilation.spec->path});
    HPC_RETURN_IF_ERROR(checkOutputFiles({written[0], written[1]}, read));
    return checkOutputFiles(written, {});
  }

  Status printModule() {
    if (printsProgram()) {
      llvm::outs() << programText(module());
      return Status::success();
    }
    return writeFile(line.output, programText(module()));
  }

  /// --auto and --rank-layouts: prints the answer, and takes the winner. A text on standard output that programs read stays alone there.
  Status answerQuestion() {
    search::Question question = *line.question;
    question.explains = line.explain;
    Expected<search::Answer> answer = search::findPlan(question, context, diagnostics);
    HPC_RETURN_IF_ERROR(answer.status());
    (line.explainAsJson || printsProgram() ? llvm::errs() : llvm::outs())
        << (line.answersAsJson ? search::answerJson(*answer) : line.ranksAlone ? search::tableText(*answer) : search::reportText(*answer));
    answer->applyTo(compilation.request);
    return Status::success();
  }

  Status run() {
    HPC_RETURN_IF_ERROR(checkArguments());
    if (line.question)
      HPC_RETURN_IF_ERROR(answerQuestion());
    if (line.ranksAlone)
      return Status::success();
    // 1. The model.
    HPC_RETURN_IF_ERROR(compilation.load());
    HPC_RETURN_IF_ERROR(checkFiles());
    if (line.listParams) {
      llvm::outs() << listParameters(module());
      return Status::success();
    }
    // 2. The phases.
    compilation.afterPhase = [&](StringRef phase) { return dump(phase); };
    compilation.configure = [](PassManager &passes) {
      (void)applyPassManagerCLOptions(passes);
      applyDefaultTimingPassManagerCLOptions(passes);
    };
    HPC_RETURN_IF_ERROR(compilation.runPhases());
    if (!line.compileTo.empty()) {
      HPC_RETURN_IF_ERROR(writeChoices());
      return printModule();
    }
    // 3. The plan, its explanations and its checks.
    HPC_RETURN_IF_ERROR(compilation.makePlan());
    std::optional<Generation> generation;
    if (line.options.generates()) {
      Expected<Generation> made = makeGeneration(compilation, context, diagnostics);
      HPC_RETURN_IF_ERROR(made.status());
      generation = std::move(*made);
    }
    const plan::Plan &plan = generation ? generation->merged.plan : compilation.lowered->plan;
    const plan::PlanFacts &facts = generation ? generation->facts : compilation.facts;
    if (line.explain) {
      plan::Plan explained = withSidecarPlaces(plan, sidecarPlaces(module()));
      Expected<std::optional<plan::PredictedStep>> step = predictedStep(plan, compilation.request.options);
      HPC_RETURN_IF_ERROR(step.status());
      llvm::outs() << (line.explainAsJson ? plan::explainPlanJson(explained, facts, *step)
                                          : plan::explainPlan(explained, facts) + (generation ? cachesText(plan) : "") + compilation.comparison + (*step ? stepText(plan, **step) : ""));
    }
    if (line.verify) {
      Expected<std::string> report = generation ? verify(*generation, compilation) : compilation.verify();
      if (!report.ok())
        return report.status();
      llvm::outs() << *report;
    }
    // 4. Only now it is written.
    HPC_RETURN_IF_ERROR(writeChoices());
    if (!line.output.empty())
      return plan::writePlan(plan, line.output);
    if (line.explain || line.verify || !line.writeSpec.empty())
      return Status::success();
    int64_t most = 0;
    for (const plan::MemoryFacts &memory : facts.memory)
      most = std::max(most, memory.total());
    llvm::outs() << "compiled a plan for " << countText(plan.worldSize(), "rank") << " of at most " << byteSizeText(most)
                 << " each; nothing is written without -o PLAN\n";
    return Status::success();
  }
};
} // namespace

/// --export
static Status exportTrained(const CommandLine &line) {
  const TrainedWeights weights{line.trained, "--trained=" + line.trained, line.followLinks};
  const bool isFile = StringRef(line.exported).ends_with(".onnx");
  if (isFile)
    HPC_RETURN_IF_ERROR(checkDestination({"--export=" + line.exported, line.exported}));
  Expected<std::vector<std::string>> notes = isFile ? writeTrainedOnnx(line.input, weights, line.exported)
                                                    : writeTrainedFolder(line.input, weights, {line.pretrained, "", line.shardBytes}, line.exported);
  HPC_RETURN_IF_ERROR(notes.status());
  for (const std::string &note : *notes)
    llvm::errs() << "hpc-opt: note: " << note << "\n";
  return Status::success();
}

int compileMain(int argc, char **argv, DialectRegistry &registry) {
  Expected<CommandLine> line = parseCommandLine(argc, argv);
  Status status = line.status();
  if (line.ok() && !line->help.empty()) {
    llvm::outs() << line->help;
  } else if (line.ok() && !line->exported.empty()) {
    status = exportTrained(*line);
  } else if (line.ok()) {
    MLIRContext context(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading(); // deterministic remarks; a compilation takes no time that threads would save
    DiagnosticPrinter diagnostics(&context, line->allRemarks, [](DiagnosticSeverity severity, ErrorKind kind, const std::string &text) {
      DiagnosticPrinter::print("hpc-opt", severity, kind, text);
    });
    CompileRequest request = *line;
    if (line->listParams) { // the names help to mend a broken sidecar
      request.spec = "none";
      request.configuration.clear();
    }
    request.keepsChoices = !line->writeSpec.empty() || !line->writeAnnotations.empty();
    request.planFolder = folderOf(line->output);
    request.checkRewrites = std::getenv("HPC_CHECK_REWRITES") != nullptr; // for tests
    if (request.options.generates())
      request = decodeRequest(std::move(request));
    Compilation compilation(std::move(request), context, diagnostics);
    status = Command{*line, compilation, context, diagnostics}.run();
  }
  llvm::outs().flush();
  if (std::error_code error = llvm::outs().error()) { // LLVM would end without naming the error
    llvm::outs().clear_error();
    if (status.ok())
      status = Status::error(ErrorKind::Io,
                             "standard output cannot be written, so its text is incomplete: " + error.message());
  }
  if (!status.ok() && !status.message().empty())
    llvm::errs() << "hpc-opt: " << status.text() << "\n";
  return status.exitCode();
}

} // namespace hpc
