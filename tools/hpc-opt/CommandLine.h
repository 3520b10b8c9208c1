// hpc-opt's flags, parsed and checked, as plain data.
#pragma once

#include "passes/Options.h"
#include "runtime/base/Status.h"

namespace hpc {

struct CommandLine {
  std::string help; ///< where it was asked for: print it and do nothing else
  Options options; ///< without the degrees: see dist::resolveDegrees
  dist::GivenSizes degrees;
  std::optional<int64_t> devices;
  bool givesOptions = false; ///< a flag says what is in `options` or `degrees`, be it what they are anyway
  std::string spec;  ///< sidecar; "" = the one beside the model, "none" = none
  std::string configuration; ///< the device configuration of an .onnx model; "" = its first
  std::string writeSpec; ///< file; "" = not written
  std::string writeAnnotations; ///< .onnx; "" = not written
  std::string input;  ///< .onnx or .mlir
  std::string output; ///< "" = none, "-" = standard output
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::string> constants; ///< inputs bound at compile time: name -> file
  std::string compileTo;  ///< phase after which to stop and print; "" = the whole way
  std::string dumpPhases; ///< folder; "" = no dumps
  bool inference = false; ///< nodes in training mode are compiled for inference
  std::optional<double> dropout; ///< the rate of all dropouts, in place of the model's own
  bool noWeights = false; ///< external data is not read
  bool followLinks = false; ///< external data may be or lie behind links
  bool listParams = false;
  bool explain = false;
  bool explainAsJson = false;
  bool allRemarks = false; ///< also those that no user can act on
  bool verify = false;
  std::string verifyInputs; ///< .npz; "" = made up
};

/// Reads the flags; one that is unknown, does not parse or makes no sense is an error.
Expected<CommandLine> parseCommandLine(int argc, char **argv);

/// Whether an argument is one of our flags that mlir-opt does not have.
bool isCompilerFlag(StringRef argument);

} // namespace hpc
