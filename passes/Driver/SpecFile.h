// Which sidecar a compilation takes: --spec=FILE, `<model>.shard.json` beside the model, the annotations inside an ONNX
// model, or none.
#pragma once

#include "compiler/Sidecar/Sidecar.h"

namespace hpc {

struct SpecFile {
  std::string path, text;
  Sidecar sidecar;
  bool isDefault = false; ///< found beside the model, or in it
  std::string choice;     ///< of several configurations of the model: which one, for people
};

/// `flag`: what --spec says, "" where it is not given; `configuration` the same of --onnx-configuration. A model that is no .onnx has no default.
/// Errors: io for a file that is named and cannot be read, sidecar for what is wrong in it.
Expected<std::optional<SpecFile>> findSpec(const std::string &flag, const std::string &configuration,
                                           const std::string &model);

} // namespace hpc
