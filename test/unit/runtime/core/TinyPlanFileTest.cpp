// The hand-built plan of these tests through the plan's own check and its file: what hpc-run does before it runs.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gtest/gtest.h>

using namespace hpc;

TEST(TinyPlanFile, PassesTheCheckAndRunsFromItsFile) {
  TinyPlan tiny;
  Status checked = plan::checkPlan(tiny.plan);
  ASSERT_TRUE(checked.ok()) << checked.text();
  std::string path = tiny.folder / "tiny.plan";
  ASSERT_TRUE(plan::writePlan(tiny.plan, path).ok());
  Expected<plan::Plan> plan = plan::readPlan(path);
  ASSERT_TRUE(plan.ok()) << plan.status().text();

  SessionOptions options;
  options.planFolder = tiny.folder.path;
  options.poison = true;
  Expected<std::unique_ptr<Session>> session = Session::create(*plan, host::createHostBackend(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<float> x = TinyPlan::values(24, 0), expected = tiny.expected(x);
  Array input = Array::zeros(DType::F32, {4, 6});
  std::copy(x.begin(), x.end(), input.as<float>());
  Expected<std::vector<Array>> outputs = (*session)->run({input});
  ASSERT_TRUE(outputs.ok()) << outputs.status().text();
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ((*outputs)[0].as<float>()[i], expected[i]) << i;
}
