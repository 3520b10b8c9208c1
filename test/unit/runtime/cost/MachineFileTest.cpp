// Machine files: what is read is what is written, and a field that is missing, unknown, doubled or out of range is named.
#include "runtime/cost/MachineFile.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace hpc;
using namespace hpc::cost;
using Json = nlohmann::ordered_json;
using testing::HasSubstr;

static const char *good = R"({"name": "two hosts", "ranks_per_host": 4, "hosts": 2, "cores": 2, "wake_s": 2e-5, "memory": "40GiB",
  "device": {"flops": {"f32": 2e12, "bf16": 3e13}, "efficiency": {"f32": 0.9, "bf16": {"64": 0.2, "1024": 0.7}}, "elements_per_s": 1e12, "bytes_per_s": 1e12,
             "cache": {"bytes": 2097152, "bytes_per_s": 5e12}, "launch_s": 5e-6},
  "links": [{"ranks": 4, "latency_s": 4e-6, "bytes_per_s": 2e11, "start_s": 1e-5, "tree_latency_s": 5e-6,
             "other_protocols": [{"latency_s": 1e-6, "bytes_per_s": 1e11, "start_s": 5e-6}]},
            {"ranks": "all", "latency_s": 1.2e-5, "bytes_per_s": 2e10, "other_protocols": [{"latency_s": 3e-6, "bytes_per_s": 1e10}]}],
  "overlap_slowdown": 1.1, "differences": [{"first_rank": 4, "ranks": 4, "speed": 0.5, "memory": "24GB"}]})";

static std::string errorOf(const std::string &text) {
  Expected<Machine> machine = parseMachine(text, "m.json");
  return machine.ok() ? "ok" : machine.status().text();
}
static std::string errorWith(const char *pointer, Json value) {
  Json json = Json::parse(good);
  json[Json::json_pointer(pointer)] = std::move(value);
  return errorOf(json.dump());
}

TEST(MachineFile, ReadsEveryField) {
  Expected<Machine> read = parseMachine(good, "m.json");
  ASSERT_TRUE(read.ok()) << read.status().text();
  const Machine &machine = *read;
  EXPECT_EQ(machine.name, "two hosts");
  EXPECT_EQ(machine.ranksPerHost, 4);
  EXPECT_EQ(machine.ranks(), 8);
  EXPECT_EQ(machine.cores, 2);
  EXPECT_EQ(machine.memory, int64_t(40) << 30);
  ASSERT_EQ(machine.products.size(), 2u);
  EXPECT_EQ(machine.flops(), 2e12);
  EXPECT_EQ(machine.flops(DType::BF16), 3e13);
  EXPECT_DOUBLE_EQ(machine.productSeconds(DType::F32, 8, 8, 8), 2.0 * 512 / 1.8e12);
  EXPECT_DOUBLE_EQ(machine.productSeconds(DType::BF16, 256, 4096, 4096), 2.0 * 256 * 4096 * 4096 / (0.45 * 3e13)); // between 64 and 1024
  EXPECT_EQ(machine.elementsPerSecond, 1e12);
  EXPECT_EQ(machine.bytesPerSecond, 1e12);
  EXPECT_EQ(machine.launch, 5e-6);
  EXPECT_EQ(machine.cacheBytes, 2 << 20);
  EXPECT_EQ(machine.cacheBytesPerSecond, 5e12);
  EXPECT_EQ(machine.wakeSeconds, 2e-5);
  ASSERT_EQ(machine.links.size(), 2u);
  EXPECT_EQ(machine.links[0].ranks, 4);
  EXPECT_EQ(machine.links[0].latency, 4e-6);
  EXPECT_EQ(machine.links[0].treeLatency, 5e-6);
  EXPECT_EQ(machine.links[1].ranks, 0);
  EXPECT_EQ(machine.links[1].protocol(1).bytesPerSecond, 1e10);
  EXPECT_EQ(machine.overlapSlowdown, 1.1);
  EXPECT_EQ(machine.memoryOf(0, 4), int64_t(40) << 30);
  EXPECT_EQ(machine.memoryOf(3, 2), 24000000000);
  EXPECT_EQ(machine.bytesOfLatency(), int64_t(6e-6 * 2e11)); // start 5 us and a step of 1 us by the other protocol; 14 us by its own
}

// A written file reads back as the same text, with all numbers.
TEST(MachineFile, WritesWhatItReads) {
  std::vector<std::string> texts = {good};
  for (const std::string &name : shippedMachines()) {
    Expected<Machine> machine = readMachine(name);
    ASSERT_TRUE(machine.ok()) << machine.status().text();
    EXPECT_GT(machine->memory, int64_t(32000000000 - 1)) << name;
    texts.push_back(machineFileText(*machine));
  }
  EXPECT_THAT(shippedMachines(), testing::ElementsAre("a100-40g", "a100-80g", "h100", "h200", "v100-32g"));
  for (const std::string &text : texts) {
    Expected<Machine> once = parseMachine(text, "once");
    ASSERT_TRUE(once.ok()) << once.status().text();
    Expected<Machine> again = parseMachine(machineText(*once), "again");
    ASSERT_TRUE(again.ok()) << again.status().text();
    EXPECT_EQ(machineText(*once), machineText(*again));
  }
  // The text has every number of the file: one for one, beside the share that stands for all sizes.
  Json written = Json::parse(machineText(*parseMachine(good, "m.json"))), read = Json::parse(good);
  read["device"]["efficiency"]["f32"] = {{"1", 0.9}};
  EXPECT_EQ(nlohmann::json::parse(written.dump()), nlohmann::json::parse(read.dump()));
}

static bool isOptional(const std::string &field) {
  for (const char *name : {"hosts", "wake_s", "efficiency", "cache", "elements_per_s", "start_s", "tree_latency_s", "overlap_slowdown", "differences", "speed"})
    if (field == name)
      return true;
  return false;
}

/// Visits each member of an object, at any depth.
static void forEachMember(const Json &at, const Json::json_pointer &place, const std::function<void(const Json::json_pointer &, const Json &)> &visit) {
  for (const auto &[key, value] : at.items()) {
    const Json::json_pointer own = at.is_array() ? place / size_t(std::stoul(key)) : place / key;
    if (at.is_object())
      visit(own, value);
    if (value.is_structured())
      forEachMember(value, own, visit);
  }
}

// A file without one of its fields is refused by the field's name, or has the documented default.
TEST(MachineFile, NamesWhatIsMissing) {
  const Json whole = Json::parse(good);
  int refused = 0;
  forEachMember(whole, Json::json_pointer(), [&](const Json::json_pointer &place, const Json &) {
    Json json = whole;
    json[place.parent_pointer()].erase(place.back());
    const std::string error = errorOf(json.dump()), field = place.back();
    const bool isShare = place.to_string().find("/efficiency/") != std::string::npos;
    if (isOptional(field) || isShare || place == Json::json_pointer("/device/flops/bf16") || place == Json::json_pointer("/differences/0/memory")) {
      // A difference in memory alone, and one in speed alone, are differences; efficiencies of bf16 need its speed.
      EXPECT_EQ(error, place == Json::json_pointer("/device/flops/bf16") ? "error[usage]: m.json: device.efficiency.bf16 is of a type that device.flops does not have; add it there" : "ok") << place.to_string();
      return;
    }
    ++refused;
    EXPECT_THAT(error, HasSubstr(field)) << place.to_string();
    EXPECT_THAT(error, testing::StartsWith("error[usage]: m.json: ")) << place.to_string();
  });
  EXPECT_EQ(refused, 26); // wake_s needs cores
}

// Every number of every shipped machine in units that are off by 1e3 or 1e6, negative, zero where that means nothing, or no number.
TEST(MachineFile, RefusesOtherUnits) {
  for (const std::string &name : shippedMachines()) {
    const Json whole = Json::parse(machineText(*readMachine(name)));
    forEachMember(whole, Json::json_pointer(), [&](const Json::json_pointer &place, const Json &value) {
      if (!value.is_number())
        return;
      Json json = whole;
      for (const double factor : {1e3, 1e-3, 1e6, 1e-6, -1.0}) {
        if (value.is_number_integer() && factor > 1) // numbers of ranks, which have no unit
          continue;
        json[place] = value.get<double>() * factor;
        EXPECT_NE(errorOf(json.dump()), "ok") << name << place.to_string() << " times " << factor;
      }
      for (const Json &other : {Json("4"), Json(nullptr), Json(true), Json::array(), Json::object()}) {
        json[place] = other;
        const bool isShare = other == Json::object() && place.to_string().find("/efficiency/") != std::string::npos;
        EXPECT_THAT(errorOf(json.dump()), HasSubstr(isShare ? "" : place.back())) << name << place.to_string();
        EXPECT_NE(errorOf(json.dump()), "ok") << name << place.to_string() << " as " << other;
      }
    });
  }
}

TEST(MachineFile, NamesFieldValueAndRange) {
  EXPECT_EQ(errorWith("/device/bytes_per_s", 1e18), "error[usage]: m.json: device.bytes_per_s is 1e+18; it must be from 1e+08 to 1e+14 bytes a second");
  EXPECT_EQ(errorWith("/device/flops/bf16", 9e15), "error[usage]: m.json: device.flops.bf16 is 9e+15; it must be from 0.1 to 5000 times device.bytes_per_s, which is 1e+12; one of them has another unit");
  EXPECT_EQ(errorWith("/device/efficiency/f32", 1.5), "error[usage]: m.json: device.efficiency.f32.1 is 1.5; it must be from 0.001 to 1 of the peak");
  EXPECT_EQ(errorWith("/memory", "40"), "error[usage]: m.json: memory is 40 bytes; it must be from 1MiB to 64TiB, or \"unlimited\"");
  EXPECT_THAT(errorWith("/memory", 40), HasSubstr("memory is 40, which is no text with a unit"));
  EXPECT_THAT(errorWith("/memory", "40Gib"), HasSubstr("memory is \"40Gib\", which is no size of memory"));
  EXPECT_THAT(errorWith("/ranks_per_host", 0), HasSubstr("ranks_per_host is 0; it must be a whole number of at least 1, or \"all\""));
  EXPECT_THAT(errorWith("/ranks_per_host", 2.5), HasSubstr("ranks_per_host is 2.5; it must be a whole number"));
  EXPECT_THAT(errorWith("/ranks_per_host", 6), HasSubstr("links[0].ranks is 4; it must be a multiple or a divisor of ranks_per_host, which is 6"));
  EXPECT_THAT(errorWith("/hosts", -1), HasSubstr("hosts is -1"));
  EXPECT_THAT(errorWith("/hosts", 1), HasSubstr("differences[0].first_rank is 4; it must be below hosts * ranks_per_host, which is 4"));
  EXPECT_THAT(errorWith("/links/0/ranks", "all"), HasSubstr("links[0].ranks is \"all\"; it must be a number"));
  EXPECT_THAT(errorWith("/links/1/ranks", 8), HasSubstr("links[1].ranks is 8; it must be \"all\""));
  EXPECT_THAT(errorWith("/links/0/ranks", 1), HasSubstr("links[0].ranks is 1"));
  EXPECT_THAT(errorWith("/links/1/other_protocols", Json::array()), HasSubstr("links[1].other_protocols is a list of 0"));
  EXPECT_THAT(errorWith("/links", Json::array()), HasSubstr("links is a list of 0"));
  EXPECT_THAT(errorWith("/overlap_slowdown", 0.5), HasSubstr("overlap_slowdown is 0.5; it must be from 1 to 10"));
  EXPECT_THAT(errorWith("/differences/0/speed", 1000), HasSubstr("differences[0].speed is 1000"));
  EXPECT_THAT(errorWith("/name", ""), HasSubstr("name is empty"));
  EXPECT_THAT(errorWith("/name", "a\nb"), HasSubstr("name is no name"));
  EXPECT_THAT(errorWith("/device/flops/f33", 1e12), HasSubstr("device.flops.f33 is of no type of tensors"));
  EXPECT_THAT(errorWith("/device/efficiency/f32", Json{{"x", 0.5}}), HasSubstr("device.efficiency.f32.x is named after no size"));
  EXPECT_THAT(errorWith("/device/efficiency/f16", 0.5), HasSubstr("device.efficiency.f16 is of a type that device.flops does not have"));
}

// Links go from the innermost to the outermost.
TEST(MachineFile, RefusesLinksOutOfOrder) {
  Json json = Json::parse(good);
  Json pair = json["links"][0];
  pair["ranks"] = 2;
  json["links"].insert(json["links"].begin() + 1, pair);
  EXPECT_THAT(errorOf(json.dump()), HasSubstr("links[1].ranks is 2; it must be a multiple of the 4 of the link before it"));
  std::swap(json["links"][0], json["links"][1]);
  EXPECT_EQ(errorOf(json.dump()), "ok");
}

TEST(MachineFile, RefusesUnknownAndDoubledFields) {
  EXPECT_EQ(errorWith("/device/byte_per_s", 1e12), "error[usage]: m.json: device.byte_per_s is no field of a machine; is it 'bytes_per_s'?");
  EXPECT_THAT(errorWith("/links/0/colour", 1), HasSubstr("links[0].colour is no field of a machine; leave it out"));
  std::string twice = good;
  twice.insert(1, "\"memory\": \"1GiB\", ");
  EXPECT_THAT(errorOf(twice), HasSubstr("has the field 'memory' twice"));
}

// NaN and infinity are no JSON; a number beyond a double is refused with them.
TEST(MachineFile, RefusesWhatIsNoJson) {
  for (const char *number : {"NaN", "Infinity", "1e999", "-1e999", "0x10", ""}) {
    std::string text = good;
    text.replace(text.find("1.1"), 3, number);
    EXPECT_THAT(errorOf(text), HasSubstr("is not JSON")) << number;
  }
  EXPECT_THAT(errorOf(""), HasSubstr("is not JSON"));
  EXPECT_THAT(errorOf("[1]"), HasSubstr("is a list, not an object"));
  EXPECT_THAT(errorOf("{\"name\":\n 1,\n ]"), HasSubstr("is not JSON, from line 3 on"));
  EXPECT_THAT(errorOf(std::string(2 << 20, ' ')), HasSubstr("a machine takes at most 1048576"));
  EXPECT_THAT(errorOf(std::string(100000, '[')), HasSubstr("is not JSON"));
}

TEST(MachineFile, NamesMachinesAndFiles) {
  EXPECT_EQ(readMachine("a100").status().text(), "error[usage]: a100: is neither a file nor a machine that comes with hpc-opt; use a100-40g, a100-80g, h100, h200 or v100-32g, or the path of a machine file (docs/machines.md)");
  EXPECT_EQ(readMachine("/nowhere/m.json").status().kind(), ErrorKind::Io);
  TemporaryFolder folder;
  Expected<Machine> machine = readMachine(folder.write("m.json", good));
  ASSERT_TRUE(machine.ok()) << machine.status().text();
  EXPECT_EQ(machine->name, "two hosts");
}
