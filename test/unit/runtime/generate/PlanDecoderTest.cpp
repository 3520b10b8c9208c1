// A plan built by hand whose logits are what its caches hold, as a decoder: which ids, positions and rows each entry is given.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/generate/PlanDecoder.h"
#include "runtime/plan/PlanCheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::generate;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

int32_t addBuffer(plan::Stage &stage, const char *name, const std::vector<int64_t> &box, plan::Lifetime lifetime) {
  plan::Buffer buffer;
  buffer.name = name;
  buffer.dtype = DType::I64;
  buffer.box = box;
  buffer.lifetime = lifetime;
  buffer.bytes = 8 * box[0] * box[1];
  int64_t &arena = lifetime == plan::Lifetime::Session ? stage.sessionBytes : stage.workBytes;
  buffer.offset = arena;
  arena += (buffer.bytes + 63) / 64 * 64;
  stage.buffers.push_back(buffer);
  return int32_t(stage.buffers.size() - 1);
}

plan::ByCoord times(int64_t scale, int32_t input) {
  plan::ByCoord number;
  number.scale = scale;
  number.input = input;
  return number;
}

/// Two rows, chunks of 2, 4 positions. Logits [2, 1, 5]: the row of the cache, and the id at `row` of a prefill, at 0 of a step.
plan::Plan echoPlan() {
  enum Input { Chunk, Position, Row, Ids, StepPosition, FirstRow, SecondRow };
  plan::Plan plan;
  auto scalar = [](const char *name, int64_t largest) {
    plan::Port port{name, DType::I64, {}, true};
    port.largest = largest;
    return port;
  };
  plan.inputs = {{"input_ids", DType::I64, {2, 2}}, scalar("position", 2), scalar("row", 1), {"input_ids", DType::I64, {2, 1}}, scalar("position", 3), scalar("rows/0", 1), scalar("rows/1", 1)};
  plan.outputs = {{"logits", DType::I64, {2, 1, 5}}, {"logits", DType::I64, {2, 1, 5}}};
  plan::Stage &stage = plan.stages.emplace_back();
  const int32_t cache = addBuffer(stage, "cache", {2, 4}, plan::Lifetime::Session), chunk = addBuffer(stage, "chunk", {2, 2}, plan::Lifetime::Program),
                ids = addBuffer(stage, "ids", {2, 1}, plan::Lifetime::Program), rows = addBuffer(stage, "rows", {2, 4}, plan::Lifetime::Program),
                logits = addBuffer(stage, "logits", {2, 5}, plan::Lifetime::Program);
  auto whole = [](std::vector<int64_t> shape) {
    plan::Slice slice;
    slice.view = slice.box = shape;
    slice.start.assign(shape.size(), 0);
    slice.extent.assign(shape.begin(), shape.end());
    return slice;
  };
  stage.bindings = {{cache, whole({2, 4}), plan::Number{0}, "", {}}};
  auto stepOf = [&](Input input, int32_t own, int64_t length, Input position, plan::ByCoord row, int32_t output) {
    std::vector<plan::Instruction> list = {{plan::LoadInput{input, {own, 0}, whole({2, length})}, "ids"}};
    for (int64_t each = 0; each < 2; ++each) {
      list.push_back({plan::Copy{{own, each * length * 8}, {cache, each * 32}, length * 8, 0, times(8, position)}, "write"});
      list.push_back({plan::Copy{{cache, each * 32}, {logits, each * 40}, 32, 0, 0}, "show"});
      list.push_back({plan::Copy{{own, each * length * 8}, {logits, each * 40 + 32}, 8, row, 0}, "last"});
    }
    list.push_back({plan::StoreOutput{output, {logits, 0}, whole({2, 1, 5}), 1}, "logits"});
    return plan::Program{plan::ProgramKind::Forward, 0, list};
  };
  stage.programs = {stepOf(Chunk, chunk, 2, Position, times(8, Row), 0), stepOf(Ids, ids, 1, StepPosition, 0, 1),
                    {plan::ProgramKind::Forward,
                     0,
                     {{plan::Copy{{cache, 0}, {rows, 0}, 32, times(32, FirstRow), 0}, "reorder"},
                      {plan::Copy{{cache, 0}, {rows, 32}, 32, times(32, SecondRow), 0}, "reorder"},
                      {plan::Copy{{rows, 0}, {cache, 0}, 64, 0, 0}, "reorder"}}}};
  plan.entries = {{"prefill", 1, {Chunk, Position, Row}, {0}, {{{0, 0}}}}, {"decode", 1, {Ids, StepPosition}, {1}, {{{1, 0}}}}, {"reorder", 1, {FirstRow, SecondRow}, {}, {{{2, 0}}}}};
  return plan;
}

} // namespace

// An entry would be given the ids, position or row of another, or logits would be read from the wrong one.
TEST(PlanDecoder, EachEntryTakesItsOwn) {
  const plan::Plan plan = echoPlan();
  ASSERT_TRUE(plan::checkPlan(plan).ok()) << plan::checkPlan(plan).text();
  Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), {});
  ASSERT_TRUE(session.ok()) << session.status().text();
  Expected<PlanDecoder> decoder = PlanDecoder::create(plan, **session, [] { return false; });
  ASSERT_TRUE(decoder.ok()) << decoder.status().text();
  const DecoderShape shape = decoder->shape();
  EXPECT_THAT((std::vector<int64_t>{shape.batch, shape.chunk, shape.maxLength, shape.vocabulary}), ElementsAre(2, 2, 4, 5));
  std::vector<float> logits;
  ASSERT_TRUE(decoder->prefill({11, 12, 21, 22}, 0, 1, logits).ok());
  EXPECT_THAT(logits, ElementsAre(11, 12, 0, 0, 12, 21, 22, 0, 0, 22));
  ASSERT_TRUE(decoder->prefill({13, 14, 23, 24}, 2, 0, logits).ok());
  EXPECT_THAT(logits, ElementsAre(11, 12, 13, 14, 13, 21, 22, 23, 24, 23));
  ASSERT_TRUE(decoder->decode({15, 25}, 3, logits).ok());
  EXPECT_THAT(logits, ElementsAre(11, 12, 13, 15, 15, 21, 22, 23, 25, 25));
  ASSERT_TRUE(decoder->reorder({1, 0}).ok());
  ASSERT_TRUE(decoder->decode({16, 26}, 0, logits).ok());
  EXPECT_THAT(logits, ElementsAre(16, 22, 23, 25, 16, 26, 12, 13, 15, 26));
}

// A plan of another kind would fail somewhere in the loop, or be run as if it were a decoder.
TEST(PlanDecoder, PlansOfAnotherKindAreRefused) {
  plan::Plan plan = echoPlan();
  plan.entries[1].name = "step";
  EXPECT_THAT(PlanDecoder::shapeOf(plan).status().text(),
              HasSubstr("error[usage]: the plan has no entry 'decode' (its entries are prefill, step, reorder), so it generates no text; make a plan of the model with hpc-opt --generate"));
  plan = echoPlan();
  plan.inputs[4].largest.reset();
  EXPECT_THAT(PlanDecoder::shapeOf(plan).status().text(), HasSubstr("the entry 'decode' of the plan does not take ids and a position"));
  plan = echoPlan();
  plan.entries.clear();
  EXPECT_THAT(PlanDecoder::shapeOf(plan).status().text(), HasSubstr("error[usage]: the plan has no entry 'prefill', so it generates no text"));
}
