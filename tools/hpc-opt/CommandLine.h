// hpc-opt's flags, parsed and checked, as plain data.
#pragma once

#include "passes/Options.h"
#include "runtime/base/Status.h"

namespace hpc {

struct CommandLine {
  Options options;
  std::string input;  ///< .onnx or .mlir
  std::string output; ///< "" = none, "-" = standard output
  std::map<std::string, int64_t> dims;
  std::string compileTo;  ///< phase after which to stop and print; "" = the whole way
  std::string dumpPhases; ///< folder; "" = no dumps
  bool inference = false; ///< nodes in training mode are compiled for inference
  bool noWeights = false; ///< external data is not read
  bool listParams = false;
  bool explain = false;
  bool verify = false;
  std::string verifyInputs; ///< .npz; "" = made up
  int64_t deviceMemory = 0; ///< bytes a rank may take; 0 = unlimited
};

/// Reads the flags. A flag that does not parse ends the process with code 1, as llvm::cl does; a value that makes no
/// sense is an error.
Expected<CommandLine> parseCommandLine(int argc, char **argv);

} // namespace hpc
