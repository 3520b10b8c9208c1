// Severity, kind and text of a diagnostic; its notes follow it.
#include "passes/Driver/DiagnosticPrinter.h"

#include "compiler/DiagnosticText.h"
#include "runtime/base/MessageText.h"

#include "llvm/Support/raw_ostream.h"

namespace hpc {

/// The kind that a tag in front of the text names, and the text without it.
static std::pair<std::optional<ErrorKind>, StringRef> splitTag(StringRef text) {
  for (ErrorKind kind : {ErrorKind::Usage, ErrorKind::Model, ErrorKind::Unsupported, ErrorKind::Sidecar,
                         ErrorKind::Capacity, ErrorKind::Plan, ErrorKind::Io, ErrorKind::Internal})
    if (StringRef rest = text; rest.consume_front("[" + std::string(name(kind)) + "] "))
      return {kind, rest};
  return {std::nullopt, text};
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext *context, bool allRemarks, Sink sink)
    : sink(std::move(sink)), allRemarks(allRemarks), handler(context, [this](Diagnostic &diagnostic) {
        take(diagnostic);
        return success();
      }) {}

void DiagnosticPrinter::print(StringRef tool, DiagnosticSeverity severity, ErrorKind kind, const std::string &text) {
  llvm::errs() << tool << ": ";
  switch (severity) {
  case DiagnosticSeverity::Error:
    llvm::errs() << "error[" << name(kind) << "]: ";
    break;
  case DiagnosticSeverity::Warning:
    llvm::errs() << "warning: ";
    break;
  case DiagnosticSeverity::Remark:
    llvm::errs() << "remark: ";
    break;
  case DiagnosticSeverity::Note:
    llvm::errs() << "note: ";
    break;
  }
  llvm::errs() << text << "\n";
}

void DiagnosticPrinter::take(Diagnostic &diagnostic) {
  std::string message = messageText(describeDiagnostic(diagnostic));
  auto [tag, text] = splitTag(message);
  const DiagnosticSeverity severity = diagnostic.getSeverity();
  if (severity == DiagnosticSeverity::Remark && text.starts_with("[hpc-") && !allRemarks)
    return;
  const bool isError = severity == DiagnosticSeverity::Error || severity == DiagnosticSeverity::Note;
  std::string key = text.str();
  llvm::raw_string_ostream(key) << diagnostic.getLocation();
  if (!isError && !told.insert(key).second) // --verify makes the serial step once more
    return;
  ErrorKind kind = tag.value_or(untagged);
  if (severity == DiagnosticSeverity::Error && !first)
    first = kind;
  std::string place;
  if (auto known = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
    place = known.getFilename().str() + ":" + std::to_string(known.getLine()) + ":" + std::to_string(known.getColumn()) + ": ";
  sink(severity, kind, place + text.str());
  for (Diagnostic &note : diagnostic.getNotes())
    take(note);
}

} // namespace hpc
