// The readers of strangers' files, as functions of bytes. Each ends in success or a clear error for any bytes at all:
// a crash, a hang, an error[internal] (it aborts) or more memory than the file deserves is a finding.
#pragma once

#include "runtime/base/Status.h"
#include "test/fuzz/Mutation.h"

#include <string>
#include <string_view>
#include <vector>

namespace hpc::fuzz {

struct Target {
  const char *name;
  bool (*run)(std::string_view bytes); ///< whether they were accepted
  std::vector<std::string> (*seeds)(); ///< valid files to start from, all of them accepted
  Format format;
  std::vector<std::string> (*more)() = nullptr; ///< more to start from, accepted or not
};

/// onnx (the protobuf alone), plan (a body behind the file's hash, which no flipped byte would get past), npz,
/// safetensors, sidecar, annotations: all that needs no MLIR.
const std::vector<Target> &fileTargets();
/// compile: a model to a plan over tp=2.
const std::vector<Target> &compileTargets();

// ---- for the targets -----------------------------------------------------------------------------

/// The bytes as a file, in a folder of its own that holds nothing else a model could name. In memory where it can be.
class TemporaryFile {
public:
  explicit TemporaryFile(std::string_view bytes);
  ~TemporaryFile();
  std::string path() const { return folder + "/file"; }
  std::string folder;
};

/// Whether all went well. Errors are fine unless they are our own: those abort.
bool holds(const Status &status);
/// A file of the repository.
std::string fileOf(const char *relative);
/// Small graphs that reach most families of ops; a real export.
std::vector<std::string> models();
/// The ONNX project's node tests and ONNX Runtime's ops: every op of the import.
std::vector<std::string> nodeModels();

} // namespace hpc::fuzz
