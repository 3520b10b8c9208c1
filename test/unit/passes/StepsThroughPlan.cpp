// The programs of test/exec that run several steps, compiled to a plan and run by threads: each step returns what the serial
// one does. Session buffers keep what a step wrote, accumulators add up micro-batches; memory starts poisoned.
#include "passes/Lower/Lower.h"
#include "passes/Place/Place.h"
#include "passes/Schedule/Schedule.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
#include "test/unit/passes/ExecPrograms.h"

using namespace hpc;
using namespace hpc::test;

namespace {

/// In f32, over a few steps that read what the one before rounded.
constexpr double planTolerance = 2e-5;

struct StepsThroughPlan : ExecProgramTest {
  /// The program with the numbers of its weights in it.
  OwningOpRef<ModuleOp> parseWithWeights() {
    OwningOpRef<ModuleOp> module = parse();
    if (module)
      module->walk([&](nn::ParameterOp op) {
        Tensor numbers = draw(op.getName(), DType::F32, nn::shapeOf(op.getResult()));
        op.removeStorageAttr();
        op.setValueAttr(tensorToAttr(numbers, context.get()));
      });
    return module;
  }

  Expected<plan::Plan> compile(ModuleOp module, const Layout &layout) {
    runPhases(module, layout, [](StringRef) { return true; });
    Expected<Lowered> lowered = lowerToPlan(module, {});
    if (!lowered.ok())
      return lowered.status();
    HPC_RETURN_IF_ERROR(schedulePlan(lowered->plan, lowered->noted, checkUnplaced));
    HPC_RETURN_IF_ERROR(placeBuffers(lowered->plan));
    HPC_RETURN_IF_ERROR(plan::checkPlan(lowered->plan));
    return std::move(lowered->plan);
  }
};

TEST_P(StepsThroughPlan, equalSerial) {
  OwningOpRef<ModuleOp> serial = parseWithWeights();
  ASSERT_TRUE(serial);
  std::vector<std::vector<Tensor>> inputs = drawInputs(*serial), expected;
  KeptTensors kept;
  for (const std::vector<Tensor> &step : inputs) {
    Expected<std::vector<Tensor>> outputs = runStep(serial->lookupSymbol<func::FuncOp>("main"), step, kept, nullptr);
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    expected.push_back(std::move(*outputs));
  }
  for (const Layout &layout : layoutsOf(*serial, 1)) {
    OwningOpRef<ModuleOp> module = parseWithWeights();
    Expected<plan::Plan> plan = compile(*module, layout);
    ASSERT_TRUE(plan.ok()) << layout.text << ": " << plan.status().text();
    SessionOptions options;
    options.poison = true;
    Expected<std::unique_ptr<Session>> session = Session::create(*plan, host::createHostBackend(), options);
    ASSERT_TRUE(session.ok()) << layout.text << ": " << session.status().text();
    for (size_t step = 0; step < inputs.size(); ++step) {
      std::vector<Array> arrays;
      for (const Tensor &input : inputs[step])
        arrays.push_back(tensorToArray(input));
      Expected<std::vector<Array>> outputs = (*session)->run(arrays);
      ASSERT_TRUE(outputs.ok()) << layout.text << ": " << outputs.status().text();
      ASSERT_EQ(outputs->size(), expected[step].size());
      for (size_t i = 0; i < outputs->size(); ++i)
        EXPECT_EQ(difference(expected[step][i], tensorFromArray((*outputs)[i]), planTolerance), "")
            << layout.text << ", step " << step << ", output " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, StepsThroughPlan, testing::ValuesIn(execPrograms("exec.steps")), execProgramName);

} // namespace
