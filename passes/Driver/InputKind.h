// Whether hpc-opt was given a model or a program, by the content of the file.
#pragma once

#include "runtime/base/Status.h"

#include <string>

namespace hpc {

enum class InputKind {
  Model,   ///< ONNX
  Program, ///< MLIR, as text or bytecode
};

/// A file that is neither is an error that names its kind. A file that cannot be opened counts as what its name says: whoever
/// reads it tells why.
Expected<InputKind> inputKindOf(const std::string &path);

inline bool isInputKind(const std::string &path, InputKind wanted) {
  Expected<InputKind> kind = inputKindOf(path);
  return kind.ok() && *kind == wanted;
}

} // namespace hpc
