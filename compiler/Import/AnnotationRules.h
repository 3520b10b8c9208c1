// Between the standard's multi-device annotations and the sidecar's rules: devices are ranks,
// device = (stage * dp + data coordinate) * tp + tensor coordinate, so that shards in device order are axes of the mesh.
#pragma once

#include "compiler/Import/DeviceAnnotations.h"
#include "compiler/Sidecar/Sidecar.h"

namespace hpc::onnx {

struct AnnotationRules {
  Sidecar sidecar;
  std::string configuration; ///< the configuration of the annotations
  std::vector<std::string> otherConfigurations;
};

/// The annotations of the model's configuration `configuration` ("": its first) as rules of parameters, of other
/// tensors and of stages (optional ones: the standard calls them hints). The mesh is the one in the configuration's
/// name ("dp=1 pp=2 tp=2"), otherwise the one with the largest tp that all specs fit. nullopt where the model has no
/// configuration. Errors: those of readDeviceAnnotations; unsupported for devices that form no axes of a mesh, and for
/// tensors that two nodes cut differently.
Expected<std::optional<AnnotationRules>> rulesOfAnnotations(const std::string &path, const std::string &configuration = "");

/// The choices of a compilation, by names of the ONNX file.
struct ChosenLayout {
  dist::Mesh degrees; ///< with the layout's own axes in place of the tensor axis
  std::string layout; ///< its name, "" where it has none
  std::map<std::string, std::vector<SidecarCut>> tensors; ///< dims counted from 0; cuts over mb are left out
  std::map<std::string, int64_t> stageOfNode;
  std::set<std::string> binding; ///< parameters whose cut the user wanted, not the compiler
};

/// The model with that layout as its only annotations. A tensor's spec is attached to the node that makes it, or to the
/// nodes that read it where no node makes it.
Expected<std::string> annotatedModel(std::string_view model, const ChosenLayout &layout);

} // namespace hpc::onnx
