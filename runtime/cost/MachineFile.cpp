// Reads the tree of the JSON library field by field; the first error is the one that is returned.
#include "runtime/cost/MachineFile.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/File.h"
#include "runtime/base/Nearest.h"
#include "runtime/cost/ShippedMachines.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

namespace hpc::cost {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char *everyRank = "all", *unlimited = "unlimited";
constexpr size_t longestFile = size_t(1) << 20;

Status usage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

/// The tree of a text in which no object has a key twice.
Expected<Json> parseJson(std::string_view text) {
  if (text.size() > longestFile)
    return usage("has " + std::to_string(text.size()) + " bytes, and a machine takes at most " + std::to_string(longestFile) + "; give a machine file");
  std::vector<std::set<std::string>> keys;
  std::string twice;
  auto note = [&](int, Json::parse_event_t event, Json &parsed) {
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second && twice.empty())
      twice = parsed.get<std::string>();
    return true;
  };
  try {
    Json json = Json::parse(text.begin(), text.end(), note);
    if (!twice.empty())
      return usage("has the field '" + twice + "' twice in one place; leave one of them out");
    return json;
  } catch (const Json::exception &error) {
    const auto *parse = dynamic_cast<const Json::parse_error *>(&error);
    const size_t end = parse ? std::min(parse->byte, text.size()) : text.size();
    return usage("is not JSON, from line " + std::to_string(1 + std::count(text.begin(), text.begin() + ptrdiff_t(end), '\n')) +
                 " on, or has a number that no double holds; docs/machines.md describes the format");
  }
}

/// An object of the file. It must have no field but those that are asked for.
class Fields {
public:
  Fields(const Json &json, std::string place, Status &status) : json(json), place(std::move(place)), status(status) {
    if (!json.is_object())
      fail(this->place.empty() ? "is " + kindOf(json) + ", not an object" : this->place + " is " + kindOf(json) + "; it must be an object");
  }
  ~Fields() {
    if (!status.ok() || !json.is_object())
      return;
    for (const auto &[key, value] : json.items())
      if (std::find(asked.begin(), asked.end(), key) == asked.end()) {
        const std::vector<std::string> nearest = nearestNames(key, asked);
        fail(fieldOf(key) + " is no field of a machine; " + (nearest.empty() ? "leave it out" : "is it " + anyOf(nearest) + "?"));
      }
  }
  Fields(const Fields &) = delete;

  std::string fieldOf(const std::string &key) const { return place.empty() ? key : place + "." + key; }
  void fail(const std::string &message) {
    if (status.ok())
      status = usage(message);
  }

  /// The value of a field, or nothing where it is not there (which is an error, where it is required).
  const Json *find(const char *key, bool isRequired) {
    asked.push_back(key);
    if (!status.ok() || !json.is_object())
      return nullptr;
    auto found = json.find(key);
    if (found != json.end())
      return &*found;
    if (isRequired)
      fail(fieldOf(key) + " is missing; add it (docs/machines.md describes each field)");
    return nullptr;
  }
  void number(const char *key, double &value, bool isRequired) {
    const Json *found = find(key, isRequired);
    if (found && !found->is_number())
      return fail(fieldOf(key) + " is " + kindOf(*found) + "; it must be a number");
    if (found)
      value = found->get<double>();
  }
  /// One whose absence is 0.
  void positive(const char *key, double &value) {
    number(key, value, /*isRequired=*/false);
    if (json.is_object() && json.contains(key) && value == 0)
      fail(fieldOf(key) + " is 0; it must be above, or left out");
  }
  /// `word`: text that stands for 0.
  void whole(const char *key, int64_t &value, bool isRequired, const char *word = nullptr) {
    const Json *found = find(key, isRequired);
    if (!found || (word && *found == word))
      return;
    const std::string must = std::string("; it must be a whole number of at least 1") + (word ? std::string(", or \"") + word + "\"" : "");
    if (std::optional<int64_t> number = wholeOf(*found); number && *number >= 1)
      value = *number;
    else
      fail(fieldOf(key) + " is " + kindOf(*found) + must);
  }
  /// A whole number from 0 on.
  void count(const char *key, int64_t &value) {
    const Json *found = find(key, /*isRequired=*/true);
    std::optional<int64_t> number = found ? wholeOf(*found) : std::nullopt;
    if (number && *number >= 0)
      value = *number;
    else if (found)
      fail(fieldOf(key) + " is " + kindOf(*found) + "; it must be a whole number of at least 0");
  }
  void memory(int64_t &bytes, bool isRequired) {
    const Json *found = find("memory", isRequired);
    if (!found || (isRequired && *found == unlimited))
      return;
    Expected<int64_t> size = found->is_string() ? parseByteSize(found->get<std::string>()) : usage("is no text with a unit, as \"40GiB\"");
    if (size.ok())
      bytes = *size;
    else
      fail(fieldOf("memory") + " is " + shortText(*found) + ", which " + size.status().message());
  }
  void text(const char *key, std::string &value, bool isRequired) {
    const Json *found = find(key, isRequired);
    if (found && !found->is_string())
      return fail(fieldOf(key) + " is " + kindOf(*found) + "; it must be a text");
    if (found)
      value = found->get<std::string>();
  }
  /// The elements of a list of objects.
  template <typename Visit> void objects(const char *key, bool isRequired, Visit visit) {
    const Json *found = find(key, isRequired);
    if (found && !found->is_array())
      return fail(fieldOf(key) + " is " + kindOf(*found) + "; it must be a list");
    for (size_t index = 0; found && index < found->size() && status.ok(); ++index) {
      Fields fields((*found)[index], fieldOf(key) + "[" + std::to_string(index) + "]", status);
      visit(fields);
    }
  }
  /// A field that is an object.
  template <typename Visit> void object(const char *key, bool isRequired, Visit visit) {
    if (const Json *found = find(key, isRequired)) {
      Fields fields(*found, fieldOf(key), status);
      visit(fields);
    }
  }
  /// The names of all fields; each is one that is asked for.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto &[key, value] : json.items())
      names.push_back(key);
    return json.is_object() ? names : std::vector<std::string>();
  }
  bool holdsNumber(const char *key) const { return json.is_object() && json.contains(key) && json.at(key).is_number(); }

private:
  /// A whole number is 2 or 2.0, as JSON Schema has it. A number beyond 2^53 is no size of a machine.
  static std::optional<int64_t> wholeOf(const Json &value) {
    constexpr double most = 0x1p53;
    const double number = value.is_number() ? value.get<double>() : 0.5;
    return number == std::floor(number) && std::abs(number) <= most ? std::optional<int64_t>(int64_t(number)) : std::nullopt;
  }
  static std::string shortText(const Json &value) {
    std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() > 40 ? text.substr(0, 40) + "..." : text;
  }
  static std::string kindOf(const Json &value) {
    return value.is_object() ? "an object" : value.is_array() ? "a list" : shortText(value);
  }

  const Json &json;
  const std::string place;
  Status &status;
  std::vector<std::string> asked;
};

/// The type that a field of device.flops or device.efficiency is named after.
DType typeOf(Fields &fields, const std::string &key) {
  std::optional<DType> type = parseDType(key);
  if (!type)
    fields.fail(fields.fieldOf(key) + " is of no type of tensors; use f32, bf16, f16, f64, i8");
  return type.value_or(DType::F32);
}

void readProducts(Fields &device, Machine &machine) {
  machine.products.clear();
  device.object("flops", /*isRequired=*/true, [&](Fields &flops) {
    for (const std::string &key : flops.names()) {
      machine.products.push_back({typeOf(flops, key), 0, {}});
      flops.number(key.c_str(), machine.products.back().flops, /*isRequired=*/true);
    }
  });
  std::sort(machine.products.begin(), machine.products.end(), [](const ProductSpeed &a, const ProductSpeed &b) { return a.type < b.type; });
  device.object("efficiency", /*isRequired=*/false, [&](Fields &efficiency) {
    for (const std::string &key : efficiency.names()) {
      const DType type = typeOf(efficiency, key);
      auto speed = std::find_if(machine.products.begin(), machine.products.end(), [&](const ProductSpeed &each) { return each.type == type; });
      if (speed == machine.products.end())
        return efficiency.fail(efficiency.fieldOf(key) + " is of a type that device.flops does not have; add it there");
      if (efficiency.holdsNumber(key.c_str())) {
        speed->efficiency.push_back({1, 0});
        efficiency.number(key.c_str(), speed->efficiency.back().share, /*isRequired=*/true);
        continue;
      }
      efficiency.object(key.c_str(), /*isRequired=*/true, [&](Fields &points) {
        for (const std::string &least : points.names()) {
          Efficiency point;
          auto [end, error] = std::from_chars(least.data(), least.data() + least.size(), point.least);
          if (error != std::errc() || end != least.data() + least.size() || point.least < 1)
            return points.fail(points.fieldOf(least) + " is named after no size; use a whole number of at least 1, as in {\"64\": 0.2, \"1024\": 0.7}");
          points.number(least.c_str(), point.share, /*isRequired=*/true);
          speed->efficiency.push_back(point);
        }
      });
      std::sort(speed->efficiency.begin(), speed->efficiency.end(), [](const Efficiency &a, const Efficiency &b) { return a.least < b.least; });
      if (speed->efficiency.empty())
        efficiency.fail(efficiency.fieldOf(key) + " has no point; give a share, or leave it out");
    }
  });
}

template <typename Sends> void readProtocol(Fields &fields, Sends &sends) {
  fields.number("latency_s", sends.latency, /*isRequired=*/true);
  fields.number("bytes_per_s", sends.bytesPerSecond, /*isRequired=*/true);
  fields.number("start_s", sends.start, /*isRequired=*/false);
  fields.positive("tree_latency_s", sends.treeLatency);
}

void readMachineFields(Fields &fields, Machine &machine) {
  std::string schema; // for editors
  fields.text("$schema", schema, /*isRequired=*/false);
  fields.text("name", machine.name, /*isRequired=*/true);
  fields.whole("ranks_per_host", machine.ranksPerHost, /*isRequired=*/true, everyRank);
  fields.whole("hosts", machine.hosts, /*isRequired=*/false);
  fields.whole("cores", machine.cores, /*isRequired=*/false);
  fields.positive("wake_s", machine.wakeSeconds);
  fields.memory(machine.memory, /*isRequired=*/true);
  fields.object("device", /*isRequired=*/true, [&](Fields &device) {
    readProducts(device, machine);
    device.positive("elements_per_s", machine.elementsPerSecond);
    device.number("bytes_per_s", machine.bytesPerSecond, /*isRequired=*/true);
    device.object("cache", /*isRequired=*/false, [&](Fields &cache) {
      cache.whole("bytes", machine.cacheBytes, /*isRequired=*/true);
      cache.number("bytes_per_s", machine.cacheBytesPerSecond, /*isRequired=*/true);
    });
    device.number("launch_s", machine.launch, /*isRequired=*/true);
  });
  machine.links.clear();
  fields.objects("links", /*isRequired=*/true, [&](Fields &each) {
    Link &link = machine.links.emplace_back();
    each.whole("ranks", link.ranks, /*isRequired=*/true, everyRank);
    readProtocol(each, link);
    each.objects("other_protocols", /*isRequired=*/false, [&](Fields &other) { readProtocol(other, link.others.emplace_back()); });
  });
  fields.number("overlap_slowdown", machine.overlapSlowdown, /*isRequired=*/false);
  fields.objects("differences", /*isRequired=*/false, [&](Fields &each) {
    HostDifference &difference = machine.differences.emplace_back();
    each.count("first_rank", difference.firstRank);
    each.whole("ranks", difference.ranks, /*isRequired=*/true);
    each.number("speed", difference.speed, /*isRequired=*/false);
    each.memory(difference.memory, /*isRequired=*/false);
  });
}

// ---- writing ------------------------------------------------------------------------------------

std::string memoryText(int64_t bytes) {
  if (bytes == 0)
    return unlimited;
  for (auto [unit, size] : {std::pair("TiB", int64_t(1) << 40), std::pair("GiB", int64_t(1) << 30), std::pair("MiB", int64_t(1) << 20),
                            std::pair("GB", int64_t(1000000000)), std::pair("MB", int64_t(1000000))})
    if (bytes % size == 0)
      return std::to_string(bytes / size) + unit;
  return std::to_string(bytes);
}

Json ranksJson(int64_t ranks) { return ranks ? Json(ranks) : Json(everyRank); }

template <typename Sends> void writeProtocol(Json &json, const Sends &sends) {
  json["latency_s"] = sends.latency;
  json["bytes_per_s"] = sends.bytesPerSecond;
  if (sends.start != 0)
    json["start_s"] = sends.start;
  if (sends.treeLatency != 0)
    json["tree_latency_s"] = sends.treeLatency;
}

Json machineJson(const Machine &machine) {
  Json json = {{"name", machine.name}, {"ranks_per_host", ranksJson(machine.ranksPerHost)}};
  if (machine.hosts)
    json["hosts"] = machine.hosts;
  if (machine.cores)
    json["cores"] = machine.cores;
  if (machine.wakeSeconds != 0)
    json["wake_s"] = machine.wakeSeconds;
  json["memory"] = memoryText(machine.memory);
  Json &device = json["device"] = Json::object();
  for (const ProductSpeed &speed : machine.products)
    device["flops"][name(speed.type)] = speed.flops;
  for (const ProductSpeed &speed : machine.products)
    for (const Efficiency &point : speed.efficiency)
      device["efficiency"][name(speed.type)][std::to_string(point.least)] = point.share;
  if (machine.elementsPerSecond != 0)
    device["elements_per_s"] = machine.elementsPerSecond;
  device["bytes_per_s"] = machine.bytesPerSecond;
  if (machine.cacheBytes)
    device["cache"] = {{"bytes", machine.cacheBytes}, {"bytes_per_s", machine.cacheBytesPerSecond}};
  device["launch_s"] = machine.launch;
  Json &links = json["links"] = Json::array();
  for (const Link &link : machine.links) {
    Json &each = links.emplace_back(Json{{"ranks", ranksJson(link.ranks)}});
    writeProtocol(each, link);
    for (const Protocol &other : link.others)
      writeProtocol(each["other_protocols"].emplace_back(Json::object()), other);
  }
  if (machine.overlapSlowdown != 1)
    json["overlap_slowdown"] = machine.overlapSlowdown;
  for (const HostDifference &each : machine.differences) {
    Json &difference = json["differences"].emplace_back(Json{{"first_rank", each.firstRank}, {"ranks", each.ranks}});
    if (each.speed != 1)
      difference["speed"] = each.speed;
    if (each.memory)
      difference["memory"] = memoryText(each.memory);
  }
  return json;
}

} // namespace

Expected<Machine> parseMachine(std::string_view text, const std::string &name) {
  Expected<Json> json = parseJson(text);
  if (!json.ok())
    return json.status().at(name);
  Machine machine;
  Status status;
  {
    Fields fields(*json, "", status);
    readMachineFields(fields, machine);
  }
  if (status.ok())
    status = checkMachine(machine);
  if (!status.ok())
    return status.at(name);
  return machine;
}

std::vector<std::string> shippedMachines() {
  std::vector<std::string> names;
  for (const ShippedMachine &machine : shippedMachineFiles())
    names.push_back(machine.name);
  std::sort(names.begin(), names.end());
  return names;
}

Expected<Machine> readMachine(const std::string &nameOrPath) {
  for (const ShippedMachine &machine : shippedMachineFiles())
    if (nameOrPath == machine.name)
      return parseMachine(machine.text, nameOrPath);
  Expected<MappedFile> file = MappedFile::open(nameOrPath);
  if (file.ok())
    return parseMachine(file->text(), nameOrPath);
  if (nameOrPath.find_first_of("/.") != std::string::npos)
    return file.status();
  return usage(nameOrPath + ": is neither a file nor a machine that comes with hpc-opt; use " + anyOf(shippedMachines(), "") +
               ", or the path of a machine file (docs/machines.md)");
}

std::string machineText(const Machine &machine) { return machineJson(machine).dump(); }
std::string machineFileText(const Machine &machine) { return machineJson(machine).dump(2) + "\n"; }

} // namespace hpc::cost
