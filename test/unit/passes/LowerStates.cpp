// A staged step by hand through kernels, lower, place, the plan's check and the host: what one step writes, the next one
// reads; sums over micro-batches and ranks are whole.
#include "passes/Lower/Lower.h"
#include "passes/Phases.h"
#include "passes/Place/Place.h"
#include "passes/Schedule/Schedule.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/PlanPrinter.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace hpc;

namespace {

/// g = x^T x and s = the column sums of x, over 2 micro-batches and 2 ranks; m += lr * g; w -= m; a and b change places.
const char *const step = R"(
#rows = #dist.sharding<"[4@(mb, dp), 3]">
#sums = #dist.sharding<"[3, 3] partial{mb, dp}">
#ranks = #dist.sharding<"[3, 3] partial{dp}">
#whole = #dist.sharding<"[3, 3]">
#csums = #dist.sharding<"[1, 3] partial{mb, dp}">
#cranks = #dist.sharding<"[1, 3] partial{dp}">
#cwhole = #dist.sharding<"[1, 3]">
#two = #dist.sharding<"[2]">
#scalar = #dist.sharding<"[]">
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<1x3xf32, #rows> {nn.name = "x"}, %m: tensor<3x3xf32, #whole> {nn.state = "m", nn.initial = 0.5 : f64},
                  %a: tensor<2xf32, #two> {nn.state = "a", nn.initial = 1.0 : f64}, %b: tensor<2xf32, #two> {nn.state = "b", nn.initial = 2.0 : f64},
                  %lr: tensor<f32, #scalar> {nn.step_scalar = "lr"})
      -> (tensor<1x3xf32, #cwhole> {nn.name = "s"}, tensor<3x3xf32, #whole> {nn.name = "w1"}, tensor<2xf32, #two> {nn.name = "a"},
          tensor<1x3xf32, #cranks> {nn.name = "mine"},
          tensor<3x3xf32, #whole> {nn.writes = "w"}, tensor<3x3xf32, #whole> {nn.writes = "m"},
          tensor<2xf32, #two> {nn.writes = "a"}, tensor<2xf32, #two> {nn.writes = "b"})
      attributes {pipe.schedule = ["F0 F1 U"]} {
    %f:2 = pipe.stage 0 forward (%x) : (tensor<1x3xf32, #rows>) -> (tensor<3x3xf32, #ranks>, tensor<1x3xf32, #cranks>) {
    ^bb0(%r: tensor<1x3xf32, #rows>):
      %g = nn.matmul %r, %r {transpose_lhs} : tensor<1x3xf32, #rows>, tensor<1x3xf32, #rows> -> tensor<3x3xf32, #sums>
      %gs = dist.accumulate %g {axes = ["mb"], before = #sums, after = #ranks} : tensor<3x3xf32, #sums> -> tensor<3x3xf32, #ranks>
      %s = nn.reduce sum %r {axes = array<i64: 0>} : tensor<1x3xf32, #rows> -> tensor<1x3xf32, #csums>
      %ss = dist.accumulate %s {axes = ["mb"], before = #csums, after = #cranks} : tensor<1x3xf32, #csums> -> tensor<1x3xf32, #cranks>
      pipe.yield %gs, %ss : tensor<3x3xf32, #ranks>, tensor<1x3xf32, #cranks>
    }
    %u:6 = pipe.stage 0 update (%f#0, %f#1, %m, %a, %b, %lr) : (tensor<3x3xf32, #ranks>, tensor<1x3xf32, #cranks>, tensor<3x3xf32, #whole>, tensor<2xf32, #two>, tensor<2xf32, #two>, tensor<f32, #scalar>)
        -> (tensor<1x3xf32, #cwhole>, tensor<3x3xf32, #whole>, tensor<2xf32, #two>, tensor<3x3xf32, #whole>, tensor<2xf32, #two>, tensor<2xf32, #two>) {
    ^bb0(%gs: tensor<3x3xf32, #ranks>, %ss: tensor<1x3xf32, #cranks>, %m0: tensor<3x3xf32, #whole>, %a0: tensor<2xf32, #two>, %b0: tensor<2xf32, #two>, %rate: tensor<f32, #scalar>):
      %w = nn.parameter "w" {value = dense<1.0> : tensor<3x3xf32>} : tensor<3x3xf32, #whole>
      %g = dist.all_reduce %gs {axes = ["dp"], kind = #dist<reduce_kind sum>, before = #ranks, after = #whole} : tensor<3x3xf32, #ranks> -> tensor<3x3xf32, #whole>
      %s = dist.all_reduce %ss {axes = ["dp"], kind = #dist<reduce_kind sum>, before = #cranks, after = #cwhole} : tensor<1x3xf32, #cranks> -> tensor<1x3xf32, #cwhole>
      %d = nn.mul %g, %rate : tensor<3x3xf32, #whole>, tensor<f32, #scalar> -> tensor<3x3xf32, #whole>
      %m1 = nn.add %m0, %d : tensor<3x3xf32, #whole>, tensor<3x3xf32, #whole> -> tensor<3x3xf32, #whole>
      %w1 = nn.sub %w, %m1 : tensor<3x3xf32, #whole>, tensor<3x3xf32, #whole> -> tensor<3x3xf32, #whole>
      pipe.yield %s, %w1, %a0, %m1, %b0, %a0 : tensor<1x3xf32, #cwhole>, tensor<3x3xf32, #whole>, tensor<2xf32, #two>, tensor<3x3xf32, #whole>, tensor<2xf32, #two>, tensor<2xf32, #two>
    }
    return %u#0, %u#1, %u#2, %f#1, %u#1, %u#3, %u#4, %u#5 : tensor<1x3xf32, #cwhole>, tensor<3x3xf32, #whole>, tensor<2xf32, #two>, tensor<1x3xf32, #cranks>, tensor<3x3xf32, #whole>, tensor<3x3xf32, #whole>, tensor<2xf32, #two>, tensor<2xf32, #two>
  }
}
)";

Expected<plan::Plan> compile(const char *text) {
  static bool registered = (registerPasses(), true);
  (void)registered;
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module || failed(runPhases(
                     *module, Options(), "", [](StringRef) { return success(); }, [](PassManager &) {})))
    return Status::error(ErrorKind::Internal, "the step does not compile");
  Expected<Lowered> lowered = lowerToPlan(*module, {"step", "."});
  if (!lowered.ok())
    return lowered.status();
  HPC_RETURN_IF_ERROR(schedulePlan(lowered->plan, lowered->noted, checkUnplaced));
  HPC_RETURN_IF_ERROR(placeBuffers(lowered->plan));
  HPC_RETURN_IF_ERROR(plan::checkPlan(lowered->plan));
  return std::move(lowered->plan);
}

const plan::Binding *bindingOf(const plan::Plan &plan, const std::string &saved) {
  for (const plan::Binding &binding : plan.stages[0].bindings)
    if (binding.saved == saved)
      return &binding;
  return nullptr;
}

} // namespace

TEST(LowerStates, AStepReadsWhatTheOneBeforeWrote) {
  Expected<plan::Plan> plan = compile(step);
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  SCOPED_TRACE(plan::printPlan(*plan, plan::staticFacts(*plan)));
  SessionOptions options;
  options.poison = true; // accumulators before their first write are NaN
  Expected<std::unique_ptr<Session>> session = Session::create(*plan, host::createHostBackend(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();

  float m[9], w[9], a = 1, b = 2;
  std::fill_n(m, 9, 0.5f);
  std::fill_n(w, 9, 1.0f);
  for (int round = 0; round < 3; ++round) {
    Array x = Array::zeros(DType::F32, {4, 3}), lr = Array::zeros(DType::F32, {});
    for (int i = 0; i < 12; ++i)
      x.as<float>()[i] = float((i * 5 + round * 3) % 7 - 3); // every sum is exact
    lr.as<float>()[0] = 0.25f * float(round + 1);
    Expected<std::vector<Array>> outputs = (*session)->run({x, lr});
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    ASSERT_EQ(outputs->size(), 4u);
    for (int i = 0; i < 3; ++i) {
      float sum = 0;
      for (int row = 0; row < 4; ++row)
        sum += x.as<float>()[row * 3 + i];
      EXPECT_EQ((*outputs)[0].as<float>()[i], sum) << "round " << round;
      for (int j = 0; j < 3; ++j) {
        float g = 0;
        for (int row = 0; row < 4; ++row)
          g += x.as<float>()[row * 3 + i] * x.as<float>()[row * 3 + j];
        m[i * 3 + j] += lr.as<float>()[0] * g;
        w[i * 3 + j] -= m[i * 3 + j];
        EXPECT_EQ((*outputs)[1].as<float>()[i * 3 + j], w[i * 3 + j]) << "round " << round;
      }
      // A sum over micro-batches as an output is stored when it is whole: rows 0 and 2 are rank 0's.
      EXPECT_EQ((*outputs)[3].as<float>()[i], x.as<float>()[i] + x.as<float>()[6 + i]) << "round " << round;
    }
    EXPECT_EQ((*outputs)[2].as<float>()[0], a) << "round " << round;
    std::swap(a, b); // a state becomes what another was before
  }
}

// Ports are what a user gives and gets; states and written values are bindings with what a checkpoint needs.
TEST(LowerStates, PortsAndBindings) {
  Expected<plan::Plan> plan = compile(step);
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  ASSERT_EQ(plan->inputs.size(), 2u);
  EXPECT_EQ(plan->inputs[1].name, "lr");
  EXPECT_TRUE(plan->inputs[1].isStepScalar);
  EXPECT_FALSE(plan->inputs[0].isStepScalar);
  const plan::Binding *m = bindingOf(*plan, "m"), *w = bindingOf(*plan, "w");
  ASSERT_TRUE(m && w);
  EXPECT_EQ(std::get<plan::Number>(m->start).value, 0.5);
  EXPECT_TRUE(std::holds_alternative<plan::StoredWeight>(w->start));
  EXPECT_EQ(w->shape, (std::vector<int64_t>{3, 3}));
  // The product adds to its accumulator itself; what is no product needs an instruction.
  int adding = 0, accumulates = 0;
  for (const plan::Instruction &instruction : plan->stages[0].programs[0].instructions) {
    if (const auto *gemm = std::get_if<plan::Gemm>(&instruction.action))
      adding += gemm->addToC.values == std::vector<int64_t>{0, 0, 1, 1};
    accumulates += std::holds_alternative<plan::Accumulate>(instruction.action);
  }
  EXPECT_EQ(adding, 1);
  EXPECT_EQ(accumulates, 1);
}

namespace {

/// Runs a step of two ranks, whose inputs are x [4, 3] over dp, some rounds; the outputs of each round.
std::vector<std::vector<Array>> run(const char *text, int rounds) {
  std::vector<std::vector<Array>> all;
  Expected<plan::Plan> plan = compile(text);
  EXPECT_TRUE(plan.ok()) << plan.status().text();
  if (!plan.ok())
    return all;
  SCOPED_TRACE(plan::printPlan(*plan, plan::staticFacts(*plan)));
  SessionOptions options;
  options.poison = true;
  Expected<std::unique_ptr<Session>> session = Session::create(*plan, host::createHostBackend(), options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  Array x = Array::zeros(DType::F32, {4, 3});
  for (int i = 0; i < 12; ++i)
    x.as<float>()[i] = float(i % 5 - 2);
  for (int round = 0; session.ok() && round < rounds; ++round) {
    Expected<std::vector<Array>> outputs = (*session)->run({x});
    EXPECT_TRUE(outputs.ok()) << outputs.status().text();
    if (outputs.ok())
      all.push_back(std::move(*outputs));
  }
  return all;
}

/// The sum over the rows of x of its column.
float columnSum(int column) {
  float sum = 0;
  for (int row = 0; row < 4; ++row)
    sum += float((row * 3 + column) % 5 - 2);
  return sum;
}

} // namespace

// A sum over ranks is not made in place of what a product reads afterwards, under its shape or another.
TEST(LowerStates, SumsOverRanksLeaveWhatOthersRead) {
  const char *const text = R"(
#rows = #dist.sharding<"[4@dp, 3]">
#ones = #dist.sharding<"[1, 4@dp]">
#own = #dist.sharding<"[1, 3] partial{dp}">
#turned = #dist.sharding<"[3, 1] partial{dp}">
#whole = #dist.sharding<"[1, 3]">
#wholeturned = #dist.sharding<"[3, 1]">
#m = #dist.sharding<"[3, 3]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3xf32, #rows> {nn.name = "x"}) -> (tensor<1x3xf32, #whole> {nn.name = "s"}, tensor<1x3xf32, #whole> {nn.name = "n"},
      tensor<3x1xf32, #wholeturned> {nn.name = "t"}, tensor<1x3xf32, #whole> {nn.name = "o"}) {
    %k = nn.constant dense<[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]> : tensor<3x3xf32> : tensor<3x3xf32, #m>
    %e = nn.constant dense<1.0> : tensor<1x2xf32> : tensor<1x2xf32, #ones>
    %p = nn.matmul %e, %x : tensor<1x2xf32, #ones>, tensor<2x3xf32, #rows> -> tensor<1x3xf32, #own>
    %s = dist.all_reduce %p {axes = ["dp"], kind = #dist<reduce_kind sum>, before = #own, after = #whole} : tensor<1x3xf32, #own> -> tensor<1x3xf32, #whole>
    %m = nn.matmul %p, %k : tensor<1x3xf32, #own>, tensor<3x3xf32, #m> -> tensor<1x3xf32, #own>
    %n = dist.all_reduce %m {axes = ["dp"], kind = #dist<reduce_kind sum>, before = #own, after = #whole} : tensor<1x3xf32, #own> -> tensor<1x3xf32, #whole>
    %q = nn.matmul %e, %x : tensor<1x2xf32, #ones>, tensor<2x3xf32, #rows> -> tensor<1x3xf32, #own>
    %v = nn.reshape %q : tensor<1x3xf32, #own> -> tensor<3x1xf32, #turned>
    %t = dist.all_reduce %v {axes = ["dp"], kind = #dist<reduce_kind sum>, before = #turned, after = #wholeturned} : tensor<3x1xf32, #turned> -> tensor<3x1xf32, #wholeturned>
    %r = nn.matmul %q, %k : tensor<1x3xf32, #own>, tensor<3x3xf32, #m> -> tensor<1x3xf32, #own>
    %o = dist.all_reduce %r {axes = ["dp"], kind = #dist<reduce_kind sum>, before = #own, after = #whole} : tensor<1x3xf32, #own> -> tensor<1x3xf32, #whole>
    return %s, %n, %t, %o : tensor<1x3xf32, #whole>, tensor<1x3xf32, #whole>, tensor<3x1xf32, #wholeturned>, tensor<1x3xf32, #whole>
  }
}
)";
  for (const std::vector<Array> &outputs : run(text, 1))
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(outputs[0].as<float>()[i], columnSum(i));
      EXPECT_EQ(outputs[1].as<float>()[i], 2 * columnSum(i));
      EXPECT_EQ(outputs[2].as<float>()[i], columnSum(i));
      EXPECT_EQ(outputs[3].as<float>()[i], 2 * columnSum(i));
    }
}

// A state or weight is written when nothing shows what it was any more: a product by reshapes of it comes later, one by itself, one by the weight.
TEST(LowerStates, StatesAreWrittenBehindTheirLastReader) {
  const char *const text = R"(
#rows = #dist.sharding<"[4@dp, 3]">
#m = #dist.sharding<"[3, 3]">
#v = #dist.sharding<"[9, 1]">
#w = #dist.sharding<"[1, 9]">
#one = #dist.sharding<"[1, 1]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3xf32, #rows> {nn.name = "x"}, %a: tensor<3x3xf32, #m> {nn.state = "a", nn.initial = 1.0 : f64},
                  %b: tensor<3x3xf32, #m> {nn.state = "b", nn.initial = 1.0 : f64})
      -> (tensor<1x1xf32, #one> {nn.name = "later"}, tensor<3x3xf32, #m> {nn.name = "itself"}, tensor<3x3xf32, #m> {nn.name = "weight"},
          tensor<3x3xf32, #m> {nn.writes = "a"}, tensor<3x3xf32, #m> {nn.writes = "b"}, tensor<3x3xf32, #m> {nn.writes = "c"}) {
    %k = nn.constant dense<[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]> : tensor<3x3xf32> : tensor<3x3xf32, #m>
    %c = nn.parameter "c" {value = dense<1.0> : tensor<3x3xf32>} : tensor<3x3xf32, #m>
    %row = nn.reshape %a : tensor<3x3xf32, #m> -> tensor<1x9xf32, #w>
    %column = nn.reshape %a : tensor<3x3xf32, #m> -> tensor<9x1xf32, #v>
    %a1 = nn.matmul %a, %k : tensor<3x3xf32, #m>, tensor<3x3xf32, #m> -> tensor<3x3xf32, #m>
    %later = nn.matmul %row, %column : tensor<1x9xf32, #w>, tensor<9x1xf32, #v> -> tensor<1x1xf32, #one>
    %b1 = nn.matmul %b, %k : tensor<3x3xf32, #m>, tensor<3x3xf32, #m> -> tensor<3x3xf32, #m>
    %itself = nn.matmul %b, %b : tensor<3x3xf32, #m>, tensor<3x3xf32, #m> -> tensor<3x3xf32, #m>
    %c1 = nn.matmul %c, %k : tensor<3x3xf32, #m>, tensor<3x3xf32, #m> -> tensor<3x3xf32, #m>
    %weight = nn.matmul %c, %c : tensor<3x3xf32, #m>, tensor<3x3xf32, #m> -> tensor<3x3xf32, #m>
    return %later, %itself, %weight, %a1, %b1, %c1 : tensor<1x1xf32, #one>, tensor<3x3xf32, #m>, tensor<3x3xf32, #m>, tensor<3x3xf32, #m>, tensor<3x3xf32, #m>, tensor<3x3xf32, #m>
  }
}
)";
  float value = 1;
  std::vector<std::vector<Array>> rounds = run(text, 3);
  EXPECT_EQ(rounds.size(), 3u);
  for (const std::vector<Array> &outputs : rounds) {
    EXPECT_EQ(outputs[0].as<float>()[0], 9 * value * value);
    EXPECT_EQ(outputs[1].as<float>()[0], 3 * value * value);
    EXPECT_EQ(outputs[2].as<float>()[0], 3 * value * value);
    value *= 2;
  }
}
