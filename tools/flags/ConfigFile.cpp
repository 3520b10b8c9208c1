// toml++ reads the file; this code maps its types to those of the flags.
#include "tools/flags/ConfigFile.h"

#include "runtime/base/File.h"
#include "runtime/base/NumberText.h"
#include "tools/flags/Arguments.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <algorithm>
#include <sstream>
#include <toml++/toml.h>

namespace hpc {

using Kind = FlagValue::Kind;

/// The value that a command line would have; nullopt where the type is another.
static std::optional<std::string> textOf(const toml::node &node, const FlagValue &value) {
  if (const auto *flag = node.as_boolean(); flag && value.kind == Kind::Switch)
    return flag->get() ? "" : "false";
  if (const auto *number = node.as_integer(); number && (value.kind == Kind::Whole || value.kind == Kind::Real))
    return std::to_string(number->get());
  if (const auto *number = node.as_floating_point(); number && value.kind == Kind::Real)
    return numberText(number->get());
  if (const auto *text = node.as_string(); text && value.kind == Kind::Text)
    return text->get();
  return std::nullopt;
}

/// "tp takes a whole number, and this is of type string; mend the line".
static std::string wrongType(const std::string &name, const FlagValue &value, const toml::node &node) {
  std::ostringstream text;
  text << name << " takes "
       << (value.kind == Kind::Switch  ? "true or false"
           : value.kind == Kind::Whole ? "a whole number"
           : value.kind == Kind::Real  ? "a number"
                                       : "a text in quotes")
       << (value.isOptional ? " or true" : value.isRepeated ? " or an array of such" : "") << ", and this is of type " << node.type() << "; mend the line";
  return text.str();
}

Expected<std::vector<ConfigEntry>> readConfigFile(const std::string &path, const ToolText &tool, const std::vector<Flag> &flags) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status().at("--config");
  auto wrong = [&](const toml::source_region &place, const std::string &message) {
    return Status::error(ErrorKind::Usage, path + ":" + std::to_string(place.begin.line) + ": " + message);
  };
  toml::parse_result parsed = toml::parse(file->text(), path);
  if (!parsed)
    return wrong(parsed.error().source(), std::string(parsed.error().description()) + "; docs/flags.md shows a file of flags");
  std::vector<ConfigEntry> entries;
  for (auto &&[key, node] : parsed.table()) {
    const std::string name(key.str());
    auto flag = std::find_if(flags.begin(), flags.end(), [&](const Flag &one) { return one.isNamed(name); });
    if (name == "config" || name == "help" || name == "h")
      return wrong(key.source(), name + " is for the command line alone; leave it out");
    if (flag == flags.end())
      return wrong(key.source(), unknownFlag(tool, name, ""));
    ConfigEntry entry{&*flag, {}};
    std::vector<const toml::node *> nodes = {&node};
    if (const toml::array *array = node.as_array(); array && flag->value.isRepeated) {
      nodes.clear();
      for (const toml::node &one : *array)
        nodes.push_back(&one);
    }
    for (const toml::node *one : nodes) {
      if (const auto *isOn = one->as_boolean(); isOn && flag->value.isOptional) {
        if (isOn->get())
          entry.values.push_back("");
        continue;
      }
      std::optional<std::string> text = textOf(*one, flag->value);
      if (!text)
        return wrong(one->source(), wrongType(name, flag->value, *one));
      if (const std::string why = flag->value.wrong(*text); !why.empty())
        return wrong(one->source(), name + " = " + *text + " " + why + "; mend the line");
      entry.values.push_back(*text);
    }
    for (const ConfigEntry &other : entries)
      if (other.flag == entry.flag)
        return wrong(key.source(), flag->name + " and " + flag->alias + " are one flag; give it once");
    if (!entry.values.empty())
      entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const ConfigEntry &one, const ConfigEntry &other) { return one.flag < other.flag; });
  return entries;
}

/// A basic string of TOML.
static std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned char>(c));
    out += c == '"' || c == '\\' ? std::string("\\") + c : static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? escaped : std::string(1, c);
  }
  return out + "\"";
}

/// The value of a flag, as textOf reads it.
static std::string tomlOf(const std::string &text, const FlagValue &value) {
  if (value.kind == Kind::Switch)
    return text == "false" || text == "0" ? "false" : "true";
  if (value.isOptional && text.empty())
    return "true";
  if (value.kind == Kind::Real) // ".5" and "5." are no numbers of TOML
    return numberText(std::strtod(text.c_str(), nullptr));
  return value.kind == Kind::Whole ? text : quoted(text);
}

std::string Arguments::configText(const std::vector<std::string> &without) const {
  std::string out;
  for (const Flag &flag : flags) {
    if (all(flag.name).empty() || std::find(without.begin(), without.end(), flag.name) != without.end())
      continue;
    std::string line;
    for (const std::string &value : all(flag.name))
      line += (line.empty() ? "" : ", ") + tomlOf(value, flag.value);
    out += flag.name + " = " + (flag.value.isRepeated ? "[" + line + "]" : line) + "\n";
  }
  return out;
}

} // namespace hpc
