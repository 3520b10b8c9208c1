// hpc-opt: compiles an ONNX model into a plan, or runs passes over an .mlir file as mlir-opt does.
// What it does follows from its arguments: an .onnx file, or an .mlir file with an output that ends in .plan, is
// compiled.
#include "compiler/MLIR.h"
#include "passes/Phases.h"
#include "tools/hpc-opt/Compile.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"

using namespace hpc;

/// Whether the command line asks for a compilation rather than for single passes.
static bool wantsCompile(int argc, char **argv) {
  bool isPlanOutput = false, isMlir = false, isMlirOutput = false;
  for (int i = 1; i < argc; ++i) {
    StringRef arg = argv[i];
    if (arg == "-o" && i + 1 < argc) {
      isPlanOutput = StringRef(argv[i + 1]).ends_with(".plan");
      isMlirOutput = StringRef(argv[++i]).ends_with(".mlir");
    } else if (arg.consume_front("-o=") || arg.consume_front("--o=")) {
      isPlanOutput = arg.ends_with(".plan");
    } else if (!arg.starts_with("-")) {
      if (arg.ends_with(".onnx"))
        return true;
      isMlir |= arg.ends_with(".mlir");
    } else if (arg.starts_with("--help") || arg == "-h" || arg == "-help") {
      return argc == 2;
    }
  }
  (void)isMlirOutput;
  // A file of another kind is a model by a wrong name: the compiler's errors say so. No file at all is mlir-opt on
  // standard input.
  return isMlir && isPlanOutput;
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
