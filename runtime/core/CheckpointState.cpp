// Values of the metadata are texts. Those that are whole numbers stand in the file as numbers, and come back as the same texts.
#include "runtime/core/CheckpointState.h"

#include "runtime/base/File.h"
#include "runtime/base/Hash.h"

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace hpc {

using StateJson = nlohmann::ordered_json;

static constexpr int64_t stateVersion = 1;
static const std::string recipePrefix = "run.";

static std::string hashText(uint64_t hash) {
  char text[24];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

static StateJson valueOf(const std::string &text) {
  const bool isWhole = !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == text.npos && (text.size() == 1 || text[0] != '0');
  return isWhole ? StateJson(std::stoll(text)) : StateJson(text);
}

/// The last lines, for the text before them.
static std::string endOf(std::string_view before) {
  return ",\n \"hash\": \"" + hashText(hashBytes(before.data(), int64_t(before.size()))) + "\"\n}\n";
}

std::string checkpointStateText(const CheckpointState &state) {
  StateJson json = {{"version", stateVersion}}, recipe = StateJson::object(), files = StateJson::array();
  for (const auto &[key, text] : state.metadata)
    if (key.compare(0, recipePrefix.size(), recipePrefix) == 0)
      recipe[key.substr(recipePrefix.size())] = valueOf(text);
    else
      json[key == "steps" ? "step" : key] = valueOf(text);
  for (const CheckpointFile &file : state.files) {
    StateJson parts = StateJson::array();
    for (const CheckpointFile::Part &part : file.parts)
      parts.push_back({{"tensor", part.tensor}, {"bytes", part.bytes}, {"hash", hashText(part.hash)}});
    files.push_back({{"file", file.path}, {"parts", parts}});
  }
  json["recipe"] = recipe;
  json["layout"] = state.layout;
  json["files"] = files;
  std::string text = json.dump(1, ' ', false, StateJson::error_handler_t::replace);
  text.resize(text.size() - std::strlen("\n}"));
  return text + endOf(text);
}

/// The text of a value; nothing where it is none of valueOf.
static std::optional<std::string> textOf(const StateJson &value) {
  if (value.is_string())
    return value.get<std::string>();
  return value.is_number_unsigned() ? std::optional(std::to_string(value.get<uint64_t>())) : std::nullopt;
}

/// False where a value has another type than the ones that are written.
static bool takeMetadata(const StateJson &object, const std::string &prefix, std::map<std::string, std::string> &metadata) {
  for (const auto &[key, value] : object.items()) {
    if (prefix.empty() && (key == "version" || key == "recipe" || key == "layout" || key == "files" || key == "hash"))
      continue;
    std::optional<std::string> text = textOf(value);
    if (!text)
      return false;
    metadata[prefix.empty() && key == "step" ? "steps" : prefix + key] = *text;
  }
  return true;
}

static std::optional<CheckpointFile::Part> partOf(const StateJson &json) {
  if (!json.is_object() || !json.contains("tensor") || !json["tensor"].is_string() || !json.contains("bytes") ||
      !json["bytes"].is_number_unsigned() || json["bytes"].get<uint64_t>() > uint64_t(INT64_MAX) || !json.contains("hash") || !json["hash"].is_string())
    return std::nullopt;
  return CheckpointFile::Part{json["tensor"], json["bytes"], std::strtoull(json["hash"].get<std::string>().c_str(), nullptr, 16)};
}

static bool takeFiles(const StateJson &list, std::vector<CheckpointFile> &files) {
  for (const StateJson &json : list) {
    if (!json.is_object() || !json.contains("file") || !json["file"].is_string() || !json.contains("parts") || !json["parts"].is_array())
      return false;
    CheckpointFile &file = files.emplace_back();
    file.path = json["file"];
    for (const StateJson &each : json["parts"]) {
      std::optional<CheckpointFile::Part> part = partOf(each);
      if (!part)
        return false;
      file.parts.push_back(*part);
    }
  }
  return true;
}

Expected<CheckpointState> readCheckpointState(const std::string &folder) {
  Expected<MappedFile> file = MappedFile::open(resolvePath(folder, checkpointStateName));
  HPC_RETURN_IF_ERROR(file.status());
  const std::string damaged = "'" + file->path() + "': is damaged: ";
  const std::string_view text = file->text();
  const size_t endBytes = endOf("").size();
  if (text.size() < endBytes || text.substr(text.size() - endBytes) != endOf(text.substr(0, text.size() - endBytes)))
    return Status::error(ErrorKind::Io, damaged + "its lines are not those that its last line is the hash of");
  const StateJson json = StateJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("version") || json["version"] != stateVersion)
    return Status::error(ErrorKind::Io, "'" + file->path() + "': has a version that this program does not read; use the program that wrote it");
  CheckpointState state;
  state.hash = hashBytes(text.data(), int64_t(text.size()));
  if (!takeMetadata(json, "", state.metadata) || !json.contains("recipe") || !takeMetadata(json["recipe"], recipePrefix, state.metadata) ||
      !json.contains("files") || !takeFiles(json["files"], state.files))
    return Status::error(ErrorKind::Io, damaged + "it lacks what a checkpoint has");
  if (json.contains("layout"))
    for (const auto &[key, value] : json["layout"].items())
      if (value.is_number_integer())
        state.layout[key] = value;
  return state;
}

bool isCheckpointFolder(const std::string &path) {
  std::error_code error;
  return std::filesystem::exists(resolvePath(path, checkpointStateName), error);
}

Status checkCheckpointFile(const std::string &folder, const CheckpointFile &file) {
  auto wrong = [&](const CheckpointFile::Part &part, const std::string &what) {
    return Status::error(ErrorKind::Io, "'" + resolvePath(folder, file.path) + "': " +
                                            (part.tensor.empty() ? what : what + " in tensor '" + part.tensor + "'"));
  };
  Expected<MappedFile> mapped = MappedFile::open(resolvePath(folder, file.path));
  HPC_RETURN_IF_ERROR(mapped.status());
  int64_t begin = 0, all = 0;
  for (const CheckpointFile::Part &part : file.parts)
    if (__builtin_add_overflow(all, part.bytes, &all))
      return wrong(part, "cannot be as large as " + std::string(checkpointStateName) + " says");
  for (const CheckpointFile::Part &part : file.parts) {
    if (part.bytes > mapped->size() - begin)
      return wrong(part, "is cut off: it has " + std::to_string(mapped->size()) + " of " + std::to_string(all) + " bytes, and ends");
    if (hashBytes(mapped->data() + begin, part.bytes) != part.hash)
      return wrong(part, "is damaged: bytes are not those that were saved");
    dropMappedPages(mapped->data() + begin, part.bytes);
    begin += part.bytes;
  }
  return begin == mapped->size() ? Status::success()
                                 : wrong({}, "has " + std::to_string(mapped->size() - begin) + " bytes more than were saved");
}

} // namespace hpc
