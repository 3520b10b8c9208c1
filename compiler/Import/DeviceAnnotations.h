// The ONNX standard's own multi-device annotations (IR version 11: ModelProto.configuration,
// NodeProto.device_configurations) as plain structs. They are newer than our schema, so they are read and written by
// field number; onnx/docs/proposals/ONNXMultiDeviceProposal.md defines them.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hpc::onnx {

/// One factor of a dim (SimpleShardedDimProto): `size` indices, 0 = the whole dim, in `shards` blocks.
struct ShardedPart {
  int64_t size = 0, shards = 1;
  std::string symbol; ///< set where the size is a name
  bool operator==(const ShardedPart &other) const {
    return size == other.size && shards == other.shards && symbol == other.symbol;
  }
};
struct ShardedDim {
  int64_t axis = 0;
  std::vector<ShardedPart> parts; ///< major to minor
  bool operator==(const ShardedDim &other) const { return axis == other.axis && parts == other.parts; }
};

/// How an input or output of a node is cut (ShardingSpecProto). Shards are counted row-major over dims and their parts.
struct ShardingSpec {
  std::string tensor;
  std::vector<std::vector<int64_t>> devices; ///< by shard: all that hold it
  std::vector<ShardedDim> dims;
};

/// The annotation of one node in the chosen configuration.
struct NodeAnnotation {
  std::string node; ///< its name, or its first output's
  std::vector<ShardingSpec> specs;
  std::optional<int64_t> stage;
};

struct DeviceAnnotations {
  std::string configuration; ///< "" where the model has none
  int64_t devices = 0;
  std::vector<std::string> otherConfigurations;
  std::vector<NodeAnnotation> nodes; ///< nodes with an annotation, in the file's order
  std::vector<std::string> parameters; ///< names of all initializers, of Constant nodes' values, and of either dequantised
  /// Tensors whose specs the user wanted, where the metadata property hpc.binding of this configuration lists them: the other specs of parameters
  /// yield where an op cannot follow. The standard's own are all binding.
  std::optional<std::set<std::string>> binding;
};

/// The annotations of the configuration `configuration`, "": of the model's first. Checks everything that the standard
/// requires of an annotation by itself: names that exist, devices in range, as many as there are shards. Errors: usage
/// for an unknown name; model; io. A file that is no ONNX model has no annotations: the importer reports its error.
Expected<DeviceAnnotations> readDeviceAnnotations(const std::string &path, const std::string &configuration = "");

struct NodeTensors {
  std::string node; ///< its name, or its first output's
  std::vector<std::string> inputs, outputs;
};
/// All nodes of a model's graph, in the file's order.
std::vector<NodeTensors> nodeTensors(std::string_view model);

/// The model's bytes with these annotations, by node name, in place of its own; IR version 11 at least.
Expected<std::string> withDeviceAnnotations(std::string_view model, const DeviceAnnotations &annotations);

} // namespace hpc::onnx
