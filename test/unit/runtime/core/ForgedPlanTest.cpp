// A plan that somebody forged behind its hash, all the way through a run. Its machine code is left out: whoever may
// change that may do anything.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gtest/gtest.h>

using namespace hpc;

namespace {

enum Outcome { Refused, Failed, Ran };

Outcome outcomeOf(const std::string &body, const std::string &folder, const std::vector<Array> &inputs) {
  Expected<plan::Plan> plan = plan::parsePlan(plan::sealEnvelope(body), "forged.plan");
  if (!plan.ok())
    return plan.status().kind() == ErrorKind::Plan ? Refused : throw std::runtime_error(plan.status().text());
  if (Status checked = plan::checkPlan(*plan); !checked.ok())
    return Refused;
  SessionOptions options;
  options.planFolder = folder;
  Expected<std::unique_ptr<Session>> session = Session::create(*plan, host::createHostBackend(), options);
  Status status = session.status();
  if (session.ok()) {
    Expected<std::vector<Array>> outputs = (*session)->run(inputs);
    if (outputs.ok())
      return Ran;
    status = outputs.status();
  }
  if (status.kind() == ErrorKind::Internal)
    throw std::runtime_error(status.text());
  return Failed;
}

/// Two ranks that run what TinyPlan does not: every other collective, one of them posted, a batched product, sums and
/// copies, a state and an inline tensor.
plan::Plan otherOpcodes() {
  using namespace plan;
  Plan plan;
  plan.model = "forged";
  plan.axes = {{"tp", 2}};
  plan.inputs = {{"x", DType::F32, {8}, false}};
  plan.outputs = {{"y", DType::F32, {8}, false}};
  Weight bias;
  bias.name = "bias";
  bias.shape = {2};
  bias.bytes = 8;
  bias.inlineData = std::string(8, '\0');
  bias.hashes = hashChunks(bias.inlineData.data(), bias.bytes);
  plan.weights = {bias};
  Stage &stage = plan.stages.emplace_back();
  auto add = [&](Lifetime lifetime, int64_t count) {
    return TinyPlan::addBuffer(stage, "b" + std::to_string(stage.buffers.size()), {count}, lifetime);
  };
  int32_t x = add(Lifetime::Program, 8), all = add(Lifetime::Program, 16), part = add(Lifetime::Program, 8),
          turned = add(Lifetime::Program, 8), moved = add(Lifetime::Program, 8), product = add(Lifetime::Program, 8),
          second = add(Lifetime::Program, 8), sum = add(Lifetime::Step, 8), state = add(Lifetime::Session, 8),
          two = add(Lifetime::Session, 2);
  auto whole = [](int64_t count) { return Slice{{count}, {0}, {count}, {count}}; };
  stage.bindings = {{state, whole(8), Number{0.5}, "state", {8}}, {two, whole(2), StoredWeight{0}, "", {}}};
  auto collective = [&](CollectiveKind kind, int64_t count, int32_t from, int32_t to) {
    Collective result;
    result.kind = kind;
    result.axes = {"tp"};
    result.count = count;
    result.src = {from, 0};
    result.dst = {to, 0};
    return result;
  };
  Collective permute = collective(CollectiveKind::Permute, 8, turned, moved);
  permute.source = TinyPlan::byRank(1, 0);
  permute.request = 0;
  Gemm batched = TinyPlan::gemm(moved, turned, product, 2, 2, 2, 2, 2);
  batched.b.transpose = true;
  batched.batch = {2};
  batched.a.stride = batched.b.stride = batched.c.stride = {4};
  stage.programs = {{ProgramKind::Forward,
                     0,
                     {{LoadInput{0, {x, 0}, whole(8)}, "x"},
                      {collective(CollectiveKind::AllGather, 8, x, all), "gather"},
                      {collective(CollectiveKind::ReduceScatter, 8, all, part), "scatter"},
                      {collective(CollectiveKind::AllToAll, 4, part, turned), "turn"},
                      {permute, "move"},
                      {Wait{0}, "move"},
                      {batched, "product"},
                      {TinyPlan::gemm(product, moved, second, 2, 2, 2, 2, 2), "bias"},
                      {Copy{{product, 16}, {second, 16}, 16}, "copy"},
                      {Accumulate{{second, 0}, {sum, 0}, DType::F32, 8, 0}, "sum"},
                      {Accumulate{{sum, 0}, {state, 0}, DType::F32, 8, 1}, "state"},
                      {StoreOutput{0, {state, 0}, whole(8), TinyPlan::byRank(1, 0)}, "y"}}}};
  stage.schedule = {{0, 0}};
  stage.requests = {1};
  return plan;
}

/// A weight in all forms of int8: codes in a product beside their scales, and the numbers that those mean in another.
plan::Plan int8Weight() {
  using namespace plan;
  Plan plan;
  plan.model = "forged";
  plan.axes = {{"tp", 2}};
  plan.inputs = {{"x", DType::F32, {2, 4}, false}};
  plan.outputs = {{"y", DType::F32, {2, 2}, false}};
  const std::vector<float> numbers = TinyPlan::values(8, 5);
  Weight weight;
  weight.name = "w";
  weight.shape = {4, 2};
  weight.bytes = 32;
  weight.inlineData.assign(reinterpret_cast<const char *>(numbers.data()), 32);
  weight.hashes = hashChunks(weight.inlineData.data(), weight.bytes);
  plan.weights = {weight};
  Stage &stage = plan.stages.emplace_back();
  const int32_t codes = TinyPlan::addBuffer(stage, "codes", {4, 2}, Lifetime::Session),
                scales = TinyPlan::addBuffer(stage, "scales", {2}, Lifetime::Session),
                values = TinyPlan::addBuffer(stage, "values", {4, 2}, Lifetime::Session),
                x = TinyPlan::addBuffer(stage, "x", {2, 4}, Lifetime::Program),
                product = TinyPlan::addBuffer(stage, "product", {2, 2}, Lifetime::Program),
                y = TinyPlan::addBuffer(stage, "y", {2, 2}, Lifetime::Program);
  stage.buffers[size_t(codes)].dtype = DType::I8;
  stage.buffers[size_t(codes)].bytes = 8;
  auto whole = [](const std::vector<int64_t> &shape) {
    return Slice{shape, std::vector<ByCoord>(shape.size(), 0), {shape.begin(), shape.end()}, shape};
  };
  stage.bindings = {{codes, whole({4, 2}), Int8Weight{0, 0, Int8Form::Codes}, "", {}},
                    {scales, whole({2}), Int8Weight{0, 0, Int8Form::Scales}, "", {}},
                    {values, whole({4, 2}), Int8Weight{0, 0, Int8Form::Values}, "", {}}};
  Gemm ofCodes = TinyPlan::gemm(x, codes, product, 2, 4, 4, 2, 2);
  ofCodes.b.dtype = DType::I8;
  stage.programs = {{ProgramKind::Forward,
                     0,
                     {{LoadInput{0, {x, 0}, whole({2, 4})}, "x"},
                      {ofCodes, "codes"},
                      {TinyPlan::gemm(x, values, y, 2, 4, 4, 2, 2), "values"},
                      {Accumulate{{product, 0}, {y, 0}, DType::F32, 4, 1}, "sum"},
                      {Accumulate{{scales, 0}, {y, 0}, DType::F32, 2, 1}, "scales"},
                      {StoreOutput{0, {y, 0}, whole({2, 2}), TinyPlan::byRank(1, 0)}, "y"}}}};
  stage.schedule = {{0, 0}};
  return plan;
}

void expectEveryFlipEnds(const plan::Plan &plan, const std::string &folder, const std::vector<Array> &inputs) {
  Expected<std::string> body = plan::openEnvelope(plan::serializePlan(plan), "tiny.plan");
  ASSERT_TRUE(body.ok());
  ASSERT_EQ(outcomeOf(*body, folder, inputs), Ran) << plan::checkPlan(plan).text();
  int counts[3] = {};
  for (size_t at = 0; at < body->size(); ++at) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string forged = *body;
    constexpr int flips[] = {0x01, 0x02, 0x04, 0x10, 0x40, 0x80, 0xff};
    forged[at] = char(forged[at] ^ flips[at % std::size(flips)]);
    ++counts[outcomeOf(forged, folder, inputs)];
  }
  // All three happen: a size contradicts another, a file's name or a hash is wrong, a name means nothing.
  EXPECT_GT(counts[Refused], 100);
  EXPECT_GT(counts[Failed], 0);
  EXPECT_GT(counts[Ran], 10);
}

/// Every byte changed once: the reader or the check refuses it, or the run ends, in success or an error that blames the
/// plan, its files or its inputs. No crash, no deadlock, no write outside a buffer (the address sanitizer sees that).
TEST(ForgedPlan, EveryFlippedByteIsRefusedOrRunsToAnEnd) {
  TinyPlan tiny;
  tiny.plan.modules.clear();
  for (plan::Stage &stage : tiny.plan.stages)
    for (plan::Program &program : stage.programs)
      program.instructions.erase(std::remove_if(program.instructions.begin(), program.instructions.end(),
                                                [](const plan::Instruction &instruction) {
                                                  return std::holds_alternative<plan::Kernel>(instruction.action);
                                                }),
                                 program.instructions.end());
  expectEveryFlipEnds(tiny.plan, tiny.folder.path, {Array::zeros(DType::F32, {4, 6})});
}

/// The same of the instructions that are left.
TEST(ForgedPlan, SoIsEveryFlippedByteOfOtherOpcodes) {
  TemporaryFolder folder;
  expectEveryFlipEnds(otherOpcodes(), folder.path, {Array::zeros(DType::F32, {8})});
}

/// And of a weight that is held in int8.
TEST(ForgedPlan, SoIsEveryFlippedByteOfInt8Weights) {
  TemporaryFolder folder;
  expectEveryFlipEnds(int8Weight(), folder.path, {Array::zeros(DType::F32, {2, 4})});
}

} // namespace
