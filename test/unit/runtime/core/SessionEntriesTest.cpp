// Sessions over plans with several entries: each computes its own, by the same weights, and leaves nothing to the other.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/null/Counts.h"
#include "runtime/core/Session.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanCheck.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gtest/gtest.h>

using namespace hpc;

namespace {

/// The tiny plan, and its first micro-batch alone as an entry of its own, with a port of half the rows.
struct TwoEntries : TinyPlan {
  TwoEntries() {
    plan.inputs.push_back({"x", DType::F32, {2, 6}});
    plan.outputs.push_back({"y", DType::F32, {2, 7}});
    plan::Program first = plan.stages[0].programs[0], second = plan.stages[1].programs[1];
    auto &load = std::get<plan::LoadInput>(first.instructions.front().action);
    auto &store = std::get<plan::StoreOutput>(second.instructions.back().action);
    load.input = store.output = 1;
    for (plan::Slice *slice : {&load.slice, &store.slice}) {
      slice->view[0] = 2;
      slice->start[0] = 0;
    }
    plan.entries = {{"four rows", 2, {0}, {0}, {plan.stages[0].schedule, plan.stages[1].schedule}},
                    {"two rows", 1, {1}, {1}, {{{2, 0}, {1, 0}}, {{0, 0}, {2, 0}}}}};
    plan.microBatches = 1;
    plan.stages[0].programs.push_back(first);
    plan.stages[1].programs.push_back(second);
    for (plan::Stage &stage : plan.stages)
      stage.schedule.clear();
  }
};

Array firstRows(int64_t count, int64_t seed) {
  Array x = Array::zeros(DType::F32, {count, 6});
  std::vector<float> list = TinyPlan::values(24, seed);
  std::copy(list.begin(), list.begin() + count * 6, x.as<float>());
  return x;
}

} // namespace

TEST(SessionEntries, ComputeByTurns) {
  for (bool poison : {false, true}) {
    TwoEntries two;
    ASSERT_TRUE(plan::checkPlan(two.plan).ok()) << plan::checkPlan(two.plan).text();
    SessionOptions options;
    options.planFolder = two.folder.path;
    options.poison = poison;
    Expected<std::unique_ptr<Session>> session = Session::create(two.plan, host::createHostBackend(), options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    EXPECT_EQ((*session)->entry(1).inputs[0].shape, (std::vector<int64_t>{2, 6}));
    std::vector<Array> outputs;
    for (auto [entry, seed] : {std::pair(0, 1), {1, 2}, {1, 3}, {0, 4}, {1, 5}}) {
      const int64_t count = entry == 0 ? 4 : 2;
      ASSERT_TRUE((*session)->run(size_t(entry), {firstRows(count, seed)}, outputs).ok());
      std::vector<float> expected = two.expected(TinyPlan::values(24, seed));
      ASSERT_EQ(outputs[0].shape, (std::vector<int64_t>{count, 7}));
      for (int64_t i = 0; i < count * 7; ++i)
        EXPECT_EQ(outputs[0].as<float>()[i], expected[size_t(i)]) << "entry " << entry << ", number " << i;
    }
    // Without a word it is the first.
    ASSERT_TRUE((*session)->run({firstRows(4, 6)}).ok());
    EXPECT_EQ((*session)->run(1, {firstRows(4, 6)}, outputs).text(),
              "error[usage]: input 'x' is 4x6 of f32, the plan was compiled for 2x6 of f32; convert the array, or compile again with --dim for other shapes");
  }
}

// Ranks in two sessions, which agree on every run: outputs come from the process of the last stage.
TEST(SessionEntries, RanksOfSeveralProcesses) {
  TwoEntries two;
  auto world = std::make_shared<host::World>(two.plan);
  std::vector<Array> outputs;
  auto work = [&](int64_t first, std::vector<Array> &results) {
    SessionOptions options;
    options.planFolder = two.folder.path;
    options.ranks = {first, 2};
    Expected<std::unique_ptr<Session>> session = Session::create(two.plan, host::createHostBackend(world), options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    for (size_t entry : {1, 0, 1})
      ASSERT_TRUE((*session)->run(entry, {firstRows(entry == 0 ? 4 : 2, 7)}, results).ok());
  };
  std::vector<Array> none;
  std::thread other(work, 2, std::ref(none));
  work(0, outputs);
  other.join();
  std::vector<float> expected = two.expected(TinyPlan::values(24, 7));
  ASSERT_EQ(outputs[0].shape, (std::vector<int64_t>{2, 7}));
  for (size_t i = 0; i < 14; ++i)
    EXPECT_EQ(outputs[0].as<float>()[i], expected[i]);
}

TEST(SessionEntries, AreTracedEachByItself) {
  TwoEntries two;
  SessionOptions options;
  options.planFolder = two.folder.path;
  options.trace = true;
  Expected<std::unique_ptr<Session>> session = Session::create(two.plan, host::createHostBackend(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<Array> outputs;
  ASSERT_TRUE((*session)->run(0, {firstRows(4, 1)}, outputs).ok());
  EXPECT_EQ((*session)->trace()->of(0).size(), 2u * (6 + 1));
  ASSERT_TRUE((*session)->run(1, {firstRows(2, 1)}, outputs).ok());
  EXPECT_EQ((*session)->trace()->of(0).size(), 5u + 1); // its input is the caller's array, which nobody loads
  EXPECT_EQ((*session)->trace()->plan().microBatches, 1);
}

TEST(SessionEntries, AreCountedEachByItself) {
  TwoEntries two;
  for (auto [entry, gemms] : {std::pair(0, 4), {1, 2}}) {
    Expected<std::vector<null::Counts>> counts = null::countRanks(plan::planOf(two.plan, size_t(entry)));
    ASSERT_TRUE(counts.ok()) << counts.status().text();
    EXPECT_EQ((*counts)[0].gemms, gemms);
    EXPECT_EQ((*counts)[2].gemms, gemms / 2);
  }
}

namespace {

/// A cache of 5 rows of 8, cut by columns over two ranks. `append` writes a row at a position; `at` gives the row that is there.
plan::Plan planOfCache() {
  plan::Plan plan;
  plan.axes = {{"tp", 2}};
  plan::Port position{"position", DType::I64, {}, true};
  position.largest = 4;
  plan.inputs = {{"row", DType::F32, {1, 8}}, position};
  plan.outputs = {{"found", DType::F32, {1, 8}}};
  plan::Stage &stage = plan.stages.emplace_back();
  const int32_t cache = TinyPlan::addBuffer(stage, "cache", {5, 4}, plan::Lifetime::Session),
                row = TinyPlan::addBuffer(stage, "row", {1, 4}, plan::Lifetime::Program);
  auto columns = [](int64_t rows) {
    return plan::Slice{{rows, 8}, {0, TinyPlan::byRank(0, 4)}, {rows, 4}, {rows, 4}};
  };
  stage.bindings = {{cache, columns(5), plan::Number{-1}, "cache", {5, 8}}};
  plan::ByCoord offset;
  offset.scale = 16;
  offset.input = 1;
  stage.programs = {{plan::ProgramKind::Forward,
                     0,
                     {{plan::LoadInput{0, {row, 0}, columns(1)}, "row"},
                      {plan::Copy{{row, 0}, {cache, 0}, 16, 0, offset}, "append"}}},
                    {plan::ProgramKind::Forward,
                     0,
                     {{plan::Copy{{cache, 0}, {row, 0}, 16, offset, 0}, "at"},
                      {plan::StoreOutput{0, {row, 0}, columns(1), 1}, "found"}}}};
  plan.entries = {{"append", 1, {0, 1}, {}, {{{0, 0}}}}, {"at", 1, {1}, {0}, {{{1, 0}}}}};
  return plan;
}

Array positionOf(int64_t value) {
  Array array = Array::zeros(DType::I64, {});
  array.as<int64_t>()[0] = value;
  return array;
}

} // namespace

// A state that one entry writes at a position and another reads: what a cache of keys does.
TEST(SessionEntries, NumbersVaryByStep) {
  for (bool poison : {false, true}) {
    plan::Plan plan = planOfCache();
    ASSERT_TRUE(plan::checkPlan(plan).ok()) << plan::checkPlan(plan).text();
    SessionOptions options;
    options.poison = poison;
    Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    std::vector<Array> none, outputs;
    for (int64_t position : {3, 0, 4}) {
      Array row = Array::zeros(DType::F32, {1, 8});
      for (int64_t i = 0; i < 8; ++i)
        row.as<float>()[i] = float(10 * position + i);
      ASSERT_TRUE((*session)->run(0, {row, positionOf(position)}, none).ok());
    }
    for (int64_t position : {0, 1, 2, 3, 4}) {
      ASSERT_TRUE((*session)->run(1, {positionOf(position)}, outputs).ok());
      for (int64_t i = 0; i < 8; ++i)
        EXPECT_EQ(outputs[0].as<float>()[i], position == 1 || position == 2 ? -1 : float(10 * position + i)) << position;
    }
    for (int64_t position : {-1, 5})
      EXPECT_EQ((*session)->run(1, {positionOf(position)}, outputs).text(),
                "error[usage]: input 'position' is " + std::to_string(position) + ", the plan takes 0 to 4; give one of these, or compile for more");
  }
}

// Scalars of kernels, too: the tiny plan's relu takes the number of its columns from the run.
TEST(SessionEntries, ScalarsOfKernelsVaryByStep) {
  TinyPlan tiny;
  plan::Port columns{"columns", DType::I64, {}, true};
  columns.largest = 4;
  tiny.plan.inputs.push_back(columns);
  plan::ByCoord scalar;
  scalar.scale = 1;
  scalar.input = 1;
  std::get<plan::Kernel>(tiny.plan.stages[0].programs[0].instructions[2].action).scalars = {scalar};
  tiny.plan.entries = {{"run", 2, {0, 1}, {0}, {tiny.plan.stages[0].schedule, tiny.plan.stages[1].schedule}}};
  tiny.plan.microBatches = 1;
  for (plan::Stage &stage : tiny.plan.stages)
    stage.schedule.clear();
  ASSERT_TRUE(plan::checkPlan(tiny.plan).ok()) << plan::checkPlan(tiny.plan).text();
  SessionOptions options;
  options.planFolder = tiny.folder.path;
  Expected<std::unique_ptr<Session>> session = Session::create(tiny.plan, host::createHostBackend(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<Array> all, few, again;
  ASSERT_TRUE((*session)->run(0, {firstRows(4, 1), positionOf(4)}, all).ok());
  ASSERT_TRUE((*session)->run(0, {firstRows(4, 1), positionOf(1)}, few).ok());
  ASSERT_TRUE((*session)->run(0, {firstRows(4, 1), positionOf(4)}, again).ok());
  std::vector<float> expected = tiny.expected(TinyPlan::values(24, 1));
  bool differs = false;
  for (int64_t i = 0; i < 28; ++i) {
    EXPECT_EQ(all[0].as<float>()[i], expected[size_t(i)]);
    EXPECT_EQ(again[0].as<float>()[i], expected[size_t(i)]);
    differs |= few[0].as<float>()[i] != expected[size_t(i)];
  }
  EXPECT_TRUE(differs); // fewer columns lose their negative numbers
  Expected<std::vector<null::Counts>> counts = null::countRanks(plan::planOf(tiny.plan, 0));
  ASSERT_TRUE(counts.ok()) << counts.status().text();
  EXPECT_EQ((*counts)[0].kernels, 2);
}

// The device rearranges a weight in its place: once, for the products of both entries, of 40 rows and of one.
TEST(SessionEntries, ShareAPackedWeight) {
  constexpr int64_t depth = 24, width = 40, most = 40;
  plan::Plan plan;
  plan.stages.resize(1);
  plan::Stage &stage = plan.stages[0];
  const std::vector<float> numbers = TinyPlan::values(depth * width, 1), given = TinyPlan::values(most * depth, 2);
  plan::Weight weight;
  weight.name = "w";
  weight.shape = {depth, width};
  weight.bytes = depth * width * 4;
  weight.inlineData.assign(reinterpret_cast<const char *>(numbers.data()), size_t(weight.bytes));
  plan.weights = {weight};
  auto whole = [](int64_t rows, int64_t columns) {
    return plan::Slice{{rows, columns}, {0, 0}, {rows, columns}, {rows, columns}};
  };
  const int32_t w = TinyPlan::addBuffer(stage, "w", {depth, width}, plan::Lifetime::Session),
                x = TinyPlan::addBuffer(stage, "x", {most, depth}, plan::Lifetime::Program),
                y = TinyPlan::addBuffer(stage, "y", {most, width}, plan::Lifetime::Program);
  stage.bindings = {{w, whole(depth, width), plan::StoredWeight{0}, "", {}}};
  for (int64_t rows : {most, int64_t(1)}) {
    const int32_t port = int32_t(plan.inputs.size());
    plan::Gemm gemm = TinyPlan::gemm(x, w, y, width, depth, depth, width, width);
    gemm.m = rows;
    gemm.b.packed = true;
    // Boxes of one row are less than the buffers.
    plan.inputs.push_back({"x", DType::F32, {rows, depth}});
    plan.outputs.push_back({"y", DType::F32, {rows, width}});
    stage.programs.push_back({plan::ProgramKind::Forward,
                              0,
                              {{plan::LoadInput{port, {x, 0}, whole(rows, depth)}, "x"},
                               {gemm, "w"},
                               {plan::StoreOutput{port, {y, 0}, whole(rows, width), 1}, "y"}}});
    plan.entries.push_back({rows == 1 ? "decode" : "prefill", 1, {port}, {port}, {{{port, 0}}}});
  }
  ASSERT_TRUE(plan::checkPlan(plan).ok()) << plan::checkPlan(plan).text();
  Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), {});
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<Array> outputs;
  for (size_t entry : {1, 0, 1}) {
    const int64_t rows = entry == 0 ? most : 1;
    Array input = Array::zeros(DType::F32, {rows, depth});
    std::copy(given.begin(), given.begin() + rows * depth, input.as<float>());
    ASSERT_TRUE((*session)->run(entry, {input}, outputs).ok());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < width; ++j) {
        float sum = 0; // of multiples of 1/16: exact
        for (int64_t k = 0; k < depth; ++k)
          sum += given[size_t(i * depth + k)] * numbers[size_t(k * width + j)];
        ASSERT_EQ(outputs[0].as<float>()[i * width + j], sum) << "entry " << entry << ", row " << i << ", column " << j;
      }
  }
}
