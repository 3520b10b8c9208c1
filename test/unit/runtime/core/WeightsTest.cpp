// Binding weights: only what a rank reads is checked, and another file may stand in for the plan's.
#include "runtime/core/Weights.h"
#include "runtime/backend/host/HostDevice.h"
#include "runtime/base/HalfFloat.h"
#include "runtime/core/SafeTensors.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace hpc;
using testing::HasSubstr;

namespace {

std::string safeTensors(const nlohmann::json &header, const std::string &data) {
  std::string text = header.dump(), file;
  for (int i = 0; i < 8; ++i)
    file += char(uint64_t(text.size()) >> (8 * i) & 255);
  return file + text + data;
}

nlohmann::json entry(const std::string &type, std::vector<int64_t> shape, int64_t begin, int64_t end) {
  return {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

/// The tensors of TinyPlan in another order.
std::string sameTensors(const TinyPlan &tiny, const std::string &file) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}, {"unused", entry("F8_E4M3", {3}, 0, 3)}};
  std::string data = "abc";
  for (size_t i = tiny.plan.weights.size(); i-- > 0;) {
    const plan::Weight &weight = tiny.plan.weights[i];
    header[weight.name] = entry("F32", weight.shape, int64_t(data.size()), int64_t(data.size()) + weight.bytes);
    data += file.substr(size_t(weight.offset), size_t(weight.bytes));
  }
  return safeTensors(header, data);
}

std::string sameTensors(const TinyPlan &tiny) { return sameTensors(tiny, tiny.file); }

/// Loads all weights of both stages and ranks; empty or the first error.
std::string loadAll(const TinyPlan &tiny, const std::string &replacement) {
  Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, replacement});
  if (!weights.ok())
    return weights.status().text();
  host::HostDevice device;
  for (const plan::Stage &stage : tiny.plan.stages)
    for (const plan::Binding &binding : stage.bindings)
      for (int64_t coordinate : {0, 1}) {
        std::vector<float> target(64, -1);
        Status status = weights->load(binding, stage.buffers[size_t(binding.buffer)], {coordinate, 0, 2}, device,
                                      reinterpret_cast<std::byte *>(target.data()));
        if (!status.ok())
          return status.text();
      }
  return "";
}

} // namespace

TEST(Weights, GathersTheSliceOfEachRank) {
  TinyPlan tiny;
  Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, ""});
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  host::HostDevice device;
  float target[24];
  ASSERT_TRUE(weights
                  ->load(tiny.plan.stages[0].bindings[0], tiny.plan.stages[0].buffers[0], {1, 0, 2}, device,
                         reinterpret_cast<std::byte *>(target))
                  .ok());
  for (int row = 0; row < 6; ++row)
    for (int column = 0; column < 4; ++column)
      EXPECT_EQ(target[row * 4 + column], column < 3 ? tiny.w1[size_t(row * 7 + 4 + column)] : 0);
}

// A buffer of 16 bits holds the rank's slice of an f32 weight, each number rounded to nearest even, zeros in the padding.
TEST(Weights, RoundsTo16BitsAsItLoads) {
  TinyPlan tiny;
  plan::Binding &binding = tiny.plan.stages[0].bindings[0];
  plan::Buffer &buffer = tiny.plan.stages[0].buffers[size_t(binding.buffer)];
  for (DType dtype : {DType::F16, DType::BF16}) {
    buffer.dtype = dtype;
    buffer.bytes = 6 * 4 * 2;
    Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, ""});
    ASSERT_TRUE(weights.ok()) << weights.status().text();
    host::HostDevice device;
    uint16_t target[24];
    ASSERT_TRUE(weights->load(binding, buffer, {1, 0, 2}, device, reinterpret_cast<std::byte *>(target)).ok());
    for (int row = 0; row < 6; ++row)
      for (int column = 0; column < 4; ++column) {
        float stored = column < 3 ? tiny.w1[size_t(row * 7 + 4 + column)] : 0;
        EXPECT_EQ(target[row * 4 + column], dtype == DType::F16 ? floatToHalf(stored) : floatToBfloat(stored));
      }
  }
}

// Two ranks cut the dim along which lines run, and yet have the scales of whole lines: the codes are those that one rank alone
// would have. Taken of a rank's own part, a scale would follow from the layout.
TEST(Weights, Int8HasTheScalesOfWholeLines) {
  TinyPlan tiny;
  plan::Binding &binding = tiny.plan.stages[0].bindings[1]; // W2 [7, 5], rows 0 to 3 and 4 to 6
  plan::Buffer &buffer = tiny.plan.stages[0].buffers[size_t(binding.buffer)];
  std::vector<float> scales(5, 0);
  for (size_t i = 0; i < 35; ++i)
    scales[i % 5] = std::max(scales[i % 5], std::abs(tiny.w2[i]) / 127.0f);
  auto load = [&](plan::Int8Form form, DType dtype, const plan::Slice &slice, int64_t coordinate, void *target) {
    plan::Binding bound{binding.buffer, slice, plan::Int8Weight{1, 0, form}, "", {}};
    buffer.dtype = dtype;
    buffer.bytes = byteSize(dtype);
    for (int64_t size : slice.box)
      buffer.bytes *= size;
    Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, ""});
    host::HostDevice device;
    Status status = weights->load(bound, buffer, {coordinate, 0, 2}, device, static_cast<std::byte *>(target));
    ASSERT_TRUE(status.ok()) << status.text();
  };
  for (int64_t coordinate : {0, 1}) {
    int8_t codes[20];
    float values[20], whole[5], part[3];
    uint16_t narrow[20];
    load(plan::Int8Form::Codes, DType::I8, binding.slice, coordinate, codes);
    load(plan::Int8Form::Values, DType::F32, binding.slice, coordinate, values);
    load(plan::Int8Form::Values, DType::BF16, binding.slice, coordinate, narrow);
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t row = coordinate * 4 + i / 5;
      const float scale = scales[size_t(i % 5)], stored = row < 7 ? tiny.w2[size_t(row * 5 + i % 5)] : 0;
      ASSERT_EQ(codes[i], std::nearbyint(stored / scale)) << i; // zeros in the padding
      ASSERT_EQ(values[i], float(codes[i]) * scale);
      ASSERT_EQ(narrow[i], floatToBfloat(values[i]));
    }
    load(plan::Int8Form::Scales, DType::F32, {{5}, {0}, {5}, {5}}, coordinate, whole);
    EXPECT_EQ(std::vector<float>(whole, whole + 5), scales);
    load(plan::Int8Form::Scales, DType::F32, {{5}, {TinyPlan::byRank(0, 3)}, {TinyPlan::byRank(3, 2)}, {3}}, coordinate, part);
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(part[i], coordinate * 3 + i < 5 ? scales[size_t(coordinate * 3 + i)] : 0);
  }
}

// A line is read whole, so damage and numbers without an int8 are found in what the rank itself does not hold.
TEST(Weights, Int8ReadsWholeLines) {
  TinyPlan tiny;
  tiny.plan.stages[0].bindings[1].start = plan::Int8Weight{1, 0, plan::Int8Form::Codes};
  tiny.plan.stages[0].buffers[size_t(tiny.plan.stages[0].bindings[1].buffer)].dtype = DType::I8;
  tiny.plan.stages[0].buffers[size_t(tiny.plan.stages[0].bindings[1].buffer)].bytes = 20;
  auto load = [&](const std::string &file) {
    tiny.folder.write("weights.bin", file);
    Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, ""});
    host::HostDevice device;
    int8_t target[20];
    const plan::Binding &binding = tiny.plan.stages[0].bindings[1];
    return weights
        ->load(binding, tiny.plan.stages[0].buffers[size_t(binding.buffer)], {0, 0, 2}, device, reinterpret_cast<std::byte *>(target))
        .text();
  };
  std::string file = tiny.file;
  file[size_t(tiny.plan.weights[1].offset) + 33 * 4] ^= 1; // row 6
  EXPECT_THAT(load(file), HasSubstr("weight 'W2' of '" + tiny.folder / "weights.bin" + "': bytes 0 to 139 (chunk 0) are not those"));
  tiny.plan.weights[1].hashes.clear();
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(file.data() + tiny.plan.weights[1].offset + 33 * 4, &infinity, 4);
  Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, tiny.folder.write("w.safetensors", sameTensors(tiny, file))});
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  EXPECT_THAT(weights->makeScales(tiny.plan.stages[0].bindings[1]).text(),
              HasSubstr("error[model]: weight 'W2' has no int8: its element [6, 3] is not finite; compile without --weights=int8"));
}

TEST(Weights, ChecksOnlyTheChunksThatARankReads) {
  TinyPlan tiny;
  // One tensor of 3 MiB and a bit, of which each rank reads half the rows.
  std::string data(size_t(3 << 20) + 64, 'w');
  int64_t rows = int64_t(data.size()) / 64;
  plan::Weight weight;
  weight.name = "big";
  weight.shape = {rows, 16};
  weight.file = 0;
  weight.bytes = int64_t(data.size());
  weight.hashes = hashChunks(data.data(), weight.bytes);
  tiny.plan.weights = {weight};
  int64_t half = (rows + 1) / 2;
  plan::Binding binding{
      0,
      {{rows, 16}, {TinyPlan::byRank(0, half), 0}, {TinyPlan::byRank(half, rows - half), 16}, {half, 16}},
      plan::StoredWeight{0},
      "",
      {}};
  plan::Buffer buffer;
  buffer.bytes = half * 64;
  auto load = [&](int64_t coordinate) {
    Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, ""});
    host::HostDevice device;
    std::vector<float> target(size_t(half) * 16);
    return weights->load(binding, buffer, {coordinate, 0, 2}, device, reinterpret_cast<std::byte *>(target.data()));
  };
  data[(2 << 20) + 5] = 'x';
  tiny.folder.write("weights.bin", data);
  EXPECT_TRUE(load(0).ok());
  EXPECT_THAT(load(1).text(), HasSubstr("error[io]: weight 'big' of '" + tiny.folder / "weights.bin" +
                                        "': bytes 2097152 to 3145727 (chunk 2) are not those"));
}

TEST(Weights, InlineTensorsAreCheckedToo) {
  TinyPlan tiny;
  for (plan::Weight &weight : tiny.plan.weights) {
    weight.inlineData = tiny.file.substr(size_t(weight.offset), size_t(weight.bytes));
    weight.file = -1;
  }
  tiny.plan.files.clear();
  EXPECT_EQ(loadAll(tiny, ""), "");
  tiny.plan.weights[2].inlineData[0] ^= 1;
  EXPECT_THAT(loadAll(tiny, ""), HasSubstr("weight 'W3' of 'the plan'"));
}

TEST(Weights, MissingOrShortFiles) {
  TinyPlan tiny;
  tiny.folder.write("weights.bin", tiny.file.substr(0, tiny.file.size() - 1));
  EXPECT_THAT(loadAll(tiny, ""), HasSubstr("weight 'bias' needs bytes"));
  std::filesystem::remove(tiny.folder / "weights.bin");
  EXPECT_THAT(loadAll(tiny, ""), HasSubstr("--weights=FILE"));
}

TEST(Weights, AnotherFileOfTheSameBytes) {
  TinyPlan tiny;
  std::string other = tiny.folder.write("moved.onnx", tiny.file);
  std::filesystem::remove(tiny.folder / "weights.bin");
  EXPECT_EQ(loadAll(tiny, other), "");
  // With two files it must be clear which one is meant.
  tiny.plan.files.push_back({"weights.data"});
  EXPECT_THAT(loadAll(tiny, other), HasSubstr("error[usage]: --weights=" + other +
                                              ": the plan reads several files (weights.bin, weights.data)"));
  tiny.folder.write("weights.bin", "");
  tiny.folder.write("weights.data", "");
  std::filesystem::create_directory(tiny.folder / "sub");
  EXPECT_EQ(loadAll(tiny, tiny.folder.write("sub/weights.bin", tiny.file)), "");
  tiny.folder.write("sub/weights.data", "");
  tiny.folder.write("weights.bin", "not these");
  EXPECT_EQ(loadAll(tiny, tiny.folder / "sub"), "");
}

// Nothing says whether a file at the place of the absent one is meant, so it is not taken without being named.
TEST(Weights, APlanWithoutContentNeedsThemNamed) {
  TinyPlan tiny;
  for (plan::Weight &weight : tiny.plan.weights)
    weight.hashes.clear();
  EXPECT_THAT(
      loadAll(tiny, ""),
      HasSubstr("error[usage]: the plan was compiled without weights: 'W1' (6x7 of f32) and 3 more must come by "
                "--weights: a .safetensors file"));
  // Bytes without names prove nothing, wherever they lie.
  EXPECT_THAT(loadAll(tiny, tiny.folder / "weights.bin"),
              HasSubstr("error[usage]: --weights=" + tiny.folder / "weights.bin" + ": '" + tiny.folder / "weights.bin" + "' has no tensors with names"));
  EXPECT_THAT(loadAll(tiny, tiny.folder.path), HasSubstr("the folder has no weights: neither a safetensors file"));
  std::string path = tiny.folder.write("w.safetensors", sameTensors(tiny));
  EXPECT_EQ(loadAll(tiny, path), "");
  tiny.plan.weights[1].dtype = DType::I32;
  EXPECT_THAT(loadAll(tiny, path), HasSubstr("tensor 'W2' is 7x5 of f32, the plan needs 7x5 of i32"));
}

TEST(Weights, SafeTensorsByName) {
  TinyPlan tiny;
  std::filesystem::remove(tiny.folder / "weights.bin");
  std::string good = sameTensors(tiny);
  std::string path = tiny.folder.write("w.safetensors", good);
  EXPECT_EQ(loadAll(tiny, path), "");
  good.back() = char(good.back() ^ 1);
  tiny.folder.write("w.safetensors", good);
  EXPECT_THAT(loadAll(tiny, path), HasSubstr("weight 'W1' of '" + path + "'"));
  tiny.plan.weights[1].name = "other";
  EXPECT_THAT(loadAll(tiny, path), HasSubstr("has no tensor 'other' that the plan needs (7x5 of f32)"));
  tiny.plan.weights[1].name = "W2";
  tiny.plan.weights[1].shape = {5, 7};
  EXPECT_THAT(loadAll(tiny, path), HasSubstr("tensor 'W2' is 7x5 of f32, the plan needs 5x7"));
}

TEST(SafeTensors, MalformedHeadersAreErrors) {
  TemporaryFolder folder;
  auto read = [&](const std::string &content) {
    Expected<MappedFile> file = MappedFile::open(folder.write("w.safetensors", content));
    return readSafeTensors(*file).status();
  };
  EXPECT_TRUE(read(safeTensors({{"a", entry("F32", {2}, 0, 8)}}, std::string(8, 'x'))).ok());
  EXPECT_TRUE(read(safeTensors({{"a", entry("F32", {0, 9}, 0, 0)}}, "")).ok());
  EXPECT_FALSE(read("short").ok());
  EXPECT_FALSE(read(std::string(8, '\xff') + "{}").ok());
  EXPECT_FALSE(read(std::string(8, '\0')).ok());
  EXPECT_FALSE(read(safeTensors(nlohmann::json::array(), "")).ok());
  for (const nlohmann::json &bad : std::vector<nlohmann::json>{
           {{"a", 3}},
           {{"a", {{"dtype", "F32"}}}},
           {{"a", entry("F32", {2}, 0, 4)}},
           {{"a", entry("F32", {2}, 4, 12)}},
           {{"a", entry("F32", {2}, 8, 0)}},
           {{"a", entry("F32", {-2}, 0, 8)}},
           {{"a", entry("F32", {int64_t(1) << 61, 8}, 0, 0)}},
           {{"a", {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {0.0, 8.0}}}}},
           {{"a", {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {0, 18446744073709551615ull}}}}},
           {{"a", {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {8}}}}},
           {{"a", {{"dtype", 7}, {"shape", {2}}, {"data_offsets", {0, 8}}}}}})
    EXPECT_THAT(read(safeTensors(bad, std::string(8, 'x'))).text(), HasSubstr("tensor 'a' ")) << bad.dump();
  auto withHeader = [](const std::string &header, const std::string &data) {
    std::string length(8, '\0');
    for (int i = 0; i < 4; ++i)
      length[size_t(i)] = char(header.size() >> (8 * i));
    return length + header + data;
  };
  const std::string scalar = R"({"dtype":"U8","shape":[],"data_offsets":[0,1]})";
  EXPECT_TRUE(read(withHeader("{\"a\":" + scalar + ",\"__metadata__\":{\"x\":\"y\"}}", "x")).ok());
  EXPECT_THAT(read(withHeader("{\"a\":" + scalar + ",\"__metadata__\":{\"x\":[{}]}}", "x")).text(), HasSubstr("is not an object of texts"));
  EXPECT_THAT(read(withHeader("{\"a\":" + scalar + ",\"a\":" + scalar + "}", "x")).text(), HasSubstr("tensor 'a' is there twice"));
  for (const char *shape : {"[[]]", "[{}]", "{}", "[null]", "[\"2\"]", "7", "[1.5]"})
    EXPECT_THAT(read(withHeader(std::string(R"({"a":{"dtype":"U8","data_offsets":[0,1],"shape":)") + shape + "}}", "x")).text(),
                HasSubstr("tensor 'a' has a shape or data_offsets that are not lists of numbers")) << shape;
  // Every cut and every flipped byte of a good file: an error or a tensor within the file, never a crash.
  std::string good = safeTensors({{"a", entry("F32", {2}, 0, 8)}}, std::string(8, 'x'));
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(read(good.substr(0, length)).ok()) << length;
  for (size_t at = 0; at < good.size(); ++at)
    for (int mask : {1, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = char(bad[at] ^ mask);
      (void)read(bad);
    }
  EXPECT_FALSE(read(safeTensors({}, "").substr(0, 8) + std::string(100000, '[')).ok());
}

// The rules of the format, each broken alone. The library itself (safetensors 0.8) refuses these files, too.
TEST(SafeTensors, TensorsFillTheDataOneAfterTheOther) {
  TemporaryFolder folder;
  auto read = [&](const nlohmann::json &header, size_t bytes) {
    Expected<MappedFile> file = MappedFile::open(folder.write("w.safetensors", safeTensors(header, std::string(bytes, 'x'))));
    Expected<NamedTensorMap> tensors = readSafeTensors(*file);
    return tensors.ok() ? "" : tensors.status().text();
  };
  EXPECT_EQ(read({{"a", entry("F32", {2}, 8, 16)}, {"b", entry("F32", {2}, 0, 8)}, {"none", entry("I64", {0}, 8, 8)}}, 16), "");
  EXPECT_THAT(read({{"a", entry("F32", {2}, 0, 8)}, {"b", entry("F32", {2}, 4, 12)}}, 12),
              HasSubstr("error[io]: '" + folder / "w.safetensors" + "': tensors 'a' and 'b' overlap in byte 4 of the data"));
  EXPECT_THAT(read({{"a", entry("F32", {2}, 0, 8)}, {"b", entry("F32", {2}, 0, 8)}}, 8), HasSubstr("overlap in byte 0"));
  EXPECT_THAT(read({{"a", entry("F32", {2}, 0, 8)}, {"b", entry("F32", {2}, 12, 20)}}, 20),
              HasSubstr("bytes 8 to 11 of the data, before tensor 'b', belong to no tensor"));
  EXPECT_THAT(read({{"a", entry("F32", {2}, 4, 12)}}, 12), HasSubstr("bytes 0 to 3 of the data"));
  EXPECT_THAT(read({{"a", entry("F32", {2}, 0, 8)}}, 9), HasSubstr("the last 1 bytes of the file belong to no tensor"));
  EXPECT_THAT(read(nlohmann::json::object(), 1), HasSubstr("the last 1 bytes of the file belong to no tensor"));
  EXPECT_THAT(read({{"a", entry("F32", {2}, 4, 4)}, {"b", entry("F32", {2}, 0, 8)}}, 8), HasSubstr("do not fit its shape"));
}

TEST(SafeTensors, TypesOfTheFormatAndNoOthers) {
  TemporaryFolder folder;
  auto read = [&](const std::string &type, std::vector<int64_t> shape, int64_t bytes) {
    Expected<MappedFile> file =
        MappedFile::open(folder.write("w.safetensors", safeTensors({{"a", entry(type, shape, 0, bytes)}}, std::string(size_t(bytes), 'x'))));
    Expected<NamedTensorMap> tensors = readSafeTensors(*file);
    return tensors.ok() ? "" : tensors.status().text();
  };
  for (auto [type, bytes] : {std::pair("F8_E5M2", 6), {"F8_E4M3", 6}, {"F8_E8M0", 6}, {"C64", 48}, {"BOOL", 6}, {"BF16", 12}, {"F4", 3}})
    EXPECT_EQ(read(type, {2, 3}, bytes), "") << type;
  EXPECT_EQ(read("F6_E2M3", {4}, 3), "");
  EXPECT_THAT(read("F4", {3}, 2), HasSubstr("do not fit its shape")); // ends within a byte
  EXPECT_THAT(read("F8_E4M3", {2, 3}, 12), HasSubstr("do not fit its shape"));
  EXPECT_THAT(read("FLOAT", {2}, 8), HasSubstr("tensor 'a' has dtype 'FLOAT', which the format has not"));
}

TEST(SafeTensors, HeadersThatAreTooLong) {
  TemporaryFolder folder;
  for (auto [top, text] : {std::pair('\x80', "9223372036854775808"), {'\x7f', "9151314442816847872"}}) {
    Expected<MappedFile> file = MappedFile::open(folder.write("w.safetensors", std::string(7, '\0') + top + "{\"a\":1}"));
    EXPECT_THAT(readSafeTensors(*file).status().text(), HasSubstr(std::string("its header should take ") + text + " bytes"));
  }
}

// Numbers of a narrower type are the same numbers; others are refused, all that is wrong at once, with the nearest names.
TEST(Weights, NarrowerTypesAreWidened) {
  TinyPlan tiny;
  std::string halves, data;
  for (const std::vector<float> *values : {&tiny.w1, &tiny.w2, &tiny.w3, &tiny.bias})
    for (float value : *values) { // multiples of 1/4 below 2: exact in either
      const uint16_t half = floatToHalf(value);
      halves.append(reinterpret_cast<const char *>(&half), 2);
    }
  nlohmann::json header;
  int64_t at = 0;
  for (plan::Weight &weight : tiny.plan.weights) {
    header[weight.name] = entry("F16", weight.shape, at, at + weight.bytes / 2);
    at += weight.bytes / 2;
  }
  const std::string path = tiny.folder.write("half.safetensors", safeTensors(header, halves));
  EXPECT_EQ(loadAll(tiny, path), ""); // the plan's hashes are of the widened numbers
  for (plan::Weight &weight : tiny.plan.weights)
    weight.hashes.clear();
  Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, path});
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  EXPECT_THAT(weights->notes(), testing::Contains(HasSubstr("4 tensors of narrower types widened")));
  host::HostDevice device;
  float target[24];
  ASSERT_TRUE(weights
                  ->load(tiny.plan.stages[0].bindings[0], tiny.plan.stages[0].buffers[0], {1, 0, 2}, device,
                         reinterpret_cast<std::byte *>(target))
                  .ok());
  for (int row = 0; row < 6; ++row)
    for (int column = 0; column < 4; ++column)
      EXPECT_EQ(target[row * 4 + column], column < 3 ? tiny.w1[size_t(row * 7 + 4 + column)] : 0);
}

TEST(Weights, AllThatDoesNotMatchIsOneError) {
  TinyPlan tiny;
  std::filesystem::remove(tiny.folder / "weights.bin");
  for (plan::Weight &weight : tiny.plan.weights)
    weight.hashes.clear();
  nlohmann::json header = {{"W1", entry("F64", {6, 7}, 0, 336)}, {"W2", entry("F32", {5, 7}, 336, 476)}, {"W33", entry("F32", {5, 7}, 476, 616)}};
  const std::string path = tiny.folder.write("w.safetensors", safeTensors(header, std::string(616, 'x')));
  const std::string error = loadAll(tiny, path);
  EXPECT_THAT(error, HasSubstr("error[io]: --weights=" + path + ": '" + path + "' does not have what the plan needs, in 4 of 4 tensors\n"));
  EXPECT_THAT(error, HasSubstr("\n  tensor 'W1' is 6x7 of f64, the plan needs 6x7 of f32: convert the file to f32\n"));
  EXPECT_THAT(error, HasSubstr("\n  tensor 'W2' is 5x7 of f32, the plan needs 7x5 of f32: it is stored transposed\n"));
  EXPECT_THAT(error, HasSubstr("\n  has no tensor 'W3' that the plan needs (5x7 of f32); did you mean 'W1', 'W2' or 'W33'?\n"));
  EXPECT_THAT(error, HasSubstr("\n  has no tensor 'bias' that the plan needs (7 of f32)\n"));
}

// A parameter of the plan that the file has under two names, with two contents: neither is silently the right one.
TEST(Weights, TiedNamesThatDifferAreRefused) {
  TinyPlan tiny;
  tiny.plan.weights.resize(1);
  tiny.plan.weights[0].hashes.clear();
  tiny.plan.weights[0].stateNames = {"W1", "head"};
  auto open = [&](char second) {
    const std::string path =
        tiny.folder.write("w.safetensors", safeTensors({{"W1", entry("F32", {6, 7}, 0, 168)}, {"head", entry("F32", {6, 7}, 168, 336)}},
                                                       std::string(168, 'x') + std::string(168, second)));
    return Weights::open(tiny.plan, {tiny.folder.path, path}).status().text();
  };
  EXPECT_EQ(open('x'), "ok");
  EXPECT_THAT(open('y'), HasSubstr("tensors 'W1' and 'head' differ, and are one in the plan"));
}

// What an exporter made of a tensor: turned where the shapes say so, refused where they do not.
TEST(Weights, MadeOfATransposedTensor) {
  TinyPlan tiny;
  plan::Weight &weight = tiny.plan.weights[0]; // [6, 7]
  tiny.plan.weights.resize(1);
  weight.hashes.clear();
  weight.name = "val_12";
  weight.stateNames = {"head.weight"};
  weight.isMade = true;
  std::string turned;
  for (size_t column = 0; column < 7; ++column)
    for (size_t row = 0; row < 6; ++row)
      turned.append(reinterpret_cast<const char *>(&tiny.w1[row * 7 + column]), 4);
  std::string path = tiny.folder.write("w.safetensors", safeTensors({{"head.weight", entry("F32", {7, 6}, 0, 168)}}, turned));
  Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, path});
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  host::HostDevice device;
  float target[24];
  ASSERT_TRUE(weights
                  ->load(tiny.plan.stages[0].bindings[0], tiny.plan.stages[0].buffers[0], {0, 0, 2}, device,
                         reinterpret_cast<std::byte *>(target))
                  .ok());
  for (size_t row = 0; row < 6; ++row)
    for (size_t column = 0; column < 4; ++column)
      EXPECT_EQ(target[row * 4 + column], tiny.w1[row * 7 + column]);
  weight.shape = {6, 6};
  weight.bytes = 144;
  path = tiny.folder.write("w.safetensors", safeTensors({{"head.weight", entry("F32", {6, 6}, 0, 144)}}, std::string(144, 'x')));
  EXPECT_THAT(Weights::open(tiny.plan, {tiny.folder.path, path}).status().text(),
              HasSubstr("has no tensor 'val_12', which the exporter derived from 'head.weight' in an unknown way (a square matrix may be transposed)"));
}

// Processes compare it where the plan has no hashes: a byte that differs in a small tensor, at an end of a large one.
TEST(Weights, TheFingerprintTellsTwoFilesApart) {
  TinyPlan tiny;
  auto fingerprint = [&](const std::string &content) {
    tiny.folder.write("other.safetensors", sameTensors(tiny, content));
    Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, tiny.folder / "other.safetensors"});
    EXPECT_TRUE(weights.ok()) << weights.status().text();
    return weights->fingerprint();
  };
  EXPECT_EQ(fingerprint(tiny.file), 0u); // the plan's own hashes tell more
  plan::Weight &first = tiny.plan.weights[0];
  first.hashes.clear();
  const uint64_t wanted = fingerprint(tiny.file);
  EXPECT_NE(wanted, 0u);
  EXPECT_EQ(fingerprint(tiny.file), wanted);
  std::string changed = tiny.file;
  changed[size_t(first.offset + first.bytes - 1)] ^= 1;
  EXPECT_NE(fingerprint(changed), wanted);
  changed = tiny.file;
  changed[size_t(tiny.plan.weights[1].offset)] ^= 1; // of a tensor that has hashes
  EXPECT_EQ(fingerprint(changed), wanted);
  std::string large(5 << 20, 'x');
  first.offset = 0;
  first.bytes = int64_t(large.size()) - 4;
  first.shape = {first.bytes / 4};
  tiny.plan.weights.resize(1);
  const uint64_t wantedLarge = fingerprint(large);
  for (size_t at : {size_t(0), size_t(first.bytes - 1)}) {
    changed = large;
    changed[at] ^= 1;
    EXPECT_NE(fingerprint(changed), wantedLarge) << at;
  }
}
