// Errors that a user causes, as MLIR diagnostics: the kind travels as a tag in front of the message ("[usage] ..."),
// which hpc-opt prints as error[usage]. A diagnostic without a tag is a defect of this program.
#pragma once

#include "compiler/MLIR.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/base/Status.h"

namespace hpc {

inline InFlightDiagnostic userError(Location location, ErrorKind kind) {
  InFlightDiagnostic diagnostic = mlir::emitError(location);
  diagnostic << "[" << name(kind) << "] ";
  return diagnostic;
}
inline InFlightDiagnostic userError(Operation *op, ErrorKind kind) { return userError(op->getLoc(), kind); }

} // namespace hpc
