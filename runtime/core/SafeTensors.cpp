// Parses the header with nlohmann-json, without exceptions and without its tree.
#include "runtime/core/SafeTensors.h"

#include "runtime/base/Array.h"
#include "runtime/base/CountText.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace hpc {

namespace {

using Json = nlohmann::json;

constexpr std::pair<const char *, DType> typeNames[] = {
    {"F32", DType::F32}, {"F64", DType::F64}, {"F16", DType::F16},   {"BF16", DType::BF16}, {"I64", DType::I64},
    {"I32", DType::I32}, {"I16", DType::I16}, {"I8", DType::I8},     {"U8", DType::U8},     {"U16", DType::U16},
    {"U32", DType::U32}, {"U64", DType::U64}, {"BOOL", DType::Bool},
};

/// The events of the library's parser, so that a header costs what its tensors cost and not what its brackets do.
class HeaderReader : public nlohmann::json_sax<Json> {
public:
  HeaderReader(const MappedFile &file, int64_t dataStart) : file(file), dataStart(dataStart) {}

  std::map<std::string, SafeTensor> tensors;
  std::map<std::string, std::string> metadata;
  std::string error; ///< without the file's name

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); } // below 0
  bool number_float(number_float_t, const string_t &) override { return value(); }
  bool binary(binary_t &) override { return value(); }
  bool number_unsigned(number_unsigned_t number) override {
    constexpr size_t mostDims = 64;
    if (depth == 3 && list && number <= uint64_t(INT64_MAX) && list->size() < mostDims) {
      list->push_back(int64_t(number));
      return true;
    }
    return value();
  }
  bool string(string_t &text) override {
    if (depth == 2 && entryKey == "dtype") {
      typeName = text;
      hasType = true;
      return true;
    }
    if (depth == 2 && isMetadata())
      metadata[metadataKey] = text;
    return value();
  }
  bool start_array(size_t) override {
    bool isList = depth == 2 && list;
    if (!isList && !value())
      return false;
    ++depth;
    return true;
  }
  bool end_array() override { return end(); }
  bool start_object(size_t) override {
    if (depth == 0 || (depth == 1 && beginEntry()) || value()) {
      ++depth;
      return true;
    }
    return false;
  }
  bool end_object() override { return end() && (depth != 1 || endEntry()); }
  bool key(string_t &text) override {
    if (depth == 1)
      name = text;
    if (depth != 2)
      return true;
    if (isMetadata())
      metadataKey = text;
    entryKey = text;
    list = text == "shape" ? &shape : text == "data_offsets" ? &range : nullptr;
    if (list) {
      (list == &shape ? hasShape : hasRange) = true;
      list->clear();
    }
    return true;
  }
  bool parse_error(size_t, const std::string &, const nlohmann::json::exception &) override {
    error = "its header is not a JSON object";
    return false;
  }

private:
  bool isMetadata() const { return name == "__metadata__"; }
  bool broken(const char *what) {
    error = "tensor '" + name + "' " + what;
    return false;
  }
  /// A value that is not what its place asks for.
  bool value() {
    if (depth == 0)
      return (error = "its header is not a JSON object", false);
    if (isMetadata())
      return true;
    if (depth == 1 || (depth == 2 && entryKey == "dtype"))
      return broken(lacking);
    return !list || broken(noLists);
  }
  bool beginEntry() {
    hasType = hasShape = hasRange = false;
    entryKey.clear();
    list = nullptr;
    shape.clear();
    range.clear();
    return true;
  }
  bool end() {
    --depth;
    return true;
  }
  bool endEntry() {
    if (isMetadata())
      return true;
    if (!hasType || !hasShape || !hasRange)
      return broken(lacking);
    const auto *type = std::find_if(std::begin(typeNames), std::end(typeNames),
                                    [&](const auto &known) { return typeName == known.first; });
    if (type == std::end(typeNames))
      return true; // a type that no plan has; missed by name where it is needed
    if (range.size() != 2)
      return broken(noLists);
    SafeTensor tensor;
    tensor.dtype = type->second;
    tensor.shape = shape;
    std::optional<int64_t> bytes = checkedBytes(tensor.dtype, tensor.shape);
    if (!bytes || range[0] > range[1] || range[1] - range[0] != *bytes || range[1] > file.size() - dataStart)
      return broken("has data_offsets that do not fit its shape or the file");
    tensor.data = file.data() + dataStart + range[0];
    return tensors.emplace(name, std::move(tensor)).second || broken("is there twice");
  }

  static constexpr const char *lacking = "lacks dtype, shape or data_offsets",
                              *noLists = "has a shape or data_offsets that are not lists of numbers";
  const MappedFile &file;
  int64_t dataStart;
  int64_t depth = 0; ///< 1 within the header, 2 within a tensor's object, 3 within a list of it
  std::string name, entryKey, typeName, metadataKey;
  bool hasType = false, hasShape = false, hasRange = false;
  std::vector<int64_t> shape, range;
  std::vector<int64_t> *list = nullptr; ///< that the current key of a tensor's object fills
};

} // namespace

Expected<std::map<std::string, SafeTensor>> readSafeTensors(const MappedFile &file,
                                                            std::map<std::string, std::string> *metadata) {
  auto wrong = [&](const std::string &what) { return Status::error(ErrorKind::Io, "'" + file.path() + "': " + what); };
  if (file.size() < 8)
    return wrong("is not a .safetensors file: it is too short");
  uint64_t headerBytes;
  std::memcpy(&headerBytes, file.data(), 8);
  if (headerBytes > uint64_t(file.size() - 8))
    return wrong("is not a .safetensors file, or it is cut off: its header should take " +
                 countText(headerBytes, "byte"));
  std::string_view text = file.text().substr(8, headerBytes);
  HeaderReader reader(file, 8 + int64_t(headerBytes));
  if (!Json::sax_parse(text, &reader))
    return wrong(reader.error.empty() ? "its header is not a JSON object" : reader.error);
  if (metadata)
    *metadata = std::move(reader.metadata);
  return std::move(reader.tensors);
}

std::string safeTensorsHeader(const std::vector<SafeTensorEntry> &entries,
                              const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const SafeTensorEntry &entry : entries) {
    const auto *type = std::find_if(std::begin(typeNames), std::end(typeNames),
                                    [&](const auto &known) { return entry.dtype == known.second; });
    int64_t end = offset + checkedBytes(entry.dtype, entry.shape).value_or(0);
    header[entry.name] = {{"dtype", type->first}, {"shape", entry.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  // Names may be no UTF-8; such bytes are replaced, as everywhere in JSON.
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t size = text.size();
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  return bytes + text;
}

} // namespace hpc
