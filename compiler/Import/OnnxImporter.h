// From an ONNX file to a module with one function @main of the nn dialect, static shapes, weights by reference.
// Arguments carry name and dims, results a name (compiler/Dialect/NN/Ports.h); every op's location names its ONNX node
// and module path. Values that depend on shapes alone are folded (README.md).
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Status.h"

namespace hpc {

struct ImportOptions {
  std::map<std::string, int64_t> dims; ///< sizes of symbolic dims, by name
  std::map<std::string, std::string> constants; ///< inputs bound at compile time: name -> .npy, .npz or .pb file
  bool inference = false;              ///< nodes in training mode (Dropout) behave as in inference, with a remark
  bool training = false;               ///< the graph becomes a training step: Dropout in training mode is imported as such
  int64_t sequenceLength = 0;          ///< the graph becomes a step of generation: positions of its sequences, from which all inputs but the ids follow; 0: it does not
  int64_t sequenceRows = 0;            ///< then: the number of them; 0: by `dims`, else 1
  bool withoutWeights = false;         ///< external data is not read, though it may be there
  bool followLinks = false;            ///< external data may be or lie beyond links
};

/// Weights whose external data is not there become parameters without hashes, with one remark.
/// Errors: usage (open sizes), model (corrupt, inconsistent), unsupported (all ops at once, with their nodes), io.
Expected<OwningOpRef<ModuleOp>> importOnnx(const std::string &path, const ImportOptions &options, MLIRContext *context);

/// The text of --list-params: one paragraph per nn.parameter, in program order, with names, shape, dtype and users.
std::string listParameters(ModuleOp module);

} // namespace hpc
