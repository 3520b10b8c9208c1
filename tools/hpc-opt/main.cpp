// hpc-opt: compiles an ONNX model into a plan, or runs passes over an .mlir file as mlir-opt does.
// What it does follows from its arguments: an .onnx file, or an .mlir file with an output that ends in .plan, is
// compiled.
#include "compiler/MLIR.h"
#include "passes/Phases.h"
#include "tools/hpc-opt/Compile.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"

using namespace hpc;

/// Whether a flag is one that mlir-opt does not have.
static bool isCompilerFlag(StringRef arg) {
  StringRef name = arg.ltrim('-').split('=').first;
  return llvm::is_contained({"compile-to", "verify", "explain", "dump-phases", "list-params"}, name);
}

/// Whether the command line asks for a compilation rather than for single passes.
static bool wantsCompile(int argc, char **argv) {
  bool isMlir = false, asksForPlan = false;
  for (int i = 1; i < argc; ++i) {
    StringRef arg = argv[i];
    if (arg == "-o" && i + 1 < argc)
      asksForPlan |= StringRef(argv[++i]).ends_with(".plan");
    else if (arg.starts_with("-o=") || arg.starts_with("--o="))
      asksForPlan |= arg.ends_with(".plan");
    else if (arg == "--help" || arg == "-h" || arg == "-help")
      return argc == 2; // with anything else, mlir-opt's own help
    else if (arg.starts_with("-"))
      asksForPlan |= isCompilerFlag(arg);
    else if (arg.ends_with(".onnx"))
      return true;
    else
      isMlir |= arg.ends_with(".mlir");
  }
  return isMlir && asksForPlan;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  if (wantsCompile(argc, argv))
    return compileMain(argc, argv, registry);
  return failed(MlirOptMain(argc, argv, "hpc-opt: passes over .mlir; give it an .onnx file to compile\n", registry))
             ? 1
             : 0;
}
