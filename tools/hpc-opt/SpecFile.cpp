// The file is read once, here; from then on its text travels with the module.
#include "tools/hpc-opt/SpecFile.h"

#include "runtime/base/File.h"

#include <filesystem>

namespace hpc {

Expected<std::optional<SpecFile>> findSpec(const std::string &flag, const std::string &model) {
  std::filesystem::path path = flag;
  if (flag == "none")
    return std::optional<SpecFile>();
  bool isDefault = flag.empty();
  if (isDefault) {
    path = std::filesystem::path(model);
    if (path.extension() != ".onnx")
      return std::optional<SpecFile>();
    path.replace_extension(".shard.json");
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      return std::optional<SpecFile>();
  }
  Expected<MappedFile> file = MappedFile::open(path.string());
  if (!file.ok())
    return file.status();
  SpecFile spec{path.string(), std::string(file->text()), {}, isDefault};
  Expected<Sidecar> sidecar = parseSidecar(spec.text, spec.path);
  if (!sidecar.ok())
    return sidecar.status();
  spec.sidecar = std::move(*sidecar);
  return std::optional(std::move(spec));
}

} // namespace hpc
