// A diagnostic as a user reads it: MLIR's op verifiers name no place, so the ONNX node of the location is added where
// the text lacks it.
#pragma once

#include "compiler/Location.h"
#include "mlir/IR/Diagnostics.h"

namespace hpc {

/// "'dist.all_reduce' op (C1) ... (at ONNX node 'node_addmm_5')".
inline std::string describeDiagnostic(Diagnostic &diagnostic) {
  std::string text = diagnostic.str(), node = nodeName(diagnostic.getLocation());
  if (!node.empty() && text.find(node) == std::string::npos)
    text += " (at ONNX node '" + node + "')";
  return text;
}

} // namespace hpc
