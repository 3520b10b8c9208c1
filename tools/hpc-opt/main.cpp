// hpc-opt: compiles an ONNX model into a plan, or runs passes over an .mlir file as mlir-opt does.
// The arguments decide which: an ONNX model is compiled; an .mlir file is compiled if a flag of the compiler or an output that
// ends in .plan is given.
#include "compiler/MLIR.h"
#include "passes/Driver/InputKind.h"
#include "passes/Driver/ProgramText.h"
#include "passes/Phases.h"
#include "tools/ShortenedFiles.h"
#include "tools/hpc-opt/CommandLine.h"
#include "tools/hpc-opt/Compile.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#include <filesystem>
#include <unistd.h>

using namespace hpc;

/// Whether the command line requests a compilation rather than single passes.
static bool wantsCompile(int argc, char **argv) {
  bool asksForPlan = false;
  for (int i = 1; i < argc; ++i) {
    StringRef arg = argv[i];
    if (arg == "-o" && i + 1 < argc)
      asksForPlan |= StringRef(argv[++i]).ends_with(".plan");
    else if (arg.starts_with("-o=") || arg.starts_with("--o="))
      asksForPlan |= arg.ends_with(".plan");
    else if (isCompilerFlag(arg) || arg.ends_with(".onnx") ||
             (!arg.starts_with("-") && std::filesystem::is_regular_file(arg.str()) &&
              isInputKind(arg.str(), InputKind::Model)))
      return true;
  }
  return asksForPlan;
}

/// The .mlir mode reads with MLIR's own reader, which would wait for a pipe and read a device without an end.
static Status checkProgramFile(int argc, char **argv) {
  if (argc == 1 && isatty(STDIN_FILENO))
    return Status::error(ErrorKind::Usage, "no model was given; hpc-opt MODEL.onnx --tp=2 -o PLAN compiles one; see hpc-opt --help");
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.empty())
      return Status::error(ErrorKind::Usage,
                           "'' names no file; give a model, or a program in .mlir; see hpc-opt --help");
    if (argument == "-o")
      ++i;
    else if (argument[0] != '-' && std::filesystem::exists(argument)) {
      if (!std::filesystem::is_regular_file(argument))
        return Status::error(ErrorKind::Io, "'" + argument + "': is not a regular file; give a file, or none to read .mlir "
                                                             "from standard input");
      HPC_RETURN_IF_ERROR(inputKindOf(argument).status());
    }
  }
  return Status::success();
}

/// mlir-opt, which also keeps the locations that a file has as attributes.
static LogicalResult runPasses(int argc, char **argv, DialectRegistry &registry) {
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "hpc-opt: passes over .mlir; give it an .onnx file to compile\n", registry);
  const MlirOptMainConfig flags = MlirOptMainConfig::createFromCLOptions();
  if (flags.shouldShowDialects() || flags.shouldListPasses())
    return MlirOptMain(argc, argv, input, output, registry);
  MlirOptMainConfig config = flags;
  config.setPassPipelineSetupFn(
      [&](PassManager &passes) { return addWithLocations(passes, [&] { return flags.setupPassPipeline(passes); }); });
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> text = openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> file = text ? openOutputFile(output, &error) : nullptr;
  if (!file) {
    llvm::errs() << "hpc-opt: " << error << "\n";
    return failure();
  }
  if (failed(MlirOptMain(file->os(), std::move(text), registry, config)))
    return failure();
  file->keep();
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  reportShortenedFiles("hpc-opt");
  DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  if (wantsCompile(argc, argv))
    return compileMain(argc, argv, registry);
  if (Status status = checkProgramFile(argc, argv); !status.ok()) {
    llvm::errs() << "hpc-opt: " << status.text() << "\n";
    return status.exitCode();
  }
  return failed(runPasses(argc, argv, registry)) ? 1 : 0;
}
