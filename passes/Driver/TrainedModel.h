// A model of ONNX and the trained tensors that belong into it. Tensors find each other as the import and hpc-run have them: by name, by the name in the framework's
// state, and by equal content of the untrained file, which is what made them one parameter.
#pragma once

#include "compiler/Import/OnnxModel.h"
#include "compiler/Import/TensorRewriting.h"
#include "passes/Driver/TrainedElements.h"
#include "runtime/core/TensorFiles.h"

namespace hpc {

struct TrainedWeights {
  std::string path;         ///< a checkpoint (file or folder) of hpc-run or hpc-train, or other files of tensors (TensorFiles.h)
  std::string flag;         ///< for messages: "--trained=run"
  bool followLinks = false; ///< external data of the model may be links
};

/// A stored tensor of the model.
struct ModelTensor {
  onnx::TensorPlace place;
  const onnx::StoredTensor *stored = nullptr; ///< its old content and the exporter's notes; null: nothing reads it
  bool isRead = false;                        ///< an output of the model needs it
  /// The tensor in the framework's state that the exporter made it from, as it is or transposed; "": it is one itself.
  std::string origin;
  std::optional<TrainedTensor> trained;

  const std::string &name() const { return place.names.front(); }
};

/// Whether a framework's state may have a tensor of that name: not those of exporters ("onnx::MatMul_12", "/h.0/Constant", "val_3").
bool isStateName(const std::string &name);

/// Whether the bytes of all tensors are in mapped files.
bool isMapped(const TensorFiles &files);

class TrainedModel {
public:
  /// Errors: of reading either; tensors of the model without a trained one, or of another shape or type, in one error, a line each; a trained tensor that differs
  /// from all that the model has, and has no place in it.
  static Expected<TrainedModel> open(const std::string &path, const TrainedWeights &weights);

  const std::vector<ModelTensor> &tensors() const { return list; }
  const MappedFile &file() const { return *model.files.front(); }
  const onnx::Model &onnx() const { return model; }
  const TensorFiles &weights() const { return *trained; }
  /// Other names of an initializer: nodes that only pass it on.
  std::vector<std::string> otherNames(const std::string &name) const;
  /// Notes for people: each tensor that was found by something else than its name.
  std::vector<std::string> notes;

private:
  Status read(const std::string &path, bool followLinks);
  void noteReaders();
  Status matchByName(const std::string &flag);
  void matchByContent();
  Status checkMissing(const TrainedWeights &weights);
  Status checkUnused(const TrainedWeights &weights);

  onnx::Model model;
  std::vector<ModelTensor> list;
  std::map<std::string, const onnx::StoredTensor *> stored;  ///< of functions' bodies too, by the names of the import
  std::map<std::string, std::vector<std::string>> passedOn;  ///< by initializer
  std::optional<TensorFiles> trained;
  bool isCheckpoint = false; ///< has all that was trained
};

} // namespace hpc
