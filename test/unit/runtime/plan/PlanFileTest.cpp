// Plan files: what is written is read back, the same plan gives the same bytes, and no damaged file gets past the
// reader as something that the checks cannot deal with.
#include "runtime/plan/PlanFile.h"

#include "SamplePlan.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/PlanBody.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanPrinter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <unistd.h>

using namespace hpc;
using namespace hpc::plan;
using testing::HasSubstr;

namespace {

/// The sample, plus the fields that it leaves at their defaults: every field of Plan.h has a value of its own.
Plan fullPlan() {
  Plan plan = test::samplePlan();
  plan.files = {{"weights.bin"}, {"/abs/other.bin"}};
  Weight inFile;
  inFile.name = "big";
  inFile.dtype = DType::BF16;
  inFile.shape = {3, 1 << 19};
  inFile.file = 1;
  inFile.offset = 4096;
  inFile.bytes = 3 << 20;
  inFile.hashes = {1, ~uint64_t(0), 3};
  plan.weights.push_back(inFile);
  Stage &stage = plan.stages[1];
  stage.buffers.push_back(test::buffer("state", Lifetime::Session, {4, 4}, 128));
  stage.bindings.push_back({5, test::cutInTwo({4, 7}, 1, 4), Number{0.5}, "adam.m/w2", {4, 7}});
  stage.buffers.push_back(test::buffer("cache", Lifetime::Session, {4}, 192));
  stage.bindings.push_back({6, test::cutInTwo({4}, 0, 4), Nothing{}, "", {}});
  stage.bindings[2].slice.start[0] = 0;
  stage.bindings[2].slice.extent[0] = 4;
  stage.sessionBytes = 256;
  stage.buffers.push_back(test::buffer("offloaded", Lifetime::Step, {4}, 64));
  stage.buffers.back().space = Space::Host;
  stage.hostBytes = 128;
  plan.inputs.push_back({"lr", DType::F32, {}, true});
  plan.inputs.push_back({"ids", DType::I64, {4, 3}, false, false, {{{0, 1}, {4, 3}, -7, 7, -100, "wte"}}});
  plan.training = {{"optimizer", "adamw"}, {"betas", "0.9,0.95"}};
  plan.modules.push_back({"ptx", {"tensor"}, 80, "relu in ptx", {"relu"}});
  stage.programs[1].instructions[1].action = [] {
    Gemm gemm = test::gemm(2, 0, 1, 1, test::table({4, 3}), test::table({3, 2, 1, 0}), 3, 3, 4);
    gemm.a.transpose = gemm.b.transpose = gemm.b.packed = true;
    gemm.a.offset = test::table({8, 0});
    gemm.batch = {2, 1};
    gemm.a.stride = {3, 1};
    gemm.b.stride = {2, 5};
    gemm.c.stride = {4, 7};
    gemm.accumulate = DType::F64;
    gemm.addToC = test::table({0, 0, 1, 1});
    return gemm;
  }();
  stage.programs[1].instructions.push_back({test::biasedKernel(), "biased"});
  test::action<Kernel>(plan, 1, 1, test::stage1::Relu).launch = {128, test::table({256, 64}), 4096};
  test::action<Kernel>(plan, 1, 1, test::stage1::Relu).attention = test::attention();
  test::action<Kernel>(plan, 1, 1, test::stage1::Relu).flops = 99;
  stage.programs[1].instructions[test::stage1::Relu].part = Part::Repeated;
  Collective permute;
  permute.kind = CollectiveKind::Permute;
  permute.reduce = ReduceKind::Prod;
  permute.axes = {"tp"};
  permute.count = 3;
  permute.src = {5, 4};
  permute.dst = {5, 32};
  permute.source = test::table({1, 0});
  stage.programs[1].instructions.push_back({Accumulate{{6, 0}, {5, 16}, DType::F32, 4, test::table({0, 1})}, "sum"});
  permute.request = 1;
  stage.requests.push_back(1);
  stage.programs[1].instructions.push_back({permute, "permute", test::table({0, 0, 1, 1})});
  stage.programs.push_back({ProgramKind::WeightGradient, 4, {{Wait{1}, ""}}});
  return plan;
}

std::string errorOf(const std::string &bytes) {
  Expected<Plan> plan = parsePlan(bytes, "some.plan");
  return plan.ok() ? "ok" : plan.status().text();
}

// Rewrites change places by one list and learn what is touched from another.
TEST(Access, PlacesStandByTheNumbersOfOperands) {
  Plan plan = fullPlan();
  std::set<size_t> kinds;
  for (Stage &stage : plan.stages)
    for (Program &program : stage.programs)
      for (Instruction &instruction : program.instructions) {
        kinds.insert(instruction.action.index());
        std::vector<Ref *> places = placesOf(instruction.action);
        std::set<size_t> touched;
        for (const BufferAccess &access : accessesOf(plan, instruction)) {
          ASSERT_LT(size_t(access.operand), places.size());
          EXPECT_EQ(access.ref.buffer, places[size_t(access.operand)]->buffer);
          EXPECT_EQ(access.ref.byteOffset, places[size_t(access.operand)]->byteOffset);
          touched.insert(size_t(access.operand));
        }
        EXPECT_EQ(touched.size(), places.size()) << actionName(instruction.action);
      }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Action>);
}

TEST(PlanFile, RoundTripKeepsEveryField) {
  Plan plan = fullPlan();
  std::string bytes = serializePlan(plan);
  Expected<Plan> again = parsePlan(bytes, "some.plan");
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(serializePlan(*again), bytes);
  // Equal bytes would also come of a field that both directions forget, so compare through the printers too.
  EXPECT_EQ(printPlan(*again, staticFacts(*again)), printPlan(plan, staticFacts(plan)));
  EXPECT_EQ(printPlanJson(*again, staticFacts(*again)), printPlanJson(plan, staticFacts(plan)));
  const Weight &weight = again->weights[3];
  EXPECT_EQ(weight.file, 1);
  EXPECT_EQ(weight.offset, 4096);
  EXPECT_EQ(weight.hashes, plan.weights[3].hashes);
  EXPECT_EQ(again->weights[0].inlineData, plan.weights[0].inlineData);
  EXPECT_EQ(again->files[1].path, "/abs/other.bin");
  EXPECT_EQ(again->modules[0].bytes, plan.modules[0].bytes);
  EXPECT_EQ(again->stages[1].programs[1].instructions[1].when.values, std::vector<int64_t>{1});
  const auto &gemm = std::get<Gemm>(again->stages[1].programs[1].instructions[1].action);
  EXPECT_EQ(gemm.accumulate, DType::F64);
  EXPECT_TRUE(gemm.b.packed);
  EXPECT_EQ(again->stages[1].requests, (std::vector<int32_t>{2, 1}));
  EXPECT_THAT(printPlan(plan, staticFacts(plan)),
              HasSubstr("attention of 1 x 1 heads in 1 groups, 2 queries, 2 keys, channels 2 and 2, scale 0.125, causal from 3, "
                        "guarded, query f32 in argument 0 at 0 by 0 0 2 1, key f32 in argument 0 at 0 by 0 0 2 1, value f32 in "
                        "argument 0 at 0 by 0 0 2 1, bias f32 in argument 0 at 1 by 0 0 0 1, result f32 in argument 1 at 0 by 0 0 2 1, 99 flops"));
  EXPECT_THAT(printPlan(plan, staticFacts(plan)), HasSubstr("99 flops, again  # "));
  EXPECT_THAT(printPlan(plan, staticFacts(plan)),
              HasSubstr("rows 2, epilogue bias and gelu of argument 0 + argument 1"));
}

// A stride or padding that were forgotten would make other windows of the same image.
TEST(PlanFile, WindowsOfAnImage) {
  Plan plan = test::samplePlan();
  auto &gemm = test::action<Gemm>(plan, 0, 0, test::stage0::GemmH);
  gemm.b.ld = 0;
  gemm.windows = Windows{1, {2, 4}, {1, 3}, {2, 3}, {3, 1}, {1, 2}, {4, 5}};
  const std::string bytes = serializePlan(plan);
  Expected<Plan> again = parsePlan(bytes, "some.plan");
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(serializePlan(*again), bytes);
  EXPECT_EQ(test::action<Gemm>(*again, 0, 0, test::stage0::GemmH).windows, gemm.windows);
  EXPECT_THAT(printPlan(plan, staticFacts(plan)),
              HasSubstr("windows [1, 3] at [2, 3] of 1 x [2, 4], strides [3, 1], dilations [1, 2], low [4, 5]"));
}

// A form that were forgotten by the file would be read as another one: codes as scales.
TEST(PlanFile, FormsOfInt8Weights) {
  for (Int8Form form : {Int8Form::Codes, Int8Form::Scales, Int8Form::Values})
    for (int32_t along : {0, 1}) {
      Plan plan = test::samplePlan();
      Binding &binding = plan.stages[0].bindings[0];
      Buffer &buffer = plan.stages[0].buffers[size_t(binding.buffer)];
      binding.start = Int8Weight{0, along, form};
      if (form == Int8Form::Codes)
        test::holdInInt8(plan, along);
      if (form == Int8Form::Scales) {
        const int64_t lines = plan.weights[0].shape[size_t(1 - along)];
        binding.slice = {{lines}, {0}, {lines}, {lines}};
        buffer.box = {lines};
        buffer.bytes = 4 * lines;
        plan.stages[0].programs[0].instructions.clear();
      }
      std::string bytes = serializePlan(plan);
      Expected<Plan> again = parsePlan(bytes, "some.plan");
      ASSERT_TRUE(again.ok()) << again.status().text();
      EXPECT_EQ(serializePlan(*again), bytes);
      const auto &int8 = std::get<Int8Weight>(again->stages[0].bindings[0].start);
      EXPECT_EQ(int8.form, form);
      EXPECT_EQ(int8.along, along);
      EXPECT_THAT(printPlanJson(*again, staticFacts(*again)),
                  HasSubstr(std::string("\"int8\": \"") + (form == Int8Form::Codes ? "codes" : form == Int8Form::Scales ? "scales" : "values")));
    }
}

TEST(PlanFile, WritesWholeFiles) {
  std::string path = testing::TempDir() + "/plan-file-test-" + std::to_string(::getpid()) + ".plan";
  ASSERT_TRUE(writePlan(test::samplePlan(), path).ok());
  Expected<Plan> plan = readPlan(path);
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ(plan->model, "sample");
  std::remove(path.c_str());
  EXPECT_EQ(readPlan(path).status().kind(), ErrorKind::Io);
  EXPECT_EQ(writePlan(*plan, "/no/such/folder/x.plan").kind(), ErrorKind::Io);
}

TEST(PlanFile, OtherFilesAreNotPlans) {
  EXPECT_EQ(errorOf(""), "error[plan]: some.plan: is empty, not a plan");
  EXPECT_EQ(errorOf("\x01\x02\x03"),
            "error[plan]: some.plan: is not a plan: it does not begin with the tag 'hpc-plan'; hpc-opt makes plans");
  EXPECT_EQ(errorOf("\x93NUMPY\x01"), "error[plan]: some.plan: is not a plan: it does not begin with the tag 'hpc-plan': it is a NumPy array "
                                       "(.npy); it holds arrays, which hpc-run PLAN takes by --input or --data; hpc-opt makes plans");
}

TEST(PlanFile, AnotherMajorVersionIsRefused) {
  std::string bytes = serializePlan(test::samplePlan());
  ASSERT_EQ(bytes[10], '\x10'); // the tag of `major`
  bytes[11] = 9;
  EXPECT_EQ(errorOf(bytes), "error[plan]: some.plan: is a plan of version 9.8"
                                ", this program reads versions 2.8 to 4.x; compile the model again with the hpc-opt that belongs to it");
}

// A reader of 2.x would pass an operand's offset over, and multiply other numbers.
TEST(PlanFile, OffsetsOfOperandsAreOfVersion3) {
  Plan plan = test::samplePlan();
  EXPECT_EQ(serializePlan(plan).substr(10, 2), "\x10\x02");
  plan.stages[1].programs[1].instructions[1].action = [] {
    Gemm gemm = test::gemm(2, 0, 1, 1, test::table({4, 3}), test::table({3, 2, 1, 0}), 3, 3, 4);
    gemm.b.offset = test::table({0, 8});
    return gemm;
  }();
  EXPECT_EQ(serializePlan(plan).substr(10, 2), "\x10\x03");
  EXPECT_TRUE(versionOf(plan) == offsetsVersion);
}

// A reader of 3.x would let every micro-batch see the rows of the first.
TEST(PlanFile, StridesOfMicroBatchesAreOfVersion4) {
  Plan plan = test::samplePlan();
  std::get<Gemm>(plan.stages[1].programs[1].instructions[1].action).b.place.microBatchStride = 4;
  EXPECT_EQ(serializePlan(plan).substr(10, 2), "\x10\x04");
  EXPECT_TRUE(versionOf(plan) == newestVersion);
}

// Nobody has such plans, and what they lack would have to be guessed.
TEST(PlanFile, OlderVersionsAreRefused) {
  const std::string body = *openEnvelope(serializePlan(test::samplePlan()), "x");
  for (int minor : {0, 1, 4, 5, 6, 7})
    EXPECT_EQ(errorOf(sealEnvelope(body, {2, minor})),
              "error[plan]: some.plan: is a plan of version 2." + std::to_string(minor) +
                  ", this program reads versions 2.8 to 4.x; compile the model again");
  // Refused for being old and not for what a reader makes of it.
  EXPECT_THAT(errorOf(sealEnvelope("no plan", {2, 6})), HasSubstr("is a plan of version 2.6, "));
  for (int minor : {8, 9, 10, 200})
    EXPECT_EQ(errorOf(sealEnvelope(body, {2, minor})), "ok");
}

/// A body with the bytes `before`, which are there once, exchanged.
std::string exchanged(std::string body, const std::string &before, const std::string &after) {
  const size_t at = body.find(before);
  EXPECT_NE(at, std::string::npos);
  return sealEnvelope(body.replace(at, before.size(), after));
}

// Errors name the field, however deep it lies.
TEST(PlanFile, WrongFieldsAreNamed) {
  Plan plan = test::samplePlan();
  plan.axes = {{"tp", 2}}; // 0a 02 74 70 10 02
  plan.model = "";
  const std::string body = encodePlan(plan);
  EXPECT_EQ(errorOf(exchanged(body, "\x0a\x02tp", "\x08\x02\x08\x02")),
            "error[plan]: some.plan: axes[0].name: is there 2 times; the file is corrupt");
  EXPECT_EQ(errorOf(exchanged(body, "\x0a\x02tp", "\x08\x02\x20\x02")),
            "error[plan]: some.plan: axes[0].name: is stored as type 0 of protobuf, not 2; the file is corrupt or of a newer version");
  EXPECT_EQ(errorOf(exchanged(body, "\x0a\x02tp\x10", std::string("\x0a\x02tp\x12"))),
            "error[plan]: some.plan: axes[0]: is cut off or malformed: its protobuf does not parse");
  // Two bytes of the first product: `epilogue`, and its element type of sums.
  EXPECT_EQ(errorOf(exchanged(body, "\x48\x01", "\x48\x02")),
            "error[plan]: some.plan: stages[0].programs[0].instructions[2].gemm.epilogue: 2, which is 1 in every plan");
  EXPECT_EQ(errorOf(exchanged(body, "\x38\x01", "\x38\x63")),
            "error[plan]: some.plan: stages[0].programs[0].instructions[2].gemm.accumulate: unknown element type 99; the file is "
            "corrupt or of a newer version");
}

TEST(PlanFile, EveryTruncationAndEveryFlippedBitIsAnError) {
  const std::string bytes = serializePlan(test::samplePlan());
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_THAT(errorOf(bytes.substr(0, size)), HasSubstr("error[plan]: some.plan: ")) << size;
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string broken = bytes;
      broken[i] = char(broken[i] ^ (1 << bit));
      std::string error = errorOf(broken);
      // Only the minor version, an unknown field's number, and padding bits of a varint may change unnoticed.
      if (error == "ok")
        ASSERT_EQ(serializePlan(*parsePlan(broken, "x")), bytes) << i;
      else
        ASSERT_THAT(error, HasSubstr("error[plan]: some.plan: ")) << i;
    }
}

/// A field of two bytes becomes a struct of hundreds: refused before it does. As many bytes of an inline tensor are none of that.
TEST(PlanFile, FieldsThatWouldFillTheMemory) {
  auto message = [](int field, const std::string &content) {
    std::string length;
    uint64_t rest = content.size();
    for (; rest >= 128; rest >>= 7)
      length += char(rest | 128);
    std::string head = field < 16 ? std::string(1, char(field << 3 | 2)) : std::string{char(field << 3 | 2 | 128), char(field >> 4)};
    return head + length + char(rest) + content;
  };
  auto repeated = [](const std::string &piece, int64_t count) {
    std::string pieces;
    for (int64_t i = 0; i < count; ++i)
      pieces += piece;
    return pieces;
  };
  constexpr int64_t many = 3'000'000;
  for (const std::string &body : {repeated(message(8, ""), many), message(8, message(3, "\x08\x01" + repeated(message(3, ""), many)))})
    EXPECT_THAT(errorOf(sealEnvelope(body)), HasSubstr("bytes would become structs of more than "));
  EXPECT_THAT(errorOf(sealEnvelope(message(7, message(8, std::string(6'000'000, '\0'))))), testing::Not(HasSubstr("would become")));
}

/// The structs of a list are paid for before they are made, each at what it weighs.
TEST(PlanFile, ListsAreRefusedBeforeTheyTakeMemory) {
  constexpr int count = 1000;
  auto expectPrice = [](const std::string &body, size_t each, const char *place) {
    auto errorWith = [&](int64_t memory) {
      Expected<Plan> plan = decodePlan(body, memory);
      return plan.ok() ? std::string() : plan.status().message();
    };
    const int64_t all = count * int64_t(each);
    EXPECT_THAT(errorWith(all), HasSubstr(std::string(place) + ": the file's ")) << place;
    EXPECT_THAT(errorWith(all), HasSubstr("would become structs of more than ")) << place;
    EXPECT_THAT(errorWith(all + all / 2 + 10'000), testing::Not(HasSubstr("would become"))) << place;
  };
  auto many = [](int field, const std::string &content) {
    std::string all;
    for (int i = 0; i < count; ++i)
      all += std::string{char(field << 3 | 2), char(content.size())} + content;
    return all;
  };
  auto within = [](int field, const std::string &content) {
    return std::string{char(field << 3 | 2), char(content.size() | 128), char(content.size() >> 7)} + content;
  };
  expectPrice(many(2, ""), sizeof(Axis), "axes");
  expectPrice(many(4, std::string("\x10\x01")), sizeof(Port), "inputs");
  expectPrice(many(8, ""), sizeof(Stage), "stages");
  expectPrice(many(9, ""), sizeof(CodeModule), "modules");
  expectPrice(within(8, many(1, std::string("\x10\x01\x20\x01\x28\x01"))), sizeof(Buffer), "stages[0].buffers");
  expectPrice(within(8, many(3, std::string("\x08\x01"))), sizeof(Program), "stages[0].programs");
  expectPrice(within(8, within(3, "\x08\x01" + many(3, ""))), sizeof(Instruction), "stages[0].programs[0].instructions");
  expectPrice(within(7, "\x10\x01" + within(3, std::string(count, '\1'))), sizeof(int64_t), "weights[0].shape");
  expectPrice(within(7, "\x10\x01" + many(10, "")), sizeof(std::string), "weights[0].state_names");
}

// Behind the hash: a body that somebody wrote on purpose. Whatever the reader lets through, checks and printers
// survive.
TEST(PlanFile, ForgedBodiesAreErrorsOrSoundPlans) {
  const std::string body = *openEnvelope(serializePlan(test::samplePlan()), "x");
  int sound = 0, refused = 0, faulty = 0;
  auto tryBody = [&](const std::string &forged) {
    Expected<Plan> plan = parsePlan(sealEnvelope(forged), "x");
    if (!plan.ok()) {
      ASSERT_EQ(plan.status().kind(), ErrorKind::Plan);
      ++refused;
      return;
    }
    Expected<PlanFacts> facts = analysePlan(*plan);
    (facts.ok() ? sound : faulty)++;
    PlanFacts known = facts.ok() ? *facts : staticFacts(*plan);
    ASSERT_FALSE(printPlan(*plan, known).empty());
    ASSERT_FALSE(printPlanJson(*plan, known).empty());
  };
  for (size_t size = 0; size < body.size(); ++size)
    tryBody(body.substr(0, size));
  for (size_t i = 0; i < body.size(); ++i)
    for (int flip : {0x01, 0x02, 0x40, 0x80, 0xff}) {
      std::string forged = body;
      forged[i] = char(forged[i] ^ flip);
      tryBody(forged);
    }
  // All three happen: names can change unnoticed, sizes cannot, swapped slots pass the reader but not the check.
  EXPECT_GT(sound, 0);
  EXPECT_GT(refused, 100);
  EXPECT_GT(faulty, 0);
}

} // namespace
