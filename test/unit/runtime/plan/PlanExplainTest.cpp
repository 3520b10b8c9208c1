// The tables of --explain: what may become one row, and how rows are laid out.
#include "runtime/plan/PlanExplain.h"

#include "SamplePlan.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanPrinter.h"
#include "runtime/plan/TextTable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::plan::test;
using testing::HasSubstr;
using testing::Not;

namespace {

/// Texts that differ in a word must never share a row; a number that is the same everywhere must not be hidden.
TEST(TextTable, JoinsWhatDiffersInNumbersAlone) {
  EXPECT_EQ(joinNumbered({"h.0.attn"}), "h.0.attn");
  EXPECT_EQ(joinNumbered({"h.0.mlp.fc1", "h.1.mlp.fc1", "h.12.mlp.fc1"}), "h.*.mlp.fc1");
  EXPECT_EQ(joinNumbered({"3x1", "3x2"}), "3x*");
  EXPECT_EQ(joinNumbered({"", ""}), "");
  EXPECT_EQ(joinNumbered({"9", "10"}), "*");
  for (const char *other : {"h.0.mlp", "h.attn", "h.0.attn2", "g.0.attn", "0.h.attn", ""})
    EXPECT_NE(withoutNumbers("h.0.attn"), withoutNumbers(other)) << other;
  EXPECT_EQ(withoutNumbers("h.0.attn"), withoutNumbers("h.123.attn"));
}

TEST(TextTable, Ranges) {
  EXPECT_EQ(rangesText({}), "");
  EXPECT_EQ(rangesText({4}), "4");
  EXPECT_EQ(rangesText({0, 1}), "0-1");
  EXPECT_EQ(rangesText({0, 2, 3, 4, 9}), "0, 2-4, 9");
  EXPECT_EQ(rangesText({0, 2}), "0, 2");
  EXPECT_EQ(rangesText({0, 2, 4, 6, 7}), "0-6:2, 7");
  EXPECT_EQ(rangesText({0, 3, 4, 9, 11, 20, 21}), "0, 3-4, 9, 11, ... (7)");
}

/// Columns that do not line up cannot be read as a table.
TEST(TextTable, LinesUp) {
  TextTable table({"kind", "bytes", "where"});
  table.add({"all_reduce", "8", "h.0"}, "because");
  table.add({"send", "10560", "wte"});
  EXPECT_EQ(table.text(), "  kind        bytes  where\n"
                          "  all_reduce      8  h.0\n"
                          "              because\n"
                          "  send        10560  wte\n");
}

/// A rank whose numbers differ must not hide in a line of others.
TEST(TextTable, MembersWithEqualCellsShareALine) {
  TextTable table({"ranks", "bytes"});
  table.addFor(0, {"1,024"});
  table.addFor(1, {"7"});
  table.addFor(2, {"1,024"});
  table.addFor(3, {"1,024"});
  table.add({"all", "3,079"});
  EXPECT_EQ(table.text(), "  ranks   bytes\n"
                          "  0, 2-3  1,024\n"
                          "  1           7\n"
                          "  all     3,079\n");
}

/// Only the numbers in names may differ within a row: other bytes, other axes or another cause are another row.
TEST(PlanExplain, RowsAreBlocks) {
  Plan plan = samplePlan();
  std::vector<Instruction> &forward = plan.stages[0].programs[stage0::ForwardProgram].instructions;
  Instruction block = forward[stage0::Reduce];
  std::get<Collective>(block.action).reason = {"/h.0/c/MatMul", "h.0.c", "matmul sums over tp", "giving up h.0.c"};
  forward[stage0::Reduce] = block;
  std::get<Collective>(block.action).reason = {"/h.1/c/MatMul", "h.1.c", "matmul sums over tp", "giving up h.1.c"};
  forward.push_back(block);
  std::string joined = explainPlan(plan, staticFacts(plan));
  EXPECT_THAT(joined, HasSubstr("h.*.c (/h.*/c/MatMul), 2 times\n"));
  EXPECT_THAT(joined, HasSubstr("because matmul sums over tp; avoided by giving up h.*.c\n"));
  EXPECT_THAT(joined, HasSubstr("2 collectives, 1 transfer;"));

  Collective &second = std::get<Collective>(forward.back().action);
  second.count += 1;
  EXPECT_THAT(explainPlan(plan, staticFacts(plan)), Not(HasSubstr("2 times")));
  second.count -= 1;
  second.reason.cause = "add sums over tp";
  EXPECT_THAT(explainPlan(plan, staticFacts(plan)), Not(HasSubstr("2 times")));
  second.reason.cause = "matmul sums over tp";
  second.kind = CollectiveKind::Permute;
  EXPECT_THAT(explainPlan(plan, staticFacts(plan)), Not(HasSubstr("2 times")));
}

/// Posted is not beside: something must be computed meanwhile, in this program or before the wait in another.
TEST(PlanExplain, CollectivesBesideComputation) {
  Plan plan = samplePlan();
  Stage &stage = plan.stages[0];
  std::vector<Instruction> &forward = stage.programs[stage0::ForwardProgram].instructions;
  auto isBeside = [&] { return staticFacts(plan).collectives[0].isBesideComputation; };
  EXPECT_FALSE(isBeside());
  const int32_t request = int32_t(stage.requests.size());
  stage.requests.push_back(1);
  std::get<Collective>(forward[stage0::Reduce].action).request = request;
  Instruction wait, product = forward[stage0::GemmH];
  wait.action = Wait{request};
  forward.insert(forward.begin() + stage0::Reduce + 1, {wait, product});
  EXPECT_FALSE(isBeside());
  EXPECT_THAT(explainPlan(plan, staticFacts(plan)), Not(HasSubstr("beside")));
  std::swap(forward[stage0::Reduce + 1], forward[stage0::Reduce + 2]);
  EXPECT_TRUE(isBeside());
  EXPECT_THAT(explainPlan(plan, staticFacts(plan)),
              HasSubstr("288 bytes a step, the array of each group of ranks counted once; 96 bytes of it in collectives "
                        "beside what is computed\n"));
  forward[stage0::Reduce + 1].onRequest = true;
  EXPECT_FALSE(isBeside());
  forward.erase(forward.begin() + stage0::Reduce + 1, forward.begin() + stage0::Reduce + 3);
  std::vector<Instruction> &drain = stage.programs[stage0::DrainProgram].instructions;
  drain.push_back(wait);
  EXPECT_FALSE(isBeside());
  drain.insert(drain.end() - 1, product);
  EXPECT_TRUE(isBeside());
}

/// The JSON is that of hpc-plan --json, without what takes space: programs read either alike.
TEST(PlanExplain, JsonIsPartOfThePlans) {
  Plan plan = samplePlan();
  PlanFacts facts = *analysePlan(plan);
  nlohmann::json explained = nlohmann::json::parse(explainPlanJson(plan, facts));
  nlohmann::json printed = nlohmann::json::parse(printPlanJson(plan, facts));
  for (const char *key : {"model", "collectives", "transfers", "time_units", "bubble"})
    EXPECT_EQ(explained[key], printed[key]) << key;
  ASSERT_EQ(explained["stages"].size(), printed["stages"].size());
  for (size_t stage = 0; stage < explained["stages"].size(); ++stage)
    for (const auto &[key, value] : explained["stages"][stage].items())
      EXPECT_EQ(value, printed["stages"][stage][key]) << key;
}

} // namespace
