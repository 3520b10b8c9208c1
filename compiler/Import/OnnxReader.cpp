// The only file that sees the ONNX protobuf; it turns it into the structs of OnnxModel.h.
// Built with exceptions, which end here. The schema may be older than the file: a node's metadata is read from unknown
// fields.
#include "compiler/Import/OnnxModel.h"

#include "compiler/Import/OnnxFootprint.h"
#include "compiler/Import/OnnxTensorScan.h"
#include "runtime/base/Array.h"

#include "onnx/onnx.pb.h"
#include "runtime/base/CountText.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <exception>
#include <filesystem>
#include <set>

namespace hpc::onnx {
namespace {

Status modelError(const std::string &message) { return Status::error(ErrorKind::Model, message); }
std::string inQuotes(const std::string &text) { return "'" + text + "'"; }

/// Ends of absent tensors must not overflow, as those of present ones do not.
constexpr int64_t maxFileBytes = int64_t(1) << 62;

/// ONNX's own domain has two names.
template <typename Proto> std::string domainOf(const Proto &proto) {
  return proto.domain() == "ai.onnx" ? "" : proto.domain();
}

class Reader {
public:
  explicit Reader(const ReadOptions &options) : options(options) {}
  Expected<Model> read(const std::string &path);
  Expected<StoredTensor> readTensor(const std::string &path);

private:
  Expected<StoredTensor> tensor(const ::onnx::TensorProto &proto, const StoredBytes *stored);
  Expected<StoredTensor> packedTensor(const ::onnx::TensorProto &proto, const StoredBytes *stored, StoredTensor result);
  Status external(const ::onnx::TensorProto &proto, StoredTensor &tensor);
  Status claim(const std::string &location, const StoredTensor &tensor);
  Expected<std::shared_ptr<MappedFile>> externalFile(const std::string &location);
  Expected<Attribute> attribute(const ::onnx::AttributeProto &proto);
  Expected<Node> node(const ::onnx::NodeProto &proto);
  ValueInfo valueInfo(const ::onnx::ValueInfoProto &proto);
  Expected<Function> function(const ::onnx::FunctionProto &proto);
  Expected<Subgraph> subgraph(const ::onnx::GraphProto &proto);
  Status graph(const ::onnx::GraphProto &proto);

  ReadOptions options;
  Model model;
  std::map<std::string, std::shared_ptr<MappedFile>> externalFiles; ///< by location; null: not read
  struct Range {
    int64_t end;
    std::string tensor; ///< its name
  };
  std::map<std::string, std::map<int64_t, Range>> ranges; ///< of external data: by location and begin, disjoint
};

/// The elements of a typed field, each stored with the dtype's own width.
template <typename Element, typename Field> void store(const Field &field, std::vector<std::byte> &out) {
  out.resize(size_t(field.size()) * sizeof(Element));
  for (int i = 0; i < field.size(); ++i) {
    Element element = Element(field.Get(i));
    std::memcpy(out.data() + size_t(i) * sizeof(Element), &element, sizeof(Element));
  }
}

std::vector<std::byte> bytesOf(const std::string &raw) {
  const std::byte *first = reinterpret_cast<const std::byte *>(raw.data());
  return {first, first + raw.size()};
}

std::vector<std::byte> typedData(const ::onnx::TensorProto &proto, DType dtype) {
  std::vector<std::byte> out;
  switch (dtype) {
  case DType::F32:
    store<float>(proto.float_data(), out);
    break;
  case DType::F64:
    store<double>(proto.double_data(), out);
    break;
  case DType::I64:
    store<int64_t>(proto.int64_data(), out);
    break;
  case DType::U64:
    store<uint64_t>(proto.uint64_data(), out);
    break;
  case DType::U32:
    store<uint32_t>(proto.uint64_data(), out);
    break;
  case DType::I32:
    store<int32_t>(proto.int32_data(), out);
    break;
  case DType::I16:
  case DType::U16:
  case DType::F16:
  case DType::BF16:
    store<uint16_t>(proto.int32_data(), out);
    break;
  case DType::I8:
  case DType::U8:
  case DType::Bool:
    store<uint8_t>(proto.int32_data(), out);
    break;
  }
  return out;
}

/// Null if the file does not exist, or is not to be read.
Expected<std::shared_ptr<MappedFile>> Reader::externalFile(const std::string &location) {
  if (auto found = externalFiles.find(location); found != externalFiles.end())
    return found->second;
  namespace fs = std::filesystem;
  fs::path relative = fs::path(location).lexically_normal();
  bool staysBeneath = relative.is_relative() && *relative.begin() != "..";
  std::error_code error;
  bool isThere =
      fs::symlink_status(fs::path(folderOf(model.path)) / relative, error).type() != fs::file_type::not_found;
  if (staysBeneath && (options.withoutWeights || !isThere))
    return externalFiles[location] = nullptr;
  Expected<MappedFile> opened = MappedFile::openBeneath(folderOf(model.path), location, options.followLinks);
  if (!opened.ok())
    return opened.status();
  model.files.push_back(std::make_shared<MappedFile>(std::move(*opened)));
  return externalFiles[location] = model.files.back();
}

/// Two tensors may share all their bytes (a tied weight that is stored once); if they share only some, one of the two
/// is wrong.
Status Reader::claim(const std::string &location, const StoredTensor &tensor) {
  if (tensor.bytes == 0)
    return Status::success();
  std::map<int64_t, Range> &taken = ranges[location];
  int64_t end = tensor.offset + tensor.bytes;
  auto next = taken.lower_bound(tensor.offset);
  if (next != taken.end() && next->first == tensor.offset && next->second.end == end)
    return Status::success();
  auto other = next != taken.end() && next->first < end ? next : next != taken.begin() ? std::prev(next) : taken.end();
  if (other != taken.end() && other->second.end > tensor.offset)
    return modelError("external data at bytes " + std::to_string(tensor.offset) + " to " + std::to_string(end) + " of " +
                      inQuotes(location) + " overlaps that of tensor " + inQuotes(other->second.tensor) + ", bytes " +
                      std::to_string(other->first) + " to " + std::to_string(other->second.end) +
                      "; save the model again");
  taken[tensor.offset] = {end, tensor.name};
  return Status::success();
}

Status Reader::external(const ::onnx::TensorProto &proto, StoredTensor &tensor) {
  std::string location;
  int64_t offset = 0, length = tensor.bytes;
  for (const auto &entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      char *end = nullptr;
      errno = 0;
      int64_t value = std::strtoll(entry.value().c_str(), &end, 10);
      if (entry.value().empty() || *end || errno || value < 0)
        return modelError("external data has " + entry.key() + " " + inQuotes(entry.value()) +
                          ", not a number of bytes");
      (entry.key() == "offset" ? offset : length) = value;
    }
  }
  if (location.empty())
    return modelError("external data without a location");
  if (length != tensor.bytes)
    return modelError("external data of " + countText(length, "byte") + ", but its type and shape need " +
                      std::to_string(tensor.bytes));
  Expected<std::shared_ptr<MappedFile>> file = externalFile(location);
  if (!file.ok())
    return file.status();
  location = std::filesystem::path(location).lexically_normal().string(); // "./w.bin" is "w.bin"
  std::string folder = folderOf(model.path);
  tensor.file = folder == "." ? location : folder + "/" + location;
  tensor.offset = offset;
  if (!*file && offset > maxFileBytes - tensor.bytes)
    return modelError("external data at offset " + std::to_string(offset) + ", which no file reaches");
  if (!*file)
    return claim(location, tensor);
  Expected<const std::byte *> data = (*file)->range(offset, tensor.bytes, "external data");
  if (!data.ok())
    return modelError(data.status().message());
  tensor.data = *data;
  return claim(location, tensor);
}

/// Several elements to a byte in the file, one in memory.
Expected<StoredTensor> Reader::packedTensor(const ::onnx::TensorProto &proto, const StoredBytes *stored,
                                            StoredTensor result) {
  int64_t elements = result.bytes, bytes = packedBytes(*result.narrow, elements);
  std::vector<std::byte> own;
  const std::byte *packed = nullptr;
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    StoredTensor inFile = result;
    inFile.bytes = bytes;
    HPC_RETURN_IF_ERROR(external(proto, inFile).at("tensor " + inQuotes(proto.name())));
    if (inFile.isAbsent())
      return Status::error(ErrorKind::Unsupported, "tensor " + inQuotes(proto.name()) + " of type " + result.typeName +
                                                       " in a file that was not read; such types are unpacked when the "
                                                       "model is compiled");
    packed = inFile.data;
  } else if (stored && stored->offset >= 0 && stored->bytes == bytes) {
    packed = model.files.front()->data() + stored->offset;
  } else {
    if (proto.has_raw_data()) {
      own = bytesOf(proto.raw_data());
    } else {
      own = typedData(proto, DType::U8);
    }
    // Bytes that were not parsed are counted where they lie.
    if (int64_t held = std::max(int64_t(own.size()), stored ? stored->bytes : 0); held != bytes)
      return modelError("tensor " + inQuotes(proto.name()) + " holds " + countText(held, "byte") + ", but " +
                        result.typeName + " " + shapeText(result.shape) + " needs " + std::to_string(bytes));
    packed = own.data();
  }
  result.owned = std::make_shared<std::vector<std::byte>>(unpacked(*result.narrow, packed, elements));
  result.data = result.owned->data();
  return result;
}

/// `stored`: where the file has the bytes (initializers of the main graph), else null and they are copied.
Expected<StoredTensor> Reader::tensor(const ::onnx::TensorProto &proto, const StoredBytes *stored) {
  StoredTensor result;
  result.name = proto.name();
  result.dtype = dtypeOfCode(proto.data_type());
  result.typeName = typeNameOfCode(proto.data_type());
  result.shape.assign(proto.dims().begin(), proto.dims().end());
  result.narrow = narrowTypeOfCode(proto.data_type());
  if (result.narrow)
    result.dtype = result.narrow->storage;
  if (!result.dtype)
    return result;
  std::optional<int64_t> bytes = checkedBytes(*result.dtype, result.shape);
  if (!bytes)
    return modelError("tensor " + inQuotes(proto.name()) + " has the impossible shape " + shapeText(result.shape));
  result.bytes = *bytes;
  if (proto.has_segment())
    return modelError("tensor " + inQuotes(proto.name()) + " is stored in segments; save it in one piece");
  if (result.narrow && result.narrow->bits < 8)
    return packedTensor(proto, stored, std::move(result));
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    HPC_RETURN_IF_ERROR(external(proto, result).at("tensor " + inQuotes(proto.name())));
    return result;
  }
  if (stored && stored->offset >= 0 && stored->bytes == result.bytes) {
    result.file = model.path;
    result.offset = stored->offset;
    result.data = model.files.front()->data() + stored->offset;
    return result;
  }
  auto owned = std::make_shared<std::vector<std::byte>>();
  if (proto.has_raw_data()) {
    *owned = bytesOf(proto.raw_data());
  } else {
    *owned = typedData(proto, *result.dtype);
  }
  // Bytes that were not parsed (withoutStoredBytes) are counted where they lie.
  int64_t held = std::max(int64_t(owned->size()), stored ? stored->bytes : 0);
  if (held != result.bytes)
    return modelError("tensor " + inQuotes(proto.name()) + " holds " + countText(held, "byte") + ", but " +
                      result.typeName + " " + shapeText(result.shape) + " needs " + std::to_string(result.bytes));
  if (int64_t(owned->size()) != held)
    return modelError("tensor " + inQuotes(proto.name()) + " has several fields of elements; save it with one");
  result.data = owned->data();
  result.owned = std::move(owned);
  return result;
}

Expected<Attribute> Reader::attribute(const ::onnx::AttributeProto &proto) {
  Attribute result;
  result.reference = proto.ref_attr_name();
  switch (proto.type()) {
  case ::onnx::AttributeProto::INT:
    result.kind = Attribute::Int;
    result.i = proto.i();
    break;
  case ::onnx::AttributeProto::FLOAT:
    result.kind = Attribute::Float;
    result.f = proto.f();
    break;
  case ::onnx::AttributeProto::STRING:
    result.kind = Attribute::String;
    result.s = proto.s();
    break;
  case ::onnx::AttributeProto::INTS:
    result.kind = Attribute::Ints;
    result.ints.assign(proto.ints().begin(), proto.ints().end());
    break;
  case ::onnx::AttributeProto::FLOATS:
    result.kind = Attribute::Floats;
    result.floats.assign(proto.floats().begin(), proto.floats().end());
    break;
  case ::onnx::AttributeProto::STRINGS:
    result.kind = Attribute::Strings;
    result.strings.assign(proto.strings().begin(), proto.strings().end());
    break;
  case ::onnx::AttributeProto::TENSOR: {
    result.kind = Attribute::TensorValue;
    Expected<StoredTensor> value = tensor(proto.t(), nullptr);
    if (!value.ok())
      return value.status();
    result.tensor = std::make_shared<const StoredTensor>(std::move(*value));
    break;
  }
  case ::onnx::AttributeProto::GRAPH: {
    result.kind = Attribute::Graph;
    Expected<Subgraph> value = subgraph(proto.g());
    if (!value.ok())
      return value.status();
    result.graph = std::make_shared<const Subgraph>(std::move(*value));
    break;
  }
  default:
    break;
  }
  return result;
}

/// Calls `visit` with the bytes of every field `number` that an older schema kept as unknown bytes.
template <typename Visit> void eachUnknown(const std::string &unknown, uint64_t number, Visit visit) {
  wire::Fields fields(reinterpret_cast<const std::byte *>(unknown.data()), 0, int64_t(unknown.size()));
  for (wire::Field field; fields.next(field);)
    if (field.number == number && field.type == 2)
      visit(unknown.substr(size_t(field.begin), size_t(field.end - field.begin)));
}

/// The metadata_props of a message, which came with IR version 10.
std::map<std::string, std::string> metadataIn(const std::string &unknown, uint64_t number) {
  std::map<std::string, std::string> metadata;
  eachUnknown(unknown, number, [&](const std::string &bytes) {
    ::onnx::StringStringEntryProto entry;
    if (entry.ParseFromString(bytes))
      metadata[entry.key()] = entry.value();
  });
  return metadata;
}

Expected<Node> Reader::node(const ::onnx::NodeProto &proto) {
  Node result;
  result.op = proto.op_type();
  result.domain = domainOf(proto);
  constexpr int mostEnds = 100'000; // each becomes an op or an operand
  if (std::max(proto.input_size(), proto.output_size()) > mostEnds)
    return Status::error(ErrorKind::Unsupported, "node " + inQuotes(proto.name()) + " (" + proto.op_type() + ") has " +
                                                     std::to_string(proto.input_size()) + " inputs and " +
                                                     std::to_string(proto.output_size()) + " outputs; at most " +
                                                     std::to_string(mostEnds) + " are possible");
  result.inputs.assign(proto.input().begin(), proto.input().end());
  result.outputs.assign(proto.output().begin(), proto.output().end());
  result.name = !proto.name().empty() || result.outputs.empty() ? proto.name() : result.outputs.front();
  constexpr uint64_t overloadField = 8, metadataField = 9; // they came with IR version 10
  eachUnknown(proto.unknown_fields(), overloadField, [&](const std::string &bytes) { result.overload = bytes; });
  const std::map<std::string, std::string> metadata = metadataIn(proto.unknown_fields(), metadataField);
  result.modulePath = modulePathOf(proto.name(), metadata);
  result.torchCall = torchCallOf(metadata);
  for (const auto &each : proto.attribute()) {
    Expected<Attribute> value = attribute(each);
    if (!value.ok())
      return value.status().at("node " + inQuotes(result.name) + ", attribute " + inQuotes(each.name()));
    result.attributes[each.name()] = std::move(*value);
  }
  result.captured = capturedNames(result);
  return result;
}

Status checkSparse(const ::onnx::GraphProto &proto) {
  return proto.sparse_initializer_size() == 0
             ? Status::success()
             : Status::error(ErrorKind::Unsupported, "sparse initializers; store " +
                                                         inQuotes(proto.sparse_initializer(0).values().name()) +
                                                         " densely");
}

/// protobuf's own limit on nesting (100 messages) bounds the recursion.
Expected<Subgraph> Reader::subgraph(const ::onnx::GraphProto &proto) {
  Subgraph result;
  std::set<std::string> initializers;
  for (const auto &each : proto.initializer()) {
    Expected<StoredTensor> value = tensor(each, nullptr);
    if (!value.ok())
      return value.status();
    if (!initializers.insert(value->name).second)
      return modelError("two initializers are named " + inQuotes(value->name));
    result.initializers.push_back(std::move(*value));
  }
  HPC_RETURN_IF_ERROR(checkSparse(proto));
  for (const auto &each : proto.node()) {
    Expected<Node> value = node(each);
    if (!value.ok())
      return value.status();
    result.nodes.push_back(std::move(*value));
  }
  // As in ONNX Runtime: a name with an initializer is no input of the body.
  for (const auto &each : proto.input())
    if (!initializers.count(each.name()))
      result.inputs.push_back(valueInfo(each));
  for (const auto &each : proto.output())
    result.outputs.push_back(valueInfo(each));
  return result;
}

ValueInfo Reader::valueInfo(const ::onnx::ValueInfoProto &proto) {
  ValueInfo info;
  info.name = proto.name();
  const ::onnx::TypeProto &type = proto.type();
  if (!type.has_tensor_type()) {
    info.typeName = type.has_sequence_type()   ? "sequence of tensors"
                    : type.has_optional_type() ? "optional"
                    : type.has_map_type()      ? "map"
                                               : "no tensor";
    return info;
  }
  info.dtype = dtypeOfCode(type.tensor_type().elem_type());
  info.typeName = typeNameOfCode(type.tensor_type().elem_type());
  info.narrow = narrowTypeOfCode(type.tensor_type().elem_type());
  if (info.narrow)
    info.dtype = info.narrow->storage;
  info.hasShape = type.tensor_type().has_shape();
  for (const auto &dim : type.tensor_type().shape().dim()) {
    Dim result;
    // Exporters write -1 and "?" for unknown sizes: each is a size of its own.
    if (dim.has_dim_value() && dim.dim_value() != -1)
      result.size = dim.dim_value();
    else if (dim.dim_param() != "?" && dim.dim_param() != "-1")
      result.symbol = dim.dim_param();
    info.dims.push_back(std::move(result));
  }
  return info;
}

Expected<Function> Reader::function(const ::onnx::FunctionProto &proto) {
  Function result;
  result.name = proto.name();
  result.domain = domainOf(proto);
  result.inputs.assign(proto.input().begin(), proto.input().end());
  result.outputs.assign(proto.output().begin(), proto.output().end());
  for (const auto &each : proto.opset_import())
    result.opsets[domainOf(each)] = each.version();
  eachUnknown(proto.unknown_fields(), 13, [&](const std::string &bytes) { result.overload = bytes; });
  for (const auto &each : proto.node()) {
    Expected<Node> body = node(each);
    if (!body.ok())
      return body.status().at("function " + inQuotes(result.name));
    result.nodes.push_back(std::move(*body));
  }
  // FunctionProto's attribute_proto (field 11): attributes with default values.
  Status status;
  eachUnknown(proto.unknown_fields(), 11, [&](const std::string &bytes) {
    ::onnx::AttributeProto each;
    if (!status.ok() || !each.ParseFromString(bytes))
      return;
    Expected<Attribute> value = attribute(each);
    if (value.ok())
      result.defaults[each.name()] = std::move(*value);
    else
      status = value.status().at("function " + inQuotes(result.name));
  });
  HPC_RETURN_IF_ERROR(status);
  return result;
}

Status Reader::graph(const ::onnx::GraphProto &proto) {
  std::vector<StoredBytes> stored = scanInitializers(model.files.front()->data(), model.files.front()->size());
  bool known = stored.size() == size_t(proto.initializer_size());
  std::set<std::string> initializers;
  std::map<std::string, Provenance> provenances;
  constexpr uint64_t valueMetadata = 4;
  for (const auto &each : proto.value_info())
    if (Provenance said = provenanceOf(metadataIn(each.unknown_fields(), valueMetadata)); said.kind != WeightKind::Unsaid || !said.madeOf.empty())
      provenances[each.name()] = std::move(said);
  for (int i = 0; i < proto.initializer_size(); ++i) {
    Expected<StoredTensor> value = tensor(proto.initializer(i), known ? &stored[size_t(i)] : nullptr);
    if (!value.ok())
      return value.status();
    if (!initializers.insert(value->name).second)
      return modelError("two initializers are named " + inQuotes(value->name));
    if (auto said = provenances.find(value->name); said != provenances.end()) {
      value->kind = said->second.kind;
      value->madeOf = std::move(said->second.madeOf);
      value->isExporters = !said->second.isInState;
    }
    model.initializers.push_back(std::move(*value));
  }
  HPC_RETURN_IF_ERROR(checkSparse(proto));
  for (const auto &each : proto.node()) {
    Expected<Node> value = node(each);
    if (!value.ok())
      return value.status();
    model.nodes.push_back(std::move(*value));
  }
  // Before IR version 4 every initializer has to be an input as well, without further meaning.
  for (const auto &each : proto.input())
    if (!initializers.count(each.name()))
      model.inputs.push_back(valueInfo(each));
    else if (model.irVersion >= 4)
      model.defaults.push_back(valueInfo(each));
  for (const ValueInfo &each : model.defaults)
    for (StoredTensor &tensor : model.initializers)
      tensor.isDefault |= tensor.name == each.name;
  for (const auto &each : proto.output())
    model.outputs.push_back(valueInfo(each));
  return Status::success();
}

Expected<Model> Reader::read(const std::string &path) {
  model.path = path;
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  model.files.push_back(std::make_shared<MappedFile>(std::move(*file)));
  const MappedFile &mapped = *model.files.front();
  if (mapped.size() > INT_MAX)
    return modelError("the file has " + countText(mapped.size(), "byte") +
                      " and protobuf stops at 2 GB; save the weights as external data");
  google::protobuf::SetLogHandler(nullptr);
  ::onnx::ModelProto proto;
  HPC_RETURN_IF_ERROR(checkFootprint(mapped.text(), modelFootprint, ErrorKind::Model));
  std::string spared = withoutStoredBytes(mapped.data(), mapped.size());
  bool parsed = spared.empty() ? proto.ParseFromArray(mapped.data(), int(mapped.size())) : proto.ParseFromString(spared);
  spared = std::string();
  if (!parsed)
    return modelError("not an ONNX model, or cut off: its protobuf of " + countText(mapped.size(), "byte") +
                      " does not parse, or is nested more than 100 deep");
  if (!proto.has_graph())
    return modelError("no graph in it: not an ONNX model, or cut off");
  model.irVersion = proto.ir_version();
  for (const auto &each : proto.opset_import())
    model.opsets[domainOf(each)] = each.version();
  for (const auto &each : proto.functions()) {
    Expected<Function> value = function(each);
    if (!value.ok())
      return value.status();
    model.functions.push_back(std::move(*value));
  }
  HPC_RETURN_IF_ERROR(graph(proto.graph()));
  return std::move(model);
}

Expected<StoredTensor> Reader::readTensor(const std::string &path) {
  model.path = path;
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  google::protobuf::SetLogHandler(nullptr);
  HPC_RETURN_IF_ERROR(checkFootprint(file->text(), tensorFootprint, ErrorKind::Model));
  ::onnx::TensorProto proto;
  if (file->size() > INT_MAX || !proto.ParseFromArray(file->data(), int(file->size())) || !proto.has_data_type())
    return modelError("not a tensor, or cut off: its protobuf of " + countText(file->size(), "byte") +
                      " does not parse");
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL)
    return modelError("a tensor whose data is in another file");
  return tensor(proto, nullptr);
}

} // namespace

Expected<StoredTensor> readTensor(const std::string &path) {
  try {
    Expected<StoredTensor> tensor = Reader({}).readTensor(path);
    return tensor.ok() ? std::move(tensor) : Expected<StoredTensor>(tensor.status().at(path));
  } catch (const std::exception &error) {
    return modelError(path + ": " + error.what());
  }
}

Expected<Model> readOnnx(const std::string &path, const ReadOptions &options) {
  try {
    Expected<Model> model = Reader(options).read(path);
    // Errors of opening the file name it already.
    bool isNamed = model.ok() || model.status().message().compare(0, path.size() + 2, inQuotes(path)) == 0;
    return isNamed ? std::move(model) : Expected<Model>(model.status().at(path));
  } catch (const std::exception &error) {
    return modelError(path + ": " + error.what());
  }
}

} // namespace hpc::onnx
