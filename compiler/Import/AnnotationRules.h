// Between the standard's multi-device annotations and the sidecar's rules: devices are ranks,
// device = (stage * dp + data coordinate) * tp + tensor coordinate, so that shards in device order are axes of the mesh.
#pragma once

#include "compiler/Import/DeviceAnnotations.h"
#include "compiler/Sidecar/Sidecar.h"

namespace hpc::onnx {

struct AnnotationRules {
  Sidecar sidecar;
  std::string configuration; ///< the one that they are of
  std::vector<std::string> otherConfigurations;
};

/// The annotations of the model's configuration of that name, "": its first, as rules: of parameters, of other tensors, of stages (optional ones: the standard calls them
/// hints). The mesh is the one that the configuration's name spells ("dp=1 pp=2 tp=2"), else the one with the largest
/// tp to which all specs fit. nullopt where the model has no configuration.
/// Errors: readDeviceAnnotations'; unsupported for devices that are no axes of a mesh, and for tensors that two nodes want
/// cut differently.
Expected<std::optional<AnnotationRules>> rulesOfAnnotations(const std::string &path, const std::string &configuration = "");

/// What a compilation chose, by names of the ONNX file.
struct ChosenLayout {
  dist::Mesh degrees;
  std::map<std::string, std::vector<SidecarCut>> tensors; ///< dims counted from 0; cuts over mb are left out
  std::map<std::string, int64_t> stageOfNode;
};

/// The model with that layout as its only annotations. A tensor's spec stands at the node that makes it, or at those that
/// read it where none does.
Expected<std::string> annotatedModel(std::string_view model, const ChosenLayout &layout);

} // namespace hpc::onnx
