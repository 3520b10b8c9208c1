// Severity, kind and text of a diagnostic; its notes follow it.
#include "tools/hpc-opt/DiagnosticPrinter.h"

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

DiagnosticPrinter::DiagnosticPrinter(MLIRContext *context, bool allRemarks)
    : allRemarks(allRemarks), handler(context, [this](Diagnostic &diagnostic) {
        print(diagnostic);
        return success();
      }) {}

void DiagnosticPrinter::print(Diagnostic &diagnostic) {
  std::string message = messageText(describeDiagnostic(diagnostic));
  auto [tag, text] = splitTag(message);
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark && text.starts_with("[hpc-") && !allRemarks)
    return;
  const bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error || diagnostic.getSeverity() == DiagnosticSeverity::Note;
  std::string key = text.str();
  llvm::raw_string_ostream(key) << diagnostic.getLocation();
  if (!isError && !told.insert(key).second) // --verify makes the serial step once more
    return;
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error: {
    ErrorKind kind = tag.value_or(untagged);
    if (!first)
      first = kind;
    llvm::errs() << "hpc-opt: error[" << name(kind) << "]: ";
    break;
  }
  case DiagnosticSeverity::Warning:
    llvm::errs() << "hpc-opt: warning: ";
    break;
  case DiagnosticSeverity::Remark:
    llvm::errs() << "hpc-opt: remark: ";
    break;
  case DiagnosticSeverity::Note:
    llvm::errs() << "hpc-opt: note: ";
    break;
  }
  if (auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
    llvm::errs() << place.getFilename().getValue() << ":" << place.getLine() << ":" << place.getColumn() << ": ";
  llvm::errs() << text << "\n";
  for (Diagnostic &note : diagnostic.getNotes())
    print(note);
}

} // namespace hpc
