// The model that a module stems from and how it was imported, as the module attribute
// `hpc.source = {file = "gpt2.onnx", dims = {batch_size = 2 : i64}}`, with `inference`, `dropout = 0.1 : f64` and
// `constants = {name = "file"}` where those flags were given.
// It stays through all phases, so that a dumped phase can name its plan and be verified against its model.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Status.h"

namespace hpc {

struct ModelSource {
  std::string file;
  std::map<std::string, int64_t> dims; ///< sizes of symbolic dims that the user gave
  bool inference = false;              ///< --inference
  std::optional<double> dropout;       ///< --dropout
  std::map<std::string, std::string> constants; ///< --const: name -> file

  void write(ModuleOp module) const;
  /// nullopt where the module says nothing of it; an error where what it says is damaged.
  static Expected<std::optional<ModelSource>> read(ModuleOp module);
};

} // namespace hpc
