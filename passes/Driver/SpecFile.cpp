// The file is read once, here; from then on its text travels with the module.
#include "passes/Driver/SpecFile.h"

#include "compiler/Import/AnnotationRules.h"
#include "passes/Driver/InputKind.h"
#include "runtime/base/File.h"

#include <filesystem>

namespace hpc {

/// The model's own annotations as the text of a sidecar; lines in messages are those of what --write-spec would print.
static Expected<std::optional<SpecFile>> specInside(const std::string &model, const std::string &configuration) {
  Expected<std::optional<onnx::AnnotationRules>> rules = onnx::rulesOfAnnotations(model, configuration);
  if (!rules.ok() || !*rules)
    return rules.ok() ? Expected<std::optional<SpecFile>>(std::optional<SpecFile>()) : rules.status();
  const auto &[read, name, others] = **rules;
  SpecFile spec{model + " (device configurations)", sidecarText(read), {}, true, ""};
  if (!others.empty() && configuration.empty())
    spec.choice = "the first of them, '" + name + "'; --onnx-configuration=" + others.front() + " takes " +
                  (others.size() > 1 ? "the next" : "the other");
  Expected<Sidecar> sidecar = parseSidecar(spec.text, spec.path);
  if (!sidecar.ok())
    return sidecar.status();
  spec.sidecar = std::move(*sidecar);
  return std::optional(std::move(spec));
}

Expected<std::optional<SpecFile>> findSpec(const std::string &flag, const std::string &configuration,
                                           const std::string &model) {
  std::filesystem::path path = flag;
  if (!configuration.empty()) {
    std::string text = "--onnx-configuration=" + configuration;
    if (!flag.empty())
      return Status::error(ErrorKind::Usage, text + " and --spec=" + flag + " both say where annotations are; give one of them");
    if (!isInputKind(model, InputKind::Model))
      return Status::error(ErrorKind::Usage, text + " is for an .onnx model, and " + model + " is none");
    return specInside(model, configuration);
  }
  if (flag == "none")
    return std::optional<SpecFile>();
  bool isDefault = flag.empty();
  if (isDefault) {
    path = std::filesystem::path(model);
    if (!isInputKind(model, InputKind::Model))
      return std::optional<SpecFile>();
    path.replace_extension(".shard.json");
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      return std::filesystem::is_regular_file(model, error) ? specInside(model, "") : std::optional<SpecFile>();
  }
  Expected<MappedFile> file = MappedFile::open(path.string());
  if (!file.ok())
    return file.status();
  SpecFile spec{path.string(), std::string(file->text()), {}, isDefault, ""};
  Expected<Sidecar> sidecar = parseSidecar(spec.text, spec.path);
  if (!sidecar.ok())
    return sidecar.status();
  spec.sidecar = std::move(*sidecar);
  return std::optional(std::move(spec));
}

} // namespace hpc
