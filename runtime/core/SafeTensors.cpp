// Parses the header with nlohmann-json, without exceptions.
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

/// A JSON list of numbers that are not negative and fit int64.
bool parseNumbers(const Json &list, std::vector<int64_t> &numbers) {
  if (!list.is_array())
    return false;
  for (const Json &item : list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > uint64_t(INT64_MAX))
      return false;
    numbers.push_back(int64_t(item.get<uint64_t>()));
  }
  return true;
}

} // namespace

Expected<std::map<std::string, SafeTensor>> readSafeTensors(const MappedFile &file) {
  auto wrong = [&](const std::string &what) { return Status::error(ErrorKind::Io, "'" + file.path() + "': " + what); };
  if (file.size() < 8)
    return wrong("is not a .safetensors file: it is too short");
  uint64_t headerBytes;
  std::memcpy(&headerBytes, file.data(), 8);
  if (headerBytes > uint64_t(file.size() - 8))
    return wrong("is not a .safetensors file, or it is cut off: its header should take " +
                 countText(headerBytes, "byte"));
  std::string_view text = file.text().substr(8, headerBytes);
  Json header = Json::parse(text, nullptr, false);
  if (!header.is_object())
    return wrong("its header is not a JSON object");

  int64_t dataStart = 8 + int64_t(headerBytes);
  std::map<std::string, SafeTensor> tensors;
  for (auto item = header.begin(); item != header.end(); ++item) {
    const std::string &name = item.key();
    const Json &entry = item.value();
    if (name == "__metadata__")
      continue;
    auto broken = [&](const char *what) { return wrong("tensor '" + name + "' " + what); };
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
        !entry.contains("data_offsets"))
      return broken("lacks dtype, shape or data_offsets");
    SafeTensor tensor;
    std::string typeName = entry["dtype"].get<std::string>();
    const auto *type = std::find_if(std::begin(typeNames), std::end(typeNames),
                                    [&](const auto &known) { return typeName == known.first; });
    if (type == std::end(typeNames))
      continue; // a type that no plan has; missed by name where it is needed
    tensor.dtype = type->second;
    std::vector<int64_t> range;
    if (!parseNumbers(entry["shape"], tensor.shape) || !parseNumbers(entry["data_offsets"], range) || range.size() != 2)
      return broken("has a shape or data_offsets that are not lists of numbers");
    std::optional<int64_t> bytes = checkedBytes(tensor.dtype, tensor.shape);
    if (!bytes || range[0] > range[1] || range[1] - range[0] != *bytes || range[1] > file.size() - dataStart)
      return broken("has data_offsets that do not fit its shape or the file");
    tensor.data = file.data() + dataStart + range[0];
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

} // namespace hpc
