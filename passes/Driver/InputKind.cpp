// A damaged model has no kind that its content shows, so such a file goes to the reader of models, which tells what is wrong with it.
#include "passes/Driver/InputKind.h"

#include "runtime/base/File.h"
#include "runtime/base/FileKind.h"

namespace hpc {

static bool endsWith(const std::string &text, std::string_view ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

Expected<InputKind> inputKindOf(const std::string &path) {
  constexpr std::string_view bytecode = "ML\xefR";
  const bool isCalledProgram = endsWith(path, ".mlir"), isCalledModel = endsWith(path, ".onnx");
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return isCalledProgram ? InputKind::Program : InputKind::Model;
  const FileKind kind = fileKindOf(file->text());
  switch (kind) {
  case FileKind::Onnx:
    return InputKind::Model;
  case FileKind::Empty:
    return isCalledModel ? InputKind::Model : InputKind::Program;
  case FileKind::Unknown:
    if (file->text().substr(0, bytecode.size()) == bytecode)
      return InputKind::Program;
    if (!isCalledProgram)
      return InputKind::Model;
    break;
  case FileKind::Text:
  case FileKind::Json:
    if (!isCalledModel)
      return InputKind::Program;
    break;
  default:
    break;
  }
  const std::string use = useOf(kind);
  return Status::error(ErrorKind::Usage, "'" + path + "' is " + describe(kind) + (use.empty() ? "" : ": " + use) +
                                             "; hpc-opt takes an ONNX model, or a program in .mlir");
}

} // namespace hpc
