// Parses the header with nlohmann-json, without exceptions and without its tree; then checks the tensors side by side.
#include "runtime/core/SafeTensors.h"

#include "runtime/base/Array.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace hpc {

namespace {

using Json = nlohmann::json;

/// All types of the format; those without a DType can be in a file, and no plan reads them.
struct ElementType {
  const char *name;
  int64_t bits;
  std::optional<DType> dtype;
};
const ElementType elementTypes[] = {
    {"F32", 32, DType::F32},  {"F64", 64, DType::F64}, {"F16", 16, DType::F16}, {"BF16", 16, DType::BF16},
    {"I64", 64, DType::I64},  {"I32", 32, DType::I32}, {"I16", 16, DType::I16}, {"I8", 8, DType::I8},
    {"U8", 8, DType::U8},     {"U16", 16, DType::U16}, {"U32", 32, DType::U32}, {"U64", 64, DType::U64},
    {"BOOL", 8, DType::Bool}, {"F8_E5M2", 8, {}},      {"F8_E4M3", 8, {}},      {"F8_E5M2FNUZ", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},   {"F8_E8M0", 8, {}},      {"F6_E2M3", 6, {}},      {"F6_E3M2", 6, {}},
    {"F4", 4, {}},            {"C64", 64, {}},
};

/// Bytes of so many elements; nothing where they are too many, or end within a byte.
std::optional<int64_t> bytesOf(const ElementType &type, const std::vector<int64_t> &shape) {
  std::optional<int64_t> elements = checkedBytes(DType::U8, shape);
  int64_t bits;
  if (!elements || __builtin_mul_overflow(*elements, type.bits, &bits) || bits % 8 != 0)
    return std::nullopt;
  return bits / 8;
}

/// The events of the library's parser, so that a header costs what its tensors cost and not what its brackets do.
class HeaderReader : public nlohmann::json_sax<Json> {
public:
  explicit HeaderReader(std::string_view data) : data(data) {}

  NamedTensorMap tensors;
  std::map<std::string, std::string> metadata;
  std::string error; ///< without the file's name

  /// The tensors lie one after the other, and take all of the data.
  bool checkLayout() {
    std::vector<std::pair<std::pair<int64_t, int64_t>, const std::string *>> ranges;
    for (const auto &[key, tensor] : tensors) {
      const int64_t begin = tensor.data - reinterpret_cast<const std::byte *>(data.data());
      ranges.push_back({{begin, begin + tensor.bytes}, &key});
    }
    std::sort(ranges.begin(), ranges.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    int64_t end = 0;
    const std::string *before = nullptr;
    for (const auto &[range, key] : ranges) {
      if (range.first < end)
        error = "tensors '" + *before + "' and '" + *key + "' overlap in byte " + std::to_string(range.first) +
                " of the data, which the format forbids; save the file again";
      else if (range.first > end)
        error = "bytes " + std::to_string(end) + " to " + std::to_string(range.first - 1) +
                " of the data, before tensor '" + *key + "', belong to no tensor, which the format forbids; save the file again";
      if (!error.empty())
        return false;
      end = range.second;
      before = key;
    }
    if (end < int64_t(data.size()))
      error = "the last " + std::to_string(int64_t(data.size()) - end) +
              " bytes of the file belong to no tensor, which the format forbids; save the file again";
    return error.empty();
  }

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
    if (depth == 2 && isMetadata()) {
      metadata[entryKey] = text;
      return true;
    }
    if (depth == 2 && entryKey == "dtype") {
      typeName = text;
      return true;
    }
    return value();
  }
  bool start_array(size_t) override {
    if (!(depth == 2 && list) && !value())
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
    if (depth == 1) {
      name = text;
      if (isMetadata() && std::exchange(hasMetadata, true))
        return (error = "'__metadata__' is there twice", false);
    }
    if (depth != 2)
      return true;
    entryKey = text;
    if (std::find(keys.begin(), keys.end(), text) != keys.end())
      return isMetadata() ? (error = "'__metadata__' has '" + text + "' twice", false) : broken("has a key twice");
    keys.push_back(text);
    list = isMetadata() ? nullptr : text == "shape" ? &shape : text == "data_offsets" ? &range : nullptr;
    if (!isMetadata() && !list && text != "dtype")
      return broken("has a key besides dtype, shape and data_offsets");
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
      return (error = "its '__metadata__' is not an object of texts", false);
    if (depth == 1 || (depth == 2 && entryKey == "dtype"))
      return broken(lacking);
    return broken(noLists);
  }
  bool beginEntry() {
    keys.clear();
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
    if (keys.size() != 3)
      return broken(lacking);
    const auto *type = std::find_if(std::begin(elementTypes), std::end(elementTypes),
                                    [&](const auto &known) { return typeName == known.name; });
    if (type == std::end(elementTypes))
      return (error = "tensor '" + name + "' has dtype '" + typeName + "', which the format has not", false);
    if (range.size() != 2)
      return broken(noLists);
    NamedTensor tensor{type->dtype, type->dtype ? hpc::name(*type->dtype) : typeName, shape};
    std::optional<int64_t> bytes = bytesOf(*type, shape);
    if (!bytes || range[0] > range[1] || range[1] - range[0] != *bytes || range[1] > int64_t(data.size()))
      return broken("has data_offsets that do not fit its shape or the file");
    tensor.bytes = *bytes;
    tensor.data = reinterpret_cast<const std::byte *>(data.data()) + range[0];
    return tensors.emplace(name, std::move(tensor)).second || broken("is there twice");
  }

  static constexpr const char *lacking = "lacks dtype, shape or data_offsets",
                              *noLists = "has a shape or data_offsets that are not lists of numbers";
  std::string_view data;
  int64_t depth = 0; ///< 1 within the header, 2 within a tensor's object, 3 within a list of it
  std::string name, entryKey, typeName;
  bool hasMetadata = false;
  std::vector<std::string> keys; ///< of the current object
  std::vector<int64_t> shape, range;
  std::vector<int64_t> *list = nullptr; ///< that the current key of a tensor's object fills
};

} // namespace

Expected<NamedTensorMap> readSafeTensors(const MappedFile &file, std::map<std::string, std::string> *metadata) {
  constexpr uint64_t mostHeaderBytes = 100'000'000; // the format's own limit
  auto wrong = [&](const std::string &what) { return Status::error(ErrorKind::Io, "'" + file.path() + "': " + what); };
  if (file.size() < 8)
    return wrong("is not a .safetensors file: it is too short");
  uint64_t headerBytes;
  std::memcpy(&headerBytes, file.data(), 8);
  if (headerBytes > uint64_t(file.size() - 8))
    return wrong("is not a .safetensors file, or it is cut off: its header should take " + std::to_string(headerBytes) +
                 " bytes, and the file has " + std::to_string(file.size()));
  if (headerBytes > mostHeaderBytes)
    return wrong("is not a .safetensors file: its header takes " + std::to_string(headerBytes) +
                 " bytes, and the format allows " + std::to_string(mostHeaderBytes));
  std::string_view text = file.text().substr(8, headerBytes);
  if (text.empty() || text[0] != '{')
    return wrong("is not a .safetensors file: its header does not begin with '{'");
  HeaderReader reader(file.text().substr(8 + headerBytes));
  if (!Json::sax_parse(text, &reader) || !reader.checkLayout())
    return wrong(reader.error.empty() ? "its header is not a JSON object" : reader.error);
  if (metadata)
    *metadata = std::move(reader.metadata);
  return std::move(reader.tensors);
}

std::string safeTensorsHeader(const std::vector<SafeTensorEntry> &entries,
                              const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const SafeTensorEntry &entry : entries) {
    const auto *type = std::find_if(std::begin(elementTypes), std::end(elementTypes),
                                    [&](const auto &known) { return known.dtype == entry.dtype; });
    int64_t end = offset + checkedBytes(entry.dtype, entry.shape).value_or(0);
    header[entry.name] = {{"dtype", type->name}, {"shape", entry.shape}, {"data_offsets", {offset, end}}};
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
