// States whose rows change places, run by ranks as threads: rows that one rank holds, rows over two ranks in equal and unequal parts,
// heads over others, rows of several micro-batches.
#include "passes/Place/Place.h"
#include "passes/Schedule/MergedEntries.h"
#include "passes/Schedule/ReorderEntry.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

namespace {

struct Cut {
  int64_t rows, dp, heads, tp, microBatches = 1;
};

/// A plan that stores its input [rows, heads, 3] in a state, and another one of half the heads' width.
plan::Plan writePlan(const Cut &cut) {
  plan::Plan plan;
  plan.axes = {{"dp", cut.dp}, {"tp", cut.tp}};
  plan::Stage &stage = plan.stages.emplace_back();
  plan.microBatches = cut.microBatches;
  stage.programs = {{plan::ProgramKind::Forward, 0, {}}};
  for (int32_t microBatch = 0; microBatch < cut.microBatches; ++microBatch)
    stage.schedule.push_back({0, microBatch});
  auto part = [&](int64_t size, int64_t parts, bool isMajor, plan::Slice &slice) {
    const int64_t box = (size + parts - 1) / parts;
    plan::ByCoord start, extent;
    start.values.clear();
    extent.values.clear();
    for (int64_t rank = 0; rank < cut.dp * cut.tp; ++rank) {
      const int64_t begin = parts == 1 ? 0 : std::min(size, (isMajor ? rank / cut.tp : rank % cut.tp) * box);
      start.values.push_back(begin);
      extent.values.push_back(std::min(box, size - begin));
    }
    slice.view.push_back(size);
    slice.start.push_back(start);
    slice.extent.push_back(extent);
    slice.box.push_back(box);
  };
  for (int64_t width : {3, 5}) {
    const std::string name = "cache/" + std::to_string(stage.buffers.size());
    const int64_t rows = cut.rows / cut.microBatches;
    plan::Slice slice; // of a micro-batch
    part(rows, cut.dp, true, slice);
    part(cut.heads, cut.tp, false, slice);
    part(width, 1, true, slice);
    plan::Buffer state;
    state.name = name;
    state.box = slice.box;
    state.lifetime = plan::Lifetime::Session;
    const int64_t bytes = 4 * slice.box[0] * slice.box[1] * slice.box[2]; // of a micro-batch
    state.box[0] *= cut.microBatches;
    state.bytes = bytes * cut.microBatches;
    const int32_t number = int32_t(stage.buffers.size());
    stage.buffers.push_back(state);
    const std::vector<int64_t> shape = {cut.rows, cut.heads, width};
    plan::Slice whole = slice;
    if (cut.microBatches > 1) {
      whole.view.insert(whole.view.begin(), cut.microBatches);
      whole.start.insert(whole.start.begin(), 0);
      whole.extent.insert(whole.extent.begin(), cut.microBatches);
      whole.box.insert(whole.box.begin(), cut.microBatches);
      slice.view[0] = cut.rows;
      const std::vector<int64_t> starts = slice.start[0].values;
      for (int64_t microBatch = 1; microBatch < cut.microBatches; ++microBatch)
        for (int64_t start : starts)
          slice.start[0].values.push_back(microBatch * rows + start);
    }
    stage.bindings.push_back({number, whole, plan::Number{0}, name, shape});
    plan.inputs.push_back({"x" + std::to_string(number), DType::F32, shape});
    stage.programs[0].instructions.push_back({plan::LoadInput{number, {number, 0, cut.microBatches > 1 ? bytes : 0}, slice}, "write"});
  }
  return plan;
}

struct ReorderEntry : testing::TestWithParam<Cut> {};

/// If it fails, a beam goes on with the keys of another one.
TEST_P(ReorderEntry, MovesRows) {
  const Cut cut = GetParam();
  plan::Plan write = writePlan(cut);
  ASSERT_TRUE(placeBuffers(write).ok());
  Expected<plan::Plan> reorder = reorderPlan(write);
  ASSERT_TRUE(reorder.ok()) << reorder.status().text();
  ASSERT_TRUE(placeBuffers(*reorder).ok());
  Expected<MergedPlan> merged = mergeEntries({{"write", write}, {"reorder", *reorder}});
  ASSERT_TRUE(merged.ok()) << merged.status().text();
  ASSERT_EQ(plan::checkPlan(merged->plan).text(), Status::success().text());
  SessionOptions options;
  options.poison = true;
  Expected<std::unique_ptr<Session>> session = Session::create(merged->plan, host::createHostBackend(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<Array> states, outputs;
  for (const plan::Port &port : write.inputs) {
    states.push_back(Array::zeros(port.dtype, port.shape));
    for (int64_t i = 0; i < states.back().elements(); ++i)
      states.back().as<float>()[i] = float(i + 1);
  }
  ASSERT_TRUE((*session)->run(0, states, outputs).ok());
  for (int64_t turn = 0; turn < 3; ++turn) { // all rows once, one row for all, some twice
    std::vector<Array> rows;
    std::vector<int64_t> from;
    for (int64_t row = 0; row < cut.rows; ++row) {
      from.push_back(turn == 0 ? cut.rows - 1 - row : turn == 1 ? row / 2 : cut.rows - 1);
      rows.push_back(Array::zeros(DType::I64, {}));
      rows.back().as<int64_t>()[0] = from.back();
    }
    const Status status = (*session)->run(1, rows, outputs);
    ASSERT_TRUE(status.ok()) << status.text();
    for (size_t i = 0; i < states.size(); ++i) {
      const Array before = states[i];
      const int64_t width = before.elements() / cut.rows;
      for (int64_t row = 0; row < cut.rows; ++row)
        for (int64_t j = 0; j < width; ++j)
          states[i].as<float>()[row * width + j] = before.as<float>()[from[size_t(row)] * width + j];
      Array found;
      ASSERT_TRUE((*session)->read(i, found).ok());
      EXPECT_EQ(found.data, states[i].data) << "turn " << turn << ", state " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuts, ReorderEntry,
                         testing::Values(Cut{4, 1, 2, 1}, Cut{4, 2, 2, 1}, Cut{5, 2, 4, 2}, Cut{4, 4, 3, 2}, Cut{5, 3, 2, 1}, Cut{2, 3, 2, 1}, Cut{1, 1, 2, 2}, Cut{4, 1, 2, 1, 2},
                                         Cut{3, 1, 2, 1, 3}, Cut{6, 2, 3, 2, 2}, Cut{4, 2, 2, 1, 4}));

/// If it fails, states of other forms are reordered wrongly, in silence.
TEST(ReorderEntryErrors, NameTheState) {
  plan::Plan other = writePlan({4, 1, 2, 1});
  other.stages[0].bindings[1].shape = {2, 2, 10};
  EXPECT_THAT(reorderPlan(other).status().message(), HasSubstr("state 'cache/1' [2, 2, 10] does not begin with a dim of the 4 rows"));
  plan::Plan whole = writePlan({4, 1, 2, 1});
  whole.microBatches = 2;
  EXPECT_THAT(reorderPlan(whole).status().message(), HasSubstr("state 'cache/0' [4, 2, 3] does not begin with a dim of the 4 rows"));
}

} // namespace
