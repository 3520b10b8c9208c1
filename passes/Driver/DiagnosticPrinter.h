// Prints MLIR's diagnostics as a tool's messages: the tag of compiler/Diagnostics.h becomes error[kind].
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Status.h"

#include "mlir/IR/Diagnostics.h"

#include <functional>
#include <set>

namespace hpc {

/// As long as it lives, `[usage] text` goes to the sink as an error of kind usage.
struct DiagnosticPrinter {
  /// Takes a message with its place; the kind is an error's.
  using Sink = std::function<void(DiagnosticSeverity severity, ErrorKind kind, const std::string &text)>;
  std::optional<ErrorKind> first; ///< the kind of the first error that was printed
  /// Of errors without a tag: a defect of this program, but while a user's file is parsed.
  ErrorKind untagged = ErrorKind::Internal;

  /// A remark that begins with the flag of its pass, "[hpc-propagate-shardings] ...", tells what a pass weighed; only one
  /// without it is something that a user can act on. The former are printed where `allRemarks` asks for them.
  DiagnosticPrinter(MLIRContext *context, bool allRemarks, Sink sink);

  /// To standard error, after the tool's name, severity and kind.
  static void print(StringRef tool, DiagnosticSeverity severity, ErrorKind kind, const std::string &text);

private:
  void take(Diagnostic &diagnostic);
  Sink sink;
  bool allRemarks;
  std::set<std::string> told; ///< warnings and remarks, with their places
  ScopedDiagnosticHandler handler;
};

} // namespace hpc
