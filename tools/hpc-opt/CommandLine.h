// hpc-opt's flags, parsed and checked, as plain data.
#pragma once

#include "passes/Driver/Compilation.h"
#include "passes/Search/Search.h"

namespace hpc {

struct CommandLine : CompileRequest {
  std::string help; ///< requested text: print it and do nothing else
  std::string writeSpec; ///< file; "" = not written
  std::string writeAnnotations; ///< .onnx; "" = not written
  std::string output; ///< "" = none, "-" = standard output
  std::string dumpPhases; ///< folder; "" = no dumps
  std::string exported; ///< .onnx or folder for the trained model; "" = a plan is made
  std::string trained, pretrained; ///< for `exported`
  int64_t shardBytes = 0;          ///< likewise
  std::optional<search::Question> question; ///< of --auto and --rank-layouts
  bool ranksAlone = false;                  ///< --rank-layouts without --auto
  bool answersAsJson = false;
  bool listParams = false;
  bool explain = false;
  bool explainAsJson = false;
  bool allRemarks = false; ///< also remarks on which no user can act
};

/// Reads the flags; one that is unknown, does not parse or makes no sense is an error.
Expected<CommandLine> parseCommandLine(int argc, char **argv);

/// Whether an argument is one of our flags that mlir-opt does not have.
bool isCompilerFlag(StringRef argument);

} // namespace hpc
