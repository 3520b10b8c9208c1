// One walk over protobuf's wire format, done twice: first every tensor is noted, then every tensor gets its new form. A message around a tensor gets a new length
// where the tensor's size changes.
#include "compiler/Import/TensorRewriting.h"

#include "compiler/Import/OnnxModel.h"
#include "runtime/base/Array.h"
#include "runtime/base/WireFormat.h"

#include <algorithm>
#include <map>

namespace hpc::onnx {
namespace {

using wire::Field, wire::Fields;

// Field numbers of onnx.proto.
enum ModelNumber : uint64_t { graphOfModel = 7 };
enum GraphNumber : uint64_t { nodeOfGraph = 1, initializerOfGraph = 5 };
enum NodeNumber : uint64_t { outputOfNode = 2, nameOfNode = 3, opOfNode = 4, attributeOfNode = 5 };
enum AttributeNumber : uint64_t { nameOfAttribute = 1, tensorOfAttribute = 5, graphOfAttribute = 6 };
enum TensorNumber : uint64_t {
  dimsOfTensor = 1, typeOfTensor = 2, floatsOfTensor = 4, intsOfTensor = 5, longsOfTensor = 7, nameOfTensor = 8, rawOfTensor = 9, doublesOfTensor = 10,
  unsignedOfTensor = 11, externalOfTensor = 13, locationOfTensor = 14
};

std::string bytesField(uint64_t number, const std::string &content) {
  return wire::varint(number << 3 | wire::bytesType) + wire::varint(content.size()) + content;
}

/// A message as pieces: bytes of the old file, new bytes, elements of a tensor.
struct Pieces {
  struct Piece {
    int64_t first = 0, last = 0; ///< of the old file, unless it is one of the others
    std::string text;
    std::optional<size_t> tensor;
    int64_t size() const { return last - first; } ///< of all three kinds
  };
  std::vector<Piece> list;
  int64_t size = 0;

  void copy(int64_t first, int64_t last) {
    size += last - first;
    const bool goesOn = !list.empty() && list.back().text.empty() && !list.back().tensor && list.back().last == first;
    if (goesOn)
      list.back().last = last;
    else if (first < last)
      list.push_back({first, last, "", {}});
  }
  void add(std::string text) {
    const int64_t bytes = int64_t(text.size());
    size += bytes;
    list.push_back({0, bytes, std::move(text), {}});
  }
  void addElements(size_t tensor, int64_t bytes) {
    size += bytes;
    list.push_back({0, bytes, "", tensor});
  }
  void append(Pieces other) {
    for (Piece &piece : other.list)
      if (piece.text.empty() && !piece.tensor)
        copy(piece.first, piece.last);
      else
        size += piece.size(), list.push_back(std::move(piece));
  }
  bool isCopyOf(const Field &field) const { return list.size() == 1 && list[0].text.empty() && !list[0].tensor && list[0].first == field.begin && list[0].last == field.end; }
};

/// A TensorProto as it is read.
struct TensorMessage {
  TensorPlace place;
  std::string name;
  std::map<std::string, std::string> external;
  std::vector<Field> elements; ///< raw_data and typed fields
};

bool holdsElements(const Field &field) {
  return field.number == rawOfTensor || field.number == floatsOfTensor || field.number == doublesOfTensor || field.number == intsOfTensor ||
         field.number == longsOfTensor || field.number == unsignedOfTensor;
}

class Walk {
public:
  /// The new form of one tensor, or its old one.
  using OnTensor = std::function<Pieces(const Field &field, const TensorMessage &tensor)>;
  Walk(const MappedFile &file, OnTensor onTensor) : file(file), onTensor(std::move(onTensor)) {}

  Expected<Pieces> model() {
    Pieces pieces = message({0, 0, 0, 0, 0, file.size(), file.size()}, [&](const Field &field, Pieces &out) {
      return field.number == graphOfModel && field.type == 2 ? nested(field, graph(field, "", 0), out) : false;
    });
    if (isMalformed)
      return Status::error(ErrorKind::Model, "'" + file.path() + "': its protobuf does not parse; get the file again");
    return pieces;
  }

private:
  std::string text(const Field &field) const { return std::string(file.text().substr(size_t(field.begin), size_t(field.end - field.begin))); }

  /// Copies the fields of a message but those that `visit` has written.
  template <typename Visit> Pieces message(const Field &whole, Visit visit) {
    Pieces pieces;
    Fields fields(file.data(), whole.begin, whole.end);
    for (Field field; fields.next(field);)
      if (!visit(field, pieces))
        pieces.copy(field.first, field.last);
    isMalformed |= !fields.atEnd();
    return pieces;
  }

  bool nested(const Field &field, Pieces inner, Pieces &out) {
    if (inner.isCopyOf(field) || field.begin == field.end)
      return false;
    out.add(wire::varint(field.number << 3 | wire::bytesType) + wire::varint(uint64_t(inner.size)));
    out.append(std::move(inner));
    return true;
  }

  /// `place`: "" for the main graph, "loop/body/" inside of a node.
  Pieces graph(const Field &whole, const std::string &place, int depth) {
    constexpr int most = 100;
    if (depth > most)
      isMalformed = true;
    return message(whole, [&](const Field &field, Pieces &out) {
      if (field.type != 2 || isMalformed)
        return false;
      if (field.number == initializerOfGraph)
        return nested(field, tensor(field, "", place), out);
      return field.number == nodeOfGraph && nested(field, node(field, place, depth), out);
    });
  }

  Pieces node(const Field &whole, const std::string &place, int depth) {
    std::string op, output, name;
    Fields fields(file.data(), whole.begin, whole.end);
    for (Field field; fields.next(field);) {
      if (field.type == 2 && field.number == opOfNode)
        op = text(field);
      else if (field.type == 2 && field.number == outputOfNode && output.empty())
        output = text(field);
      else if (field.type == 2 && field.number == nameOfNode)
        name = text(field);
    }
    return message(whole, [&](const Field &field, Pieces &out) {
      if (field.number != attributeOfNode || field.type != 2)
        return false;
      return nested(field, attribute(field, op == "Constant" ? output : "", place, place + (name.empty() ? output : name) + "/", depth), out);
    });
  }

  /// `output`: the value of a Constant node, "" of others. `inside`: the place of the node's graphs, without the attribute.
  Pieces attribute(const Field &whole, const std::string &output, const std::string &place, const std::string &inside, int depth) {
    std::string name;
    Fields fields(file.data(), whole.begin, whole.end);
    for (Field field; fields.next(field);)
      if (field.type == 2 && field.number == nameOfAttribute)
        name = text(field);
    return message(whole, [&](const Field &field, Pieces &out) {
      if (field.type == 2 && field.number == graphOfAttribute)
        return nested(field, graph(field, inside + name + "/", depth + 1), out);
      const bool isValue = field.type == 2 && field.number == tensorOfAttribute && !output.empty() && name == "value";
      return isValue && nested(field, tensor(field, output, place), out);
    });
  }

  void readDims(const Field &field, std::vector<int64_t> &dims) {
    if (field.type == 0)
      return dims.push_back(int64_t(field.value));
    wire::Varints run(file.data(), field.begin, field.end);
    for (uint64_t dim; run.next(dim);)
      dims.push_back(int64_t(dim));
    isMalformed |= !run.atEnd();
  }

  Pieces tensor(const Field &whole, const std::string &constant, const std::string &graph) {
    TensorMessage message;
    TensorPlace &place = message.place;
    Fields fields(file.data(), whole.begin, whole.end);
    for (Field field; fields.next(field);) {
      if (field.number == dimsOfTensor)
        readDims(field, place.shape);
      else if (field.number == typeOfTensor)
        place.dtype = dtypeOfCode(int64_t(field.value));
      else if (field.number == nameOfTensor && field.type == 2)
        message.name = text(field);
      else if (field.number == externalOfTensor && field.type == 2)
        wire::takeTextEntry(file.data(), field, message.external);
      else if (field.number == locationOfTensor)
        place.isExternal = field.value == 1;
      else if (holdsElements(field))
        message.elements.push_back(field);
    }
    isMalformed |= !fields.atEnd();
    const std::string name = constant.empty() ? message.name : constant;
    if (!graph.empty())
      place.names.push_back(graph + name);
    place.names.push_back(name);
    place.bytes = place.dtype ? checkedBytes(*place.dtype, place.shape).value_or(0) : 0;
    place.location = message.external["location"];
    place.offset = std::strtoll(message.external["offset"].c_str(), nullptr, 10); // which the import has checked
    if (place.isExternal && message.external.count("length"))
      place.bytes = std::strtoll(message.external["length"].c_str(), nullptr, 10);
    return onTensor(whole, message);
  }

  const MappedFile &file;
  OnTensor onTensor;
  bool isMalformed = false;
};

Pieces oldForm(const Field &field) {
  Pieces pieces;
  pieces.copy(field.begin, field.end);
  return pieces;
}

/// The entries that say where external data lie, and a hash of the old ones, are written anew.
Pieces externalForm(const MappedFile &file, const Field &whole, int64_t bytes, const std::string &location, int64_t offset) {
  Pieces pieces;
  Fields fields(file.data(), whole.begin, whole.end);
  for (Field field; fields.next(field);)
    if (field.number != externalOfTensor)
      pieces.copy(field.first, field.last);
  auto entry = [&](const char *key, const std::string &value) { pieces.add(bytesField(externalOfTensor, bytesField(1, key) + bytesField(2, value))); };
  entry("location", location);
  entry("offset", std::to_string(offset));
  entry("length", std::to_string(bytes));
  return pieces;
}

/// In the place of the old elements where they have as many bytes, else as raw_data.
Pieces innerForm(const MappedFile &file, const Field &whole, const TensorMessage &tensor, size_t index) {
  const int64_t bytes = tensor.place.bytes;
  const std::vector<Field> &old = tensor.elements;
  const bool isVerbatim = old.size() == 1 && old[0].type == 2 && old[0].end - old[0].begin == bytes &&
                          (old[0].number == rawOfTensor || old[0].number == floatsOfTensor || old[0].number == doublesOfTensor);
  Pieces pieces;
  Fields fields(file.data(), whole.begin, whole.end);
  for (Field field; fields.next(field);) {
    if (!holdsElements(field)) {
      pieces.copy(field.first, field.last);
    } else if (isVerbatim) {
      pieces.copy(field.first, field.begin);
      pieces.addElements(index, bytes);
    }
  }
  if (!isVerbatim) {
    pieces.add(wire::varint(rawOfTensor << 3 | wire::bytesType) + wire::varint(uint64_t(bytes)));
    pieces.addElements(index, bytes);
  }
  return pieces;
}

} // namespace

Expected<std::vector<TensorPlace>> tensorPlaces(const MappedFile &model) {
  std::vector<TensorPlace> places;
  Expected<Pieces> pieces = Walk(model, [&](const Field &field, const TensorMessage &tensor) {
                              places.push_back(tensor.place);
                              return oldForm(field);
                            }).model();
  HPC_RETURN_IF_ERROR(pieces.status());
  return places;
}

Status rewriteTensors(const MappedFile &model, const std::vector<TensorPlace> &places, const std::vector<NewElements> &elements,
                      const std::string &location, AtomicFile &file) {
  size_t next = 0;
  Expected<Pieces> pieces = Walk(model, [&](const Field &field, const TensorMessage &tensor) {
                              const size_t index = next++;
                              if (tensor.place.isExternal && elements[index].offset)
                                return externalForm(model, field, tensor.place.bytes, location, *elements[index].offset);
                              return elements[index].source ? innerForm(model, field, tensor, index) : oldForm(field);
                            }).model();
  HPC_RETURN_IF_ERROR(pieces.status());
  for (const Pieces::Piece &piece : pieces->list) {
    if (!piece.tensor) {
      HPC_RETURN_IF_ERROR(piece.text.empty() ? file.write(model.data() + piece.first, piece.size()) : file.write(piece.text));
      continue;
    }
    int64_t written = 0;
    HPC_RETURN_IF_ERROR(elements[*piece.tensor].source([&](const std::byte *data, int64_t bytes) {
      written += bytes;
      return file.write(data, bytes);
    }));
    if (written != piece.size())
      return Status::error(ErrorKind::Internal, "'" + places[*piece.tensor].names.back() + "': " + std::to_string(written) + " bytes were written for " +
                                                    std::to_string(piece.size()));
  }
  return Status::success();
}

} // namespace hpc::onnx
