// From and to protobuf's wire format. A message is copied field by field, so nothing else in the file changes.
#include "compiler/Import/DeviceAnnotations.h"

#include "runtime/base/CountText.h"
#include "runtime/base/WireFormat.h"
#include "runtime/base/File.h"

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <tuple>

namespace hpc::onnx {
namespace {

using wire::Field, wire::Fields;

// Field numbers of onnx.proto.
enum ModelField { irVersionField = 1, graphField = 7, metadataField = 14, configurationField = 26 };
enum GraphField { nodeField = 1, initializerField = 5 };
enum NodeField { inputField = 1, outputField = 2, nameField = 3, opField = 4, nodeConfigurationsField = 10 };
constexpr uint64_t tensorNameField = 8;
constexpr int64_t leastIrVersion = 11;
/// The key of a metadata property. Its lines are a configuration and tensors.
constexpr const char *bindingKey = "hpc.binding";

/// A message inside the file.
struct Message {
  const std::byte *data;
  int64_t begin, end;

  template <typename Visit> bool each(Visit visit) const {
    Fields fields(data, begin, end);
    for (Field field; fields.next(field);)
      visit(field);
    return fields.atEnd();
  }
  Message child(const Field &field) const { return {data, field.begin, field.end}; }
  std::string text(const Field &field) const {
    return std::string(reinterpret_cast<const char *>(data) + field.begin, size_t(field.end - field.begin));
  }
  std::string raw(const Field &field) const {
    return std::string(reinterpret_cast<const char *>(data) + field.first, size_t(field.last - field.first));
  }
};

// ---- reading ------------------------------------------------------------------------------------

/// A repeated int64, packed or not.
void readNumbers(const Message &message, const Field &field, std::vector<int64_t> &numbers) {
  if (field.type == 0) {
    numbers.push_back(int64_t(field.value));
    return;
  }
  for (int64_t at = field.begin; at < field.end;) {
    uint64_t value = 0;
    for (int shift = 0; at < field.end && shift < 64; shift += 7) {
      uint64_t byte = uint64_t(message.data[at++]);
      value |= (byte & 127) << shift;
      if (byte < 128)
        break;
    }
    numbers.push_back(int64_t(value));
  }
}

struct RawSpec {
  std::vector<int64_t> device;
  std::map<int64_t, std::vector<int64_t>> groups;
  ShardingSpec spec;
};

RawSpec readSpec(const Message &message) {
  RawSpec raw;
  message.each([&](const Field &field) {
    if (field.number == 1 && field.type == 2)
      raw.spec.tensor = message.text(field);
    if (field.number == 2)
      readNumbers(message, field, raw.device);
    if (field.number == 3 && field.type == 2) {
      int64_t key = 0;
      std::vector<int64_t> members;
      Message entry = message.child(field);
      entry.each([&](const Field &part) {
        if (part.number == 1 && part.type == 0)
          key = int64_t(part.value);
        if (part.number == 2)
          readNumbers(entry, part, members);
      });
      raw.groups[key] = std::move(members);
    }
    if (field.number == 4 && field.type == 2) {
      ShardedDim dim;
      Message sharded = message.child(field);
      sharded.each([&](const Field &part) {
        if (part.number == 1 && part.type == 0)
          dim.axis = int64_t(part.value);
        if (part.number != 2 || part.type != 2)
          return;
        ShardedPart simple;
        simple.shards = 0; // must be given
        Message digit = sharded.child(part);
        digit.each([&](const Field &number) {
          if (number.number == 1 && number.type == 0)
            simple.size = int64_t(number.value);
          if (number.number == 2 && number.type == 2)
            simple.symbol = digit.text(number);
          if (number.number == 3 && number.type == 0)
            simple.shards = int64_t(number.value);
        });
        dim.parts.push_back(std::move(simple));
      });
      raw.spec.dims.push_back(std::move(dim));
    }
  });
  return raw;
}

/// Checks and completes a spec by the rules for all tensors.
Status resolveSpec(RawSpec &raw, int64_t numDevices) {
  auto wrong = [](const std::string &what) { return Status::error(ErrorKind::Model, what); };
  int64_t shards = 1;
  for (const ShardedDim &dim : raw.spec.dims)
    for (const ShardedPart &part : dim.parts) {
      if (part.shards < 1 || part.shards > numDevices)
        return wrong("num_shards of axis " + std::to_string(dim.axis) + " is " + std::to_string(part.shards) +
                     "; it must be from 1 to the configuration's " + countText(numDevices, "device"));
      if (dim.parts.size() > 1 && part.size < 1)
        return wrong("axis " + std::to_string(dim.axis) + " is cut in several parts, and one has no dim_value; give "
                     "each its size as a number");
      shards *= part.shards;
      if (shards > numDevices)
        return wrong("it has more shards than the configuration's " + countText(numDevices, "device"));
    }
  if (shards != int64_t(raw.device.size()) && !(shards == 1 && raw.device.size() > 1))
    return wrong("it has " + countText(shards, "shard") + ", and " + countText(raw.device.size(), "device") +
                 " or groups of devices; give one for each shard");
  if (shards == 1 && raw.device.size() > 1) { // a list of devices that all hold the whole
    raw.groups[INT64_MIN] = raw.device;
    raw.device = {INT64_MIN};
  }
  std::set<int64_t> seen;
  for (int64_t device : raw.device) {
    auto group = raw.groups.find(device);
    std::vector<int64_t> members = group == raw.groups.end() ? std::vector<int64_t>{device} : group->second;
    std::sort(members.begin(), members.end());
    for (int64_t member : members) {
      if (member < 0 || member >= numDevices)
        return wrong("device " + std::to_string(member) + " is neither of 0 to " + std::to_string(numDevices - 1) +
                     " nor a key of index_to_device_group_map");
      if (!seen.insert(member).second)
        return wrong("device " + std::to_string(member) + " holds two shards; a device holds one");
    }
    if (members.empty())
      return wrong("the group " + std::to_string(device) + " has no devices");
    raw.spec.devices.push_back(std::move(members));
  }
  return Status::success();
}

class AnnotationReader {
public:
  Expected<DeviceAnnotations> read(const Message &model, const std::string &wanted) {
    std::optional<Message> graph;
    std::vector<std::pair<std::string, int64_t>> configurations;
    std::map<std::string, std::string> metadata;
    model.each([&](const Field &field) {
      if (field.number == metadataField && field.type == 2)
        wire::takeTextEntry(model.data, field, metadata);
      if (field.number == graphField && field.type == 2)
        graph = model.child(field);
      if (field.number != configurationField || field.type != 2)
        return;
      configurations.emplace_back();
      Message configuration = model.child(field);
      configuration.each([&](const Field &part) {
        if (part.number == 1 && part.type == 2)
          configurations.back().first = configuration.text(part);
        if (part.number == 2 && part.type == 0)
          configurations.back().second = int64_t(part.value);
      });
    });
    auto chosen = std::find_if(configurations.begin(), configurations.end(),
                               [&](const auto &each) { return wanted.empty() || each.first == wanted; });
    if (chosen == configurations.end() && !wanted.empty())
      return noSuchConfiguration(wanted, configurations);
    if (chosen == configurations.end() || !graph)
      return result;
    std::tie(result.configuration, result.devices) = *chosen;
    for (auto each = configurations.begin(); each != configurations.end(); ++each) {
      known.insert(each->first);
      if (each != chosen)
        result.otherConfigurations.push_back(each->first);
    }
    if (result.devices < 1 || result.devices > 65536)
      return Status::error(ErrorKind::Model, "configuration '" + result.configuration + "' has " +
                                                 countText(result.devices, "device") + "; it must be from 1 to 65536");
    if (auto property = metadata.find(bindingKey); property != metadata.end())
      readBinding(property->second);
    graph->each([&](const Field &field) {
      if (field.type != 2 || !failure.ok())
        return;
      if (field.number == nodeField)
        readNode(graph->child(field));
      if (field.number == initializerField) {
        Message tensor = graph->child(field);
        tensor.each([&](const Field &part) {
          if (part.number == tensorNameField && part.type == 2)
            result.parameters.push_back(tensor.text(part));
        });
      }
    });
    if (!failure.ok())
      return failure;
    for (const auto &[codes, numbers] : dequantized)
      if (std::find(result.parameters.begin(), result.parameters.end(), codes) != result.parameters.end())
        result.parameters.push_back(numbers);
    return std::move(result);
  }

private:
  static Status noSuchConfiguration(const std::string &wanted, const std::vector<std::pair<std::string, int64_t>> &all) {
    std::string names;
    for (size_t i = 0; i < all.size() && i < 10; ++i)
      names += (names.empty() ? "" : ", ") + all[i].first;
    return Status::error(ErrorKind::Usage, "--onnx-configuration=" + wanted + " is none of the model's device configurations; it has " +
                                               (names.empty() ? "none" : names) + (all.size() > 10 ? ", ..." : ""));
  }

  void readBinding(const std::string &property) {
    std::istringstream lines(property);
    std::string line;
    if (!std::getline(lines, line) || line != result.configuration)
      return;
    for (result.binding.emplace(); std::getline(lines, line);)
      result.binding->insert(line);
  }

  void readNode(const Message &node) {
    NodeAnnotation annotation;
    std::vector<std::string> tensors;
    std::string firstOutput, op;
    std::vector<Message> configurations;
    node.each([&](const Field &field) {
      if (field.type != 2)
        return;
      if (field.number == opField)
        op = node.text(field);
      if (field.number == inputField || field.number == outputField)
        tensors.push_back(node.text(field));
      if (field.number == outputField && firstOutput.empty())
        firstOutput = node.text(field);
      if (field.number == nameField)
        annotation.node = node.text(field);
      if (field.number == nodeConfigurationsField)
        configurations.push_back(node.child(field));
    });
    if (op == "Constant")
      result.parameters.push_back(firstOutput);
    if (op == "DequantizeLinear" && !tensors.empty())
      dequantized.push_back({tensors.front(), firstOutput});
    if (annotation.node.empty())
      annotation.node = firstOutput;
    for (const Message &configuration : configurations)
      readConfiguration(configuration, tensors, annotation);
    if (annotation.stage || !annotation.specs.empty())
      result.nodes.push_back(std::move(annotation));
  }

  void fail(const std::string &node, Status status) {
    if (failure.ok())
      failure = status.at("node '" + node + "', device configuration '" + result.configuration + "'");
  }

  void readConfiguration(const Message &message, const std::vector<std::string> &tensors, NodeAnnotation &annotation) {
    std::string id;
    message.each([&](const Field &field) {
      if (field.number == 1 && field.type == 2)
        id = message.text(field);
    });
    if (!known.count(id))
      return fail(annotation.node, Status::error(ErrorKind::Model, "configuration_id '" + id +
                                                                       "' is no configuration of the model"));
    if (id != result.configuration)
      return;
    message.each([&](const Field &field) {
      if (field.number == 3 && field.type == 0) {
        annotation.stage = int64_t(int32_t(field.value));
        if (*annotation.stage < 0 || *annotation.stage >= result.devices)
          fail(annotation.node,
               Status::error(ErrorKind::Model, "pipeline_stage " + std::to_string(*annotation.stage) +
                                                   "; it must be from 0 to one less than the number of devices, " +
                                                   std::to_string(result.devices)));
      }
      if (field.number != 2 || field.type != 2)
        return;
      RawSpec raw = readSpec(message.child(field));
      if (std::find(tensors.begin(), tensors.end(), raw.spec.tensor) == tensors.end())
        return fail(annotation.node, Status::error(ErrorKind::Model, "sharding_spec of '" + raw.spec.tensor +
                                                                         "', which is no input or output of the node"));
      if (Status status = resolveSpec(raw, result.devices); !status.ok())
        return fail(annotation.node, status.at("sharding_spec of '" + raw.spec.tensor + "'"));
      annotation.specs.push_back(std::move(raw.spec));
    });
  }

  DeviceAnnotations result;
  std::vector<std::pair<std::string, std::string>> dequantized; ///< input and output
  std::set<std::string> known;
  Status failure;
};

// ---- writing ------------------------------------------------------------------------------------

std::string numberBytes(uint64_t field, int64_t value) { return wire::varint(field << 3) + wire::varint(uint64_t(value)); }
std::string contentBytes(uint64_t field, std::string_view content) {
  return wire::varint(field << 3 | 2) + wire::varint(content.size()) + std::string(content);
}

std::string specBytes(const ShardingSpec &spec) {
  std::string bytes = contentBytes(1, spec.tensor), groups;
  int64_t group = 0; // groups are -1, -2, ...: no device has such a number
  for (const std::vector<int64_t> &members : spec.devices) {
    if (members.size() == 1) {
      bytes += numberBytes(2, members.front());
      continue;
    }
    bytes += numberBytes(2, --group);
    std::string entry = numberBytes(1, group);
    for (int64_t member : members)
      entry += numberBytes(2, member);
    groups += contentBytes(3, entry);
  }
  bytes += groups;
  for (const ShardedDim &dim : spec.dims) {
    std::string sharded = numberBytes(1, dim.axis);
    for (const ShardedPart &part : dim.parts)
      sharded += contentBytes(2, (part.size ? numberBytes(1, part.size) : std::string()) + numberBytes(3, part.shards));
    bytes += contentBytes(4, sharded);
  }
  return bytes;
}

std::string nodeBytes(const Message &node, const std::map<std::string, const NodeAnnotation *> &annotations,
                      const std::string &configuration) {
  std::string bytes, name, firstOutput;
  node.each([&](const Field &field) {
    if (field.number == nodeConfigurationsField)
      return;
    bytes += node.raw(field);
    if (field.number == nameField && field.type == 2)
      name = node.text(field);
    if (field.number == outputField && field.type == 2 && firstOutput.empty())
      firstOutput = node.text(field);
  });
  auto annotation = annotations.find(name.empty() ? firstOutput : name);
  if (annotation == annotations.end())
    return bytes;
  std::string content = contentBytes(1, configuration);
  for (const ShardingSpec &spec : annotation->second->specs)
    content += contentBytes(2, specBytes(spec));
  if (annotation->second->stage)
    content += numberBytes(3, *annotation->second->stage);
  return bytes + contentBytes(nodeConfigurationsField, content);
}

} // namespace

Expected<DeviceAnnotations> readDeviceAnnotations(const std::string &path, const std::string &configuration) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  Expected<DeviceAnnotations> annotations = AnnotationReader().read({file->data(), 0, file->size()}, configuration);
  return annotations.ok() ? std::move(annotations) : Expected<DeviceAnnotations>(annotations.status().at(path));
}

std::vector<NodeTensors> nodeTensors(std::string_view text) {
  std::vector<NodeTensors> nodes;
  Message model{reinterpret_cast<const std::byte *>(text.data()), 0, int64_t(text.size())};
  model.each([&](const Field &field) {
    if (field.number != graphField || field.type != 2)
      return;
    Message graph = model.child(field);
    graph.each([&](const Field &part) {
      if (part.number != nodeField || part.type != 2)
        return;
      Message node = graph.child(part);
      NodeTensors result;
      node.each([&](const Field &each) {
        if (each.type == 2 && each.number == inputField)
          result.inputs.push_back(node.text(each));
        if (each.type == 2 && each.number == outputField)
          result.outputs.push_back(node.text(each));
        if (each.type == 2 && each.number == nameField)
          result.node = node.text(each);
      });
      if (result.node.empty() && !result.outputs.empty())
        result.node = result.outputs.front();
      nodes.push_back(std::move(result));
    });
  });
  return nodes;
}

Expected<std::string> withDeviceAnnotations(std::string_view text, const DeviceAnnotations &annotations) {
  std::map<std::string, const NodeAnnotation *> byNode;
  for (const NodeAnnotation &node : annotations.nodes)
    byNode[node.node] = &node;
  Message model{reinterpret_cast<const std::byte *>(text.data()), 0, int64_t(text.size())};
  int64_t irVersion = leastIrVersion;
  std::string rest;
  auto isBinding = [&](const Field &field) {
    std::map<std::string, std::string> entry;
    if (field.type == 2)
      wire::takeTextEntry(model.data, field, entry);
    return entry.count(bindingKey) > 0;
  };
  bool isWhole = model.each([&](const Field &field) {
    if (field.number == irVersionField && field.type == 0) {
      irVersion = std::max(irVersion, int64_t(field.value));
    } else if (field.number == graphField && field.type == 2) {
      Message graph = model.child(field);
      std::string content;
      graph.each([&](const Field &part) {
        content += part.number == nodeField && part.type == 2
                       ? contentBytes(nodeField, nodeBytes(graph.child(part), byNode, annotations.configuration))
                       : graph.raw(part);
      });
      rest += contentBytes(graphField, content);
    } else if (field.number != configurationField && !(field.number == metadataField && isBinding(field))) {
      rest += model.raw(field);
    }
  });
  if (!isWhole)
    return Status::error(ErrorKind::Model, "its protobuf does not parse");
  std::string configuration = contentBytes(1, annotations.configuration) + numberBytes(2, annotations.devices);
  if (annotations.binding) {
    std::string lines = annotations.configuration;
    for (const std::string &tensor : *annotations.binding)
      lines += "\n" + tensor;
    rest += contentBytes(metadataField, contentBytes(1, bindingKey) + contentBytes(2, lines));
  }
  return numberBytes(irVersionField, irVersion) + rest + contentBytes(configurationField, configuration);
}

} // namespace hpc::onnx
