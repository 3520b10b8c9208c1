// Walks protobuf's wire format; field numbers are those of onnx.proto. Of a field that is there twice the last one counts.
// PyTorch's exporter says in the metadata of a value what it has computed it from.
#include "runtime/core/OnnxTensors.h"

#include "runtime/base/Array.h"
#include "runtime/base/WireFormat.h"

#include <cstring>

namespace hpc {

namespace {

using wire::Field, wire::Fields;

// Field numbers.
constexpr uint64_t modelGraph = 7, graphNode = 1, graphInitializer = 5, graphValue = 13, valueName = 1, valueMetadata = 4, nodeOutput = 2, nodeName = 3, nodeType = 4, nodeAttribute = 5,
                   attributeName = 1, attributeTensor = 5, attributeGraph = 6;
constexpr uint64_t tensorDims = 1, tensorType = 2, tensorSegment = 3, tensorFloats = 4, tensorInts = 5, tensorLongs = 7,
                   tensorName = 8, tensorRaw = 9, tensorDoubles = 10, tensorUnsigned = 11, tensorExternal = 13,
                   tensorLocation = 14;

/// TensorProto.DataType.
std::optional<DType> dtypeOf(uint64_t code) {
  constexpr std::pair<uint64_t, DType> types[] = {
      {1, DType::F32}, {2, DType::U8},    {3, DType::I8},   {4, DType::U16},  {5, DType::I16},  {6, DType::I32}, {7, DType::I64},
      {9, DType::Bool}, {10, DType::F16}, {11, DType::F64}, {12, DType::U32}, {13, DType::U64}, {16, DType::BF16}};
  for (auto [number, dtype] : types)
    if (number == code)
      return dtype;
  return std::nullopt;
}

/// One TensorProto as it is read.
struct Message {
  std::string name;
  uint64_t type = 0;
  std::vector<int64_t> dims;
  bool isSegment = false, isExternal = false;
  std::map<std::string, std::string> external;
  std::optional<Field> raw;
  std::vector<Field> elements; ///< typed fields, each a packed run or one element
};

class Reader {
public:
  Reader(const MappedFile &file, const OpenExternal &open, std::vector<std::vector<std::byte>> &owned)
      : file(file), open(open), owned(owned) {}

  NamedTensorMap tensors;

  Status readModel() {
    Fields fields(file.data(), 0, file.size());
    for (Field field; fields.next(field);)
      if (field.number == modelGraph && field.type == 2)
        HPC_RETURN_IF_ERROR(readGraph(field, "", 0));
    tensors.merge(inside);
    return fields.atEnd() ? Status::success() : wrong("is cut off or malformed: its protobuf does not parse");
  }

private:
  Status wrong(const std::string &what) const { return Status::error(ErrorKind::Io, "'" + file.path() + "': " + what); }
  std::string text(const Field &field) const {
    return std::string(file.text().substr(size_t(field.begin), size_t(field.end - field.begin)));
  }

  /// `place`: "" for the main graph, "loop/body/" inside of a node.
  Status readGraph(const Field &graph, const std::string &place, int depth) {
    constexpr int most = 100;
    if (depth > most)
      return wrong("has graphs nested more than " + std::to_string(most) + " deep");
    Fields fields(file.data(), graph.begin, graph.end);
    for (Field field; fields.next(field);) {
      if (field.number == graphInitializer && field.type == 2)
        HPC_RETURN_IF_ERROR(readTensor(field, "", place));
      if (field.number == graphNode && field.type == 2)
        HPC_RETURN_IF_ERROR(readNode(field, place, depth));
      if (field.number == graphValue && field.type == 2)
        readValue(field);
    }
    for (auto &[name, origin] : origins)
      if (auto tensor = tensors.find(name); tensor != tensors.end())
        tensor->second.madeOf = origin;
    return fields.atEnd() ? Status::success() : wrong("is malformed: its graph does not parse");
  }

  /// "['lm_head.weight']": one name, of which the value was made.
  void readValue(const Field &value) {
    std::string name;
    std::map<std::string, std::string> metadata;
    Fields fields(file.data(), value.begin, value.end);
    for (Field field; fields.next(field);) {
      if (field.number == valueName && field.type == 2)
        name = text(field);
      else if (field.number == valueMetadata && field.type == 2)
        wire::takeTextEntry(file.data(), field, metadata);
    }
    const std::string &from = metadata["pkg.onnxscript.optimizer.folded_from"];
    if (from.size() > 4 && from.find('\'', 2) == from.size() - 2)
      origins[name] = from.substr(2, from.size() - 4);
  }

  /// A Constant node's tensor goes by the name of the node's output.
  Status readNode(const Field &node, const std::string &place, int depth) {
    std::string type, output, own;
    std::optional<Field> value;
    std::vector<std::pair<std::string, Field>> graphs; ///< by attribute
    Fields fields(file.data(), node.begin, node.end);
    for (Field field; fields.next(field);) {
      if (field.number == nodeType && field.type == 2)
        type = text(field);
      else if (field.number == nodeOutput && field.type == 2 && output.empty())
        output = text(field);
      else if (field.number == nodeName && field.type == 2)
        own = text(field);
      else if (field.number == nodeAttribute && field.type == 2) {
        std::string name;
        std::optional<Field> tensor, graph;
        Fields inner(file.data(), field.begin, field.end);
        for (Field each; inner.next(each);) {
          if (each.number == attributeName && each.type == 2)
            name = text(each);
          else if (each.number == attributeTensor && each.type == 2)
            tensor = each;
          else if (each.number == attributeGraph && each.type == 2)
            graph = each;
        }
        if (graph)
          graphs.emplace_back(name, *graph);
        if (name == "value" && tensor)
          value = tensor;
      }
    }
    for (const auto &[attribute, graph] : graphs)
      HPC_RETURN_IF_ERROR(readGraph(graph, place + (own.empty() ? output : own) + "/" + attribute + "/", depth + 1));
    return type == "Constant" && value && !output.empty() ? readTensor(*value, output, place) : Status::success();
  }

  bool readFields(const Field &tensor, Message &message) const {
    Fields fields(file.data(), tensor.begin, tensor.end);
    for (Field field; fields.next(field);) {
      switch (field.number) {
      case tensorDims:
        if (field.type == 0)
          message.dims.push_back(int64_t(field.value));
        else if (field.type == 2 && !readPacked(field, message.dims))
          return false;
        break;
      case tensorType:
        message.type = field.value;
        break;
      case tensorSegment:
        message.isSegment = true;
        break;
      case tensorName:
        message.name = text(field);
        break;
      case tensorRaw:
        message.raw = field;
        break;
      case tensorLocation:
        message.isExternal = field.value == 1;
        break;
      case tensorExternal:
        wire::takeTextEntry(file.data(), field, message.external);
        break;
      case tensorFloats:
      case tensorInts:
      case tensorLongs:
      case tensorDoubles:
      case tensorUnsigned:
        message.elements.push_back(field);
        break;
      }
    }
    return fields.atEnd();
  }

  bool readPacked(const Field &field, std::vector<int64_t> &values) const {
    constexpr size_t most = 64;
    wire::Varints run(file.data(), field.begin, field.end);
    for (uint64_t value; run.next(value);) {
      if (values.size() == most)
        return false;
      values.push_back(int64_t(value));
    }
    return run.atEnd();
  }

  /// The elements of typed fields, each of the type's own width; false where a run is malformed.
  bool readElements(const Message &message, DType dtype, std::vector<std::byte> &bytes) const {
    const size_t width = size_t(byteSize(dtype));
    auto add = [&](uint64_t value) {
      const std::byte *first = reinterpret_cast<const std::byte *>(&value);
      bytes.insert(bytes.end(), first, first + width);
    };
    for (const Field &field : message.elements) {
      if (field.number == tensorFloats || field.number == tensorDoubles) {
        bytes.insert(bytes.end(), file.data() + field.begin, file.data() + field.end);
      } else if (field.type == 0) {
        add(field.value);
      } else {
        wire::Varints run(file.data(), field.begin, field.end);
        for (uint64_t value; run.next(value);)
          add(value);
        if (!run.atEnd())
          return false;
      }
    }
    return true;
  }

  static std::optional<int64_t> number(const std::string &digits) {
    if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != digits.npos)
      return std::nullopt;
    return std::stoll(digits);
  }

  Status readExternal(const Message &message, NamedTensor &tensor, const std::string &where) {
    auto entry = [&](const char *key, const char *missing) {
      auto found = message.external.find(key);
      return found == message.external.end() ? std::string(missing) : found->second;
    };
    const std::string location = entry("location", "");
    std::optional<int64_t> offset = number(entry("offset", "0")),
                           length = number(entry("length", std::to_string(tensor.bytes).c_str()));
    if (location.empty() || !offset || !length || *length != tensor.bytes)
      return wrong(where + " has external data of '" + entry("length", "?") + "' bytes at '" + entry("offset", "0") + "' of '" +
                   location + "', its shape " + shapeText(tensor.shape) + " needs " + std::to_string(tensor.bytes));
    Expected<const MappedFile *> data = open(location);
    if (!data.ok())
      return data.status();
    Expected<const std::byte *> range = (*data)->range(*offset, tensor.bytes, where);
    if (!range.ok())
      return range.status();
    tensor.data = *range;
    return Status::success();
  }

  /// `name`, unless empty, is that of a Constant node.
  Status readTensor(const Field &field, const std::string &name, const std::string &place) {
    Message message;
    if (!readFields(field, message))
      return wrong("is malformed: a tensor of it does not parse");
    const std::string &key = name.empty() ? message.name : name, where = "tensor '" + key + "'";
    NamedTensor tensor;
    tensor.shape = message.dims;
    tensor.typeName = "type " + std::to_string(message.type) + " of ONNX";
    std::optional<DType> dtype = dtypeOf(message.type);
    if (dtype && !message.isSegment) {
      std::optional<int64_t> bytes = checkedBytes(*dtype, tensor.shape);
      if (!bytes)
        return wrong(where + " has the impossible shape " + shapeText(tensor.shape));
      tensor.dtype = dtype;
      tensor.typeName = hpc::name(*dtype);
      tensor.bytes = *bytes;
      HPC_RETURN_IF_ERROR(findBytes(message, tensor, where));
    }
    // A plan has the way to it in the name where another value is called so, and the name alone where none is.
    if (!place.empty()) {
      inside.emplace(place + key, tensor);
      inside.emplace(key, std::move(tensor));
      return Status::success();
    }
    if (!tensors.emplace(key, std::move(tensor)).second)
      return wrong("has two tensors named '" + key + "'");
    return Status::success();
  }

  Status findBytes(const Message &message, NamedTensor &tensor, const std::string &where) {
    if (message.isExternal)
      return readExternal(message, tensor, where);
    int64_t held;
    const bool isRun = message.elements.size() == 1 && message.elements[0].type == 2 &&
                       (message.elements[0].number == tensorFloats || message.elements[0].number == tensorDoubles);
    if (message.raw || isRun) {
      const Field &bytes = message.raw ? *message.raw : message.elements[0];
      held = bytes.end - bytes.begin;
      tensor.data = file.data() + bytes.begin;
    } else {
      owned.emplace_back();
      if (!readElements(message, *tensor.dtype, owned.back()))
        return wrong(where + " is malformed: its elements do not parse");
      held = int64_t(owned.back().size());
      tensor.data = owned.back().data();
    }
    if (held != tensor.bytes)
      return wrong(where + " holds " + std::to_string(held) + " bytes, its shape " + shapeText(tensor.shape) + " of " +
                   tensor.typeName + " needs " + std::to_string(tensor.bytes));
    return Status::success();
  }

  const MappedFile &file;
  const OpenExternal &open;
  std::vector<std::vector<std::byte>> &owned;
  NamedTensorMap inside; ///< of subgraphs
  std::map<std::string, std::string> origins; ///< of values that an exporter computed
};

} // namespace

Expected<NamedTensorMap> readOnnxTensors(const MappedFile &file, const OpenExternal &open,
                                         std::vector<std::vector<std::byte>> &owned) {
  Reader reader(file, open, owned);
  HPC_RETURN_IF_ERROR(reader.readModel());
  return std::move(reader.tensors);
}

} // namespace hpc
