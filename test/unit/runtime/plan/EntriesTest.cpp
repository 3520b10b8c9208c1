// Plans with several entries: what each of them is, what the checks find that only an entry or only all of them together show,
// file, text and JSON.
#include "EntriesPlan.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanExplain.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanPrinter.h"
#include "runtime/plan/PlanStructure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::plan::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Entries, PassTheChecks) {
  Plan plan = planOfTwo();
  Expected<PlanFacts> facts = analysePlan(plan);
  ASSERT_TRUE(facts.ok()) << facts.status().text();
  ASSERT_EQ(facts->entries.size(), 2u);
  // The first is the sample; the other one has half of its products, messages and time.
  Expected<PlanFacts> sample = analysePlan(samplePlan());
  EXPECT_EQ(facts->gemmFlops, sample->gemmFlops);
  EXPECT_EQ(facts->timeline.length, sample->timeline.length);
  EXPECT_EQ(facts->transfers[0].runs, 2);
  EXPECT_EQ(facts->entries[1].gemmFlops, (std::vector<int64_t>{sample->gemmFlops[0] / 2, sample->gemmFlops[1] / 2}));
  EXPECT_EQ(facts->entries[1].transfers[0].runs, 1);
  EXPECT_EQ(facts->entries[1].timeline.length, 2);
}

// The plan that an entry is has nothing of the others, and numbers of its own.
TEST(Entries, ArePlans) {
  Plan plan = planOfTwo(), one = planOf(plan, 1);
  EXPECT_TRUE(checkPlan(one).ok()) << checkPlan(one).text();
  EXPECT_EQ(one.entries.size(), 0u);
  EXPECT_EQ(one.inputs.size(), 1u);
  EXPECT_EQ(one.inputs[0].shape, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(one.stages[0].programs.size(), 2u);
  EXPECT_EQ(one.stages[0].programs[0].kind, ProgramKind::Drain);
  EXPECT_EQ(one.stages[0].programs[1].instructions[stage0::GemmH].node, "/one/w0");
  EXPECT_EQ(std::get<LoadInput>(one.stages[0].programs[1].instructions[stage0::LoadX].action).input, 0);
  EXPECT_EQ(one.stages[0].schedule[0].program, 1);
  EXPECT_EQ(serializePlan(planOf(plan, 0)), serializePlan(samplePlan()));
  EXPECT_EQ(serializePlan(planOf(samplePlan(), 0)), serializePlan(samplePlan()));
}

TEST(Entries, AreFoundByName) {
  Plan plan = planOfTwo();
  EXPECT_EQ(*findEntry(plan, "one"), 1u);
  EXPECT_EQ(*findEntry(plan, ""), 0u);
  EXPECT_EQ(findEntry(plan, "tow").status().text(), "error[usage]: the plan has no entry 'tow'; its entries are two, one");
  EXPECT_EQ(findEntry(samplePlan(), "one").status().text(),
            "error[usage]: the plan has no entry 'one'; it is run for one thing alone");
}

// A plan without entries is a file of the version before, to the byte: readers of that version read it.
TEST(Entries, RoundTrip) {
  std::string bytes = serializePlan(planOfTwo());
  Expected<Plan> again = parsePlan(bytes, "some.plan");
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(serializePlan(*again), bytes);
  ASSERT_EQ(again->entries.size(), 2u);
  EXPECT_EQ(again->entries[1].name, "one");
  EXPECT_EQ(again->entries[0].microBatches, 2);
  EXPECT_EQ(again->entries[1].outputs, std::vector<int32_t>{1});
  EXPECT_EQ(again->entries[1].schedules[0][0].program, int32_t(entries::OneForward));
  EXPECT_TRUE(versionOf(*again) == entriesVersion);
  EXPECT_TRUE(versionOf(samplePlan()) == leastVersion);
}

TEST(Entries, Text) {
  Plan plan = planOfTwo();
  PlanFacts facts = *analysePlan(plan);
  std::string text = printPlan(plan, facts);
  EXPECT_THAT(text, AllOf(HasSubstr("version 2.9\n"), HasSubstr("ranks: 4, entries: two, one\n"),
                          HasSubstr("entry two: takes x; gives out; 2 micro-batches\n"),
                          HasSubstr("entry one: takes x; gives out; 1 micro-batch\n"), HasSubstr("# /one/w0\n")));
  const size_t second = text.find("entry one:");
  EXPECT_THAT(text.substr(0, second), AllOf(HasSubstr("stage 1 runs RF0 RF1 F0 F1\n"), Not(HasSubstr("/one/w0"))));
  EXPECT_THAT(text.substr(second), AllOf(HasSubstr("stage 1 runs RF0 F0\n"), HasSubstr("1 transfer")));
  EXPECT_THAT(explainPlan(plan, facts), AllOf(HasSubstr("entry two:\n"), HasSubstr("entry one:\n")));
}

// The keys of the first entry are those of a plan that is it.
TEST(Entries, Json) {
  Plan plan = planOfTwo();
  PlanFacts facts = *analysePlan(plan);
  nlohmann::json json = nlohmann::json::parse(printPlanJson(plan, facts)),
                 sample = nlohmann::json::parse(printPlanJson(samplePlan(), *analysePlan(samplePlan())));
  ASSERT_EQ(json["entries"].size(), 2u);
  EXPECT_EQ(json["entries"][1]["name"], "one");
  EXPECT_EQ(json["entries"][1]["micro_batches"], 1);
  EXPECT_EQ(json["entries"][1]["inputs"][0]["shape"], (std::vector<int64_t>{2, 3}));
  json.erase("entries");
  json.erase("version");
  sample.erase("version");
  EXPECT_EQ(json, sample);
  nlohmann::json explained = nlohmann::json::parse(explainPlanJson(plan, facts));
  EXPECT_EQ(explained["entries"][1]["transfers"][0]["runs"], 1);
}

TEST(StepScalars, PassTheChecks) {
  Plan plan = planOfCache();
  ASSERT_TRUE(checkPlan(plan).ok()) << checkPlan(plan).text();
  std::string text = printPlan(plan, *analysePlan(plan));
  EXPECT_THAT(text, AllOf(HasSubstr("input position: i64[], step scalar from 0 to 7\n"),
                          HasSubstr("copy b0+(12 * position) = b1, 12 bytes"),
                          HasSubstr("copy b2 = b0+(84 + -12 * position), 12 bytes"), HasSubstr("scalars 12 * position, 5")));
  nlohmann::json json = nlohmann::json::parse(printPlanJson(plan, *analysePlan(plan)));
  EXPECT_EQ(json["inputs"][0]["largest"], 7);
  EXPECT_FALSE(json["inputs"][1].contains("largest"));
}

// The number of the input is that in the plan of the entry, wherever it stands in the whole plan.
TEST(StepScalars, RoundTripAndRenumber) {
  Plan plan = planOfCache();
  std::string bytes = serializePlan(plan);
  Expected<Plan> again = parsePlan(bytes, "some.plan");
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(serializePlan(*again), bytes);
  const auto &read = action<Copy>(*again, 0, 0, cache::Read);
  EXPECT_EQ(read.srcOffset.values, std::vector<int64_t>{84});
  EXPECT_EQ(read.srcOffset.scale, -12);
  EXPECT_EQ(read.srcOffset.input, 0);
  EXPECT_TRUE(isEverywhere(read.dstOffset, 0));
  EXPECT_EQ(again->inputs[0].largest, 7);
  plan.entries[0].inputs = {1, 0};
  Plan own = planOf(plan, 0);
  EXPECT_EQ(own.inputs[1].name, "position");
  EXPECT_EQ(action<Copy>(own, 0, 0, cache::Write).dstOffset.input, 1);
  EXPECT_EQ(action<Kernel>(own, 0, 0, cache::Negate).scalars[0].input, 1);
  EXPECT_EQ(action<Kernel>(own, 0, 0, cache::Negate).scalars[1].input, 0);
  EXPECT_TRUE(checkPlan(plan).ok()) << checkPlan(plan).text();
}

// A reader of 2.8 would pass over what varies, and copy to the first row in every step.
TEST(StepScalars, AreOfPlansWithEntries) {
  Plan plan = planOf(planOfCache(), 0);
  EXPECT_THAT(parsePlan(serializePlan(plan), "some.plan").status().text(),
              HasSubstr("copies at an offset from its places; only plans with entries have that"));
  Plan sample = samplePlan();
  action<Copy>(sample, 1, 1, stage1::CopyO).bytes = 16;
  action<Copy>(sample, 1, 1, stage1::CopyO).srcOffset = 16;
  EXPECT_THAT(parsePlan(serializePlan(sample), "some.plan").status().text(),
              HasSubstr("instruction 3 (copy, node /Identity): copies at an offset from its places; only plans with entries have that"));
}

namespace {

struct BrokenEntries {
  const char *name;
  void (*change)(Plan &);
  const char *message;
};

const BrokenEntries brokenEntries[] = {
    {"NoName", [](Plan &p) { p.entries[1].name = ""; }, "entry '': the name is empty or used twice"},
    {"OneName", [](Plan &p) { p.entries[1].name = "two"; }, "entry 'two': the name is empty or used twice"},
    {"TooMany",
     [](Plan &p) {
       for (int i = 0; i < 15; ++i) {
         p.entries.push_back(p.entries[0]);
         p.entries.back().name += std::to_string(i);
       }
     },
     "number of entries is 17; it must be in 1..16"},
    {"NoMicroBatch", [](Plan &p) { p.entries[1].microBatches = 0; }, "entry 'one': number of micro-batches is 0; it must be in 1..65536"},
    {"MicroBatchesOfThePlan", [](Plan &p) { p.microBatches = 2; }, "has 2 micro-batches and entries; each entry has its own number"},
    {"ScheduleOfThePlan", [](Plan &p) { p.stages[1].schedule = {{0, 0}}; },
     "stage 1: has a schedule beside those of the entries"},
    {"InputOutside", [](Plan &p) { p.entries[1].inputs = {2}; }, "entry 'one': input is 2; it must be in 0..1"},
    {"OutputBelow", [](Plan &p) { p.entries[1].outputs = {-1}; }, "entry 'one': output is -1; it must be in 0..1"},
    {"InputTwice", [](Plan &p) { p.entries[1].inputs = {1, 1}; }, "entry 'one': input 1 is listed twice"},
    {"InputOfNone", [](Plan &p) { p.inputs.push_back({"more", DType::F32, {}}); }, "input 'more' is part of no entry"},
    {"OutputOfNone", [](Plan &p) { p.outputs.push_back({"more", DType::F32, {}}); }, "output 'more' is part of no entry"},
    {"InputOfOneName", [](Plan &p) { p.entries[1].inputs = {0, 1}; }, "entry 'one': input 'x': the name is empty or used twice"},
    {"StageWithoutSchedule", [](Plan &p) { p.entries[1].schedules.pop_back(); },
     "entry 'one': has 1 schedules; the plan has 2 stages"},
    {"ProgramOutside", [](Plan &p) { p.entries[1].schedules[0][1].program = 3; },
     "entry 'one', stage 0: schedule step 1: program is 3; it must be in 0..2"},
    {"ProgramOfNone", [](Plan &p) { p.stages[0].programs.push_back(p.stages[0].programs[entries::Drain]); },
     "stage 0: program 3 is part of no entry"},
    {"MicroBatchOutside", [](Plan &p) { p.entries[1].schedules[0][0].microBatch = 1; },
     "entry 'one': stage 0: schedule step 0: micro-batch is 1; it must be in 0..0"},
    {"ProgramTwice",
     [](Plan &p) {
       p.stages[0].programs.push_back(p.stages[0].programs[entries::Drain]);
       p.entries[1].schedules[0].push_back({3, 0});
     },
     "entry 'one': stage 0, program drain: is there twice"},
    {"TableOfOtherMicroBatches",
     [](Plan &p) { action<Gemm>(p, 0, entries::OneForward, stage0::GemmH).n = table({3, 2, 3, 2}); },
     "entry 'one': stage 0, program forward, instruction 2 (gemm, node /one/w0): table 'n' has 4 values"},
    {"InputOfTheOther", [](Plan &p) { action<LoadInput>(p, 0, entries::OneForward, stage0::LoadX).input = 0; },
     "entry 'one': stage 0, program forward, instruction 1 (load, node x): loads input 'x', which is none of the entry's"},
    {"OutputThatNobodyStores",
     [](Plan &p) { program(p, 1, entries::OneForward1).pop_back(); },
     "entry 'one': output 'out': no owner stores any of it"},
    {"MessageThatNobodySends", [](Plan &p) { program(p, 0, entries::OneForward).pop_back(); },
     "entry 'one': deadlock: 2 of 4 ranks wait for ever"},
    {"ReceiveOfTheOther", [](Plan &p) { p.entries[1].schedules[1].erase(p.entries[1].schedules[1].begin()); },
     "entry 'one': rank 2"},
    // What one entry has written is no content for another: memory beside the session's is poison when a run begins.
    {"WrittenByTheOther",
     [](Plan &p) {
       for (Buffer *buffer : {&p.stages[1].buffers[stage1::R]})
         buffer->lifetime = Lifetime::Step;
       program(p, 1, entries::OneForward1).erase(program(p, 1, entries::OneForward1).begin() + stage1::Relu);
     },
     "entry 'one': rank 2"},
    // Weights are shared, so a form that the device made for one entry is stale when another has written to it.
    {"PackedAndWritten",
     [](Plan &p) {
       action<Gemm>(p, 1, entries::Forward1, stage1::GemmZ).b.packed = true;
       Binding &binding = p.stages[1].bindings[0];
       binding.saved = "w2";
       binding.shape = {6, 7};
       program(p, 1, entries::OneForward1)[stage1::Relu].action = Copy{{stage1::Z, 0}, {stage1::W2, 0}, 32};
     },
     "takes buffer 1 'w2' packed, but a program writes to it; only what never changes may be packed"},
    {"ReadInTwoForms",
     [](Plan &p) {
       for (Plan *plan : {&p})
         for (auto [number, isPacked] : {std::pair(int(entries::Forward1), true), {int(entries::OneForward1), false}}) {
           Gemm &gemm = action<Gemm>(*plan, 1, number, stage1::GemmZ);
           gemm.n = 4;
           gemm.b.packed = isPacked;
         }
     },
     "reads buffer 1 'w2' (b), which a product takes packed; what else reads it must be products that take it packed too"},
};

void PrintTo(const BrokenEntries &value, std::ostream *stream) { *stream << value.name; }

const BrokenEntries brokenScalars[] = {
    {"BeyondTheEnd", [](Plan &p) { p.inputs[0].largest = 8; },
     "entry 'step': stage 0, program forward, instruction 2 (copy, node read): table 'offset of src' has 84 - 96 by step at coordinate 0; it must be in 0.."},
    {"WritesBeyondTheEnd",
     [](Plan &p) {
       p.inputs[0].largest = 8;
       action<Copy>(p, 0, 0, cache::Read).srcOffset = 0;
     },
     "instruction 1 (copy, node write): writes 108 bytes at byte 0 of buffer 0 'cache' (dst), which has 96"},
    {"ReadsBeyondTheEnd", [](Plan &p) { action<Copy>(p, 0, 0, cache::Read).srcOffset.values = {96}; },
     "instruction 2 (copy, node read): reads 96 bytes at byte 12 of buffer 0 'cache' (src), which has 96"},
    {"NotOfTheElement", [](Plan &p) { action<Copy>(p, 0, 0, cache::Write).dstOffset.scale = 6; },
     "offset of dst has 6, not a multiple of the 4 bytes of an element of buffer 0 'cache'"},
    {"Leaves64Bits", [](Plan &p) { action<Kernel>(p, 0, 0, cache::Negate).scalars[0].scale = INT64_MAX / 4; },
     "table 'scalar' varies by input 0, 'position', by 2305843009213693951 a unit, which leaves 64 bits"},
    {"SumLeaves64Bits", [](Plan &p) { action<Kernel>(p, 0, 0, cache::Negate).scalars[0].values = {INT64_MAX - 1}; },
     "table 'scalar' has 9223372036854775806 + 84 by step at coordinate 0"},
    {"InputOutside", [](Plan &p) { action<Copy>(p, 0, 0, cache::Write).dstOffset.input = 2; },
     "table 'offset of dst' varies by input -1; the plan has 2 inputs"},
    {"InputWithoutRange", [](Plan &p) { action<Copy>(p, 0, 0, cache::Write).dstOffset.input = 1; },
     "table 'offset of dst' varies by input 1, 'row', which is no step scalar with a range"},
    {"RangeOfAnArray", [](Plan &p) { p.inputs[1].largest = 3; }, "input 'row': has a range; only step scalars of i64 have one"},
    {"NegativeRange", [](Plan &p) { p.inputs[0].largest = -1; }, "input 'position': its largest value is -1; it must be in 0.."},
    {"InWhen", [](Plan &p) { program(p, 0, 0)[cache::Write].when = action<Copy>(p, 0, 0, cache::Write).dstOffset; },
     "table 'when' varies by step; only scalars of kernels and offsets of copies do"},
    {"InASlice", [](Plan &p) { action<StoreOutput>(p, 0, 0, cache::StoreRow).slice.start[0] = action<Copy>(p, 0, 0, cache::Write).dstOffset; },
     "table 'start' varies by step; only scalars of kernels and offsets of copies do"},
    // A step writes a part, and what reads the rest reads poison.
    {"PartsOfATemporary",
     [](Plan &p) {
       p.stages[0].buffers[cache::Copied] = buffer("copied", Lifetime::Program, {8, 3}, 64);
       p.stages[0].workBytes = 192;
       action<Copy>(p, 0, 0, cache::Read).dstOffset = action<Copy>(p, 0, 0, cache::Write).dstOffset;
     },
     "writes to changing parts of buffer 2 'copied', which holds nothing where no step has written"},
    {"PartsOfNothing", [](Plan &p) { p.stages[0].bindings[0].start = Nothing{}; },
     "writes to changing parts of buffer 0 'cache', which holds nothing where no step has written"},
    // The two places are apart in the first step alone.
    {"OverlapInSomeSteps",
     [](Plan &p) {
       auto &write = action<Copy>(p, 0, 0, cache::Write);
       write.src = {cache::State, 84};
     },
     "overlap in buffer 0 'cache'"},
};

class EntriesFault : public testing::TestWithParam<BrokenEntries> {};

} // namespace

TEST(StepScalars, FaultsAreFound) {
  for (const BrokenEntries &broken : brokenScalars) {
    Plan plan = planOfCache();
    broken.change(plan);
    EXPECT_THAT(checkPlan(plan).message(), HasSubstr(broken.message)) << broken.name;
    EXPECT_FALSE(printPlan(plan, PlanFacts(staticFacts(planOfCache()))).empty()) << broken.name;
  }
}

TEST_P(EntriesFault, IsFound) {
  Plan plan = planOfTwo();
  ASSERT_TRUE(checkPlan(plan).ok()) << checkPlan(plan).text();
  GetParam().change(plan);
  Status status = checkPlan(plan);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.kind(), ErrorKind::Plan);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
  // What passes the reader is printed, whatever the checks say.
  if (checkStructure(plan).ok()) {
    EXPECT_FALSE(printPlan(plan, staticFacts(plan)).empty());
    EXPECT_FALSE(printPlanJson(plan, staticFacts(plan)).empty());
    EXPECT_TRUE(parsePlan(serializePlan(plan), "some.plan").ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EntriesFault, testing::ValuesIn(brokenEntries),
                         [](const testing::TestParamInfo<BrokenEntries> &info) { return std::string(info.param.name); });
