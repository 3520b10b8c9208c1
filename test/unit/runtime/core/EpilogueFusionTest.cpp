// Which products take a kernel over, and that a step gives the same numbers if they do. A plan of one rank: x is
// loaded, p = x w, r = relu(p + bias), r is stored; each case adds the one thing that makes it impossible, or does not.
#include "runtime/core/Specialise.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/host/HostDevice.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanPrinter.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;

namespace {

enum Buffers { X, W, Bias, P, R, Other };
enum Instructions { Load, Product, Relu, Store };

struct BiasPlan {
  plan::Plan plan;
  plan::Stage *stage;
  std::vector<float> w = TinyPlan::values(18, 1), bias = TinyPlan::values(3, 2);

  void addWeight(const std::vector<float> &values, int32_t buffer) {
    plan::Weight weight;
    weight.name = stage->buffers[size_t(buffer)].name;
    weight.shape = stage->buffers[size_t(buffer)].box;
    weight.bytes = int64_t(values.size() * 4);
    weight.inlineData.assign(reinterpret_cast<const char *>(values.data()), values.size() * 4);
    weight.hashes = hashChunks(values.data(), weight.bytes);
    plan::Slice whole{weight.shape, {}, {}, weight.shape};
    for (int64_t size : weight.shape) {
      whole.start.push_back(0);
      whole.extent.push_back(size);
    }
    stage->bindings.push_back({buffer, whole, plan::StoredWeight{int32_t(plan.weights.size())}, "", {}});
    plan.weights.push_back(weight);
  }

  BiasPlan() {
    using plan::Lifetime;
    plan.model = "biased";
    plan.inputs = {{"x", DType::F32, {4, 6}}};
    plan.outputs = {{"y", DType::F32, {4, 3}}};
    plan.modules = {{"x86-64", {"sse2"}, 0, TemporaryFolder::read(HPC_TEST_KERNELS), {"test_bias_relu"}}};
    plan.stages.resize(1);
    stage = &plan.stages[0];
    TinyPlan::addBuffer(*stage, "x", {4, 6}, Lifetime::Program);
    TinyPlan::addBuffer(*stage, "w", {6, 3}, Lifetime::Session);
    TinyPlan::addBuffer(*stage, "bias", {3}, Lifetime::Session);
    for (const char *name : {"p", "r", "other"})
      TinyPlan::addBuffer(*stage, name, {4, 3}, Lifetime::Program);
    addWeight(w, W);
    addWeight(bias, Bias);
    plan::Gemm product = TinyPlan::gemm(X, W, P, 3, 6, 6, 3, 3);
    product.m = 4;
    plan::Kernel relu{"test_bias_relu",
                      {{{P, 0}, 48, true, false}, {{Bias, 0}, 12, true, false}, {{R, 0}, 48, false, true}},
                      {},
                      4,
                      {},
                      {},
                      plan::Epilogue{plan::EpilogueKind::BiasRelu, 0, 1}};
    stage->programs = {{plan::ProgramKind::Forward,
                        0,
                        {{plan::LoadInput{0, {X, 0}, {{4, 6}, {0, 0}, {4, 6}, {4, 6}}}, "x"},
                         {product, "product"},
                         {relu, "relu"},
                         {plan::StoreOutput{0, {R, 0}, {{4, 3}, {0, 0}, {4, 3}, {4, 3}}, 1}, "y"}}}};
    stage->schedule = {{0, 0}};
  }

  std::vector<plan::Instruction> &instructions() { return stage->programs[0].instructions; }
  plan::Gemm &product() { return std::get<plan::Gemm>(instructions()[Product].action); }
  plan::Kernel &relu() { return std::get<plan::Kernel>(instructions()[Relu].action); }
  void insert(int64_t at, plan::Action action) {
    instructions().insert(instructions().begin() + at, {std::move(action), "node"});
  }
  void workInPlace() {
    relu().args[2].place = relu().args[0].place;
    std::get<plan::StoreOutput>(instructions()[Store].action).src = {P, 0};
  }
  /// The plan as a device that has all epilogues runs it. Where the plan passes its check, this one does.
  plan::Plan fused() const {
    DeviceTraits traits;
    traits.fuses = [](const GemmCall &) { return Expected<bool>(true); };
    Expected<SpecialStage> special = specialise(plan, {}, traits, /*storesOutputs=*/true);
    plan::Plan fused = plan;
    if (special.ok())
      fused.stages[0] = *special->stage;
    EXPECT_TRUE(special.ok() && special->directPorts.empty());
    plan::Plan done = fused; // the check takes a skipped kernel's operands as read
    auto &instructions = done.stages[0].programs[0].instructions;
    instructions.erase(std::remove_if(instructions.begin(), instructions.end(),
                                      [](const plan::Instruction &each) { return plan::isEverywhere(each.when, 0); }),
                       instructions.end());
    EXPECT_TRUE(plan::checkPlan(done).ok() || !plan::checkPlan(plan).ok()) << plan::checkPlan(done).text();
    return fused;
  }
  bool isFused() const {
    const plan::Plan fused = this->fused();
    const auto &instructions = fused.stages[0].programs[0].instructions;
    return std::any_of(instructions.begin(), instructions.end(), [](const plan::Instruction &instruction) {
      const auto *gemm = std::get_if<plan::Gemm>(&instruction.action);
      return gemm && gemm->epilogue;
    });
  }
};

/// The host, with products that have epilogues.
class FusingDevice : public host::HostDevice {
public:
  explicit FusingDevice(int &count) : count(count) {}
  bool worksInHostMemory() const override { return false; } // as cards, which load and store
  Expected<bool> fuses(const GemmCall &) override { return true; }
  Status gemm(GemmHandle handle, const GemmCall &call) override {
    HPC_RETURN_IF_ERROR(HostDevice::gemm(handle, call));
    if (!call.epilogue)
      return Status::success();
    ++count;
    auto *c = reinterpret_cast<float *>(call.c);
    for (int64_t i = 0; i < call.m * call.n; ++i)
      c[i] = std::max(c[i] + reinterpret_cast<const float *>(call.bias)[i % call.n], 0.0f);
    return Status::success();
  }

private:
  int &count;
};

class FusingBackend : public Backend {
public:
  explicit FusingBackend(int &count) : count(count) {}
  Status load(const plan::Plan &plan, RankRange ranks, int64_t threads) override {
    return host->load(plan, ranks, threads);
  }
  Expected<KernelHandle> kernel(const std::string &symbol) const override { return host->kernel(symbol); }
  Expected<std::unique_ptr<Device>> createDevice(const RankPlace &, ThreadPool &) override {
    return std::unique_ptr<Device>(std::make_unique<FusingDevice>(count));
  }
  Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place, int64_t requests) override {
    return host->createCommunicator(place, requests);
  }
  void fail(const Status &error) override { host->fail(error); }
  Status agree(const Status &mine, bool *answer) override { return host->agree(mine, answer); }

private:
  std::unique_ptr<Backend> host = host::createHostBackend();
  int &count;
};

/// How many epilogues ran in two steps, whose numbers are right.
int runTwice(BiasPlan &test, bool observed = false) {
  EXPECT_TRUE(plan::checkPlan(test.plan).ok()) << plan::checkPlan(test.plan).text();
  int epilogues = 0;
  SessionOptions options;
  options.poison = true;
  if (observed)
    options.observer = [](const ObservedInstruction &) { return Status::success(); };
  Expected<std::unique_ptr<Session>> session =
      Session::create(test.plan, std::make_unique<FusingBackend>(epilogues), options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  for (int64_t seed : {3, 4}) {
    const std::vector<float> values = TinyPlan::values(24, seed);
    Array x = Array::zeros(DType::F32, {4, 6});
    std::copy(values.begin(), values.end(), x.as<float>());
    Expected<std::vector<Array>> outputs = (*session)->run({x});
    EXPECT_TRUE(outputs.ok()) << outputs.status().text();
    for (size_t i = 0; i < 12; ++i) {
      float sum = test.bias[i % 3];
      for (size_t k = 0; k < 6; ++k)
        sum += values[i / 3 * 6 + k] * test.w[k * 3 + i % 3];
      EXPECT_EQ((*outputs)[0].as<float>()[i], std::max(sum, 0.0f)) << i;
    }
  }
  return epilogues;
}

} // namespace

TEST(EpilogueFusion, TheProductWritesTheResult) {
  BiasPlan test;
  const plan::Plan fused = test.fused();
  std::vector<std::string> lines;
  for (const plan::Instruction &instruction : fused.stages[0].programs[0].instructions)
    lines.push_back(plan::instructionLine(fused, fused.stages[0], instruction));
  EXPECT_THAT(lines, testing::ElementsAre(
                         "load b0 = input x: whole  # x", "gemm b4 = b0 * b1, m 4, n 3, k 6, ld 6 3 3, then bias and relu b2  # product",
                         testing::AllOf(testing::HasSubstr("test_bias_relu"), testing::EndsWith(", when 0  # relu")),
                         testing::StartsWith("store output y = b4: whole")));
  EXPECT_EQ(runTwice(test), 2);
  BiasPlan inPlace;
  inPlace.workInPlace();
  EXPECT_EQ(runTwice(inPlace), 2);
}

// A device that takes a product at some micro-batch or extent only, or fails at the question.
TEST(EpilogueFusion, TheDeviceHasTheLastWord) {
  BiasPlan test;
  test.plan.microBatches = 2;
  test.product().k.values = {6, 0};
  std::vector<int64_t> asked;
  DeviceTraits traits;
  traits.fuses = [&](const GemmCall &call) {
    EXPECT_EQ(call.epilogue, plan::EpilogueKind::BiasRelu);
    EXPECT_EQ(call.m * call.n, 12);
    asked.push_back(call.k);
    return Expected<bool>(call.k > 0);
  };
  Expected<SpecialStage> special = specialise(test.plan, {}, traits, true);
  ASSERT_TRUE(special.ok());
  EXPECT_EQ(asked, (std::vector<int64_t>{6, 0}));
  EXPECT_TRUE(plan::isEverywhere(special->stage->programs[0].instructions[Relu].when, 1));
  traits.fuses = [](const GemmCall &) -> Expected<bool> { return Status::error(ErrorKind::Internal, "is gone"); };
  EXPECT_THAT(specialise(test.plan, {}, traits, true).status().message(), testing::HasSubstr("gemm of node 'product': is gone"));
}

// An observer may read what each instruction has written.
TEST(EpilogueFusion, NotWhereSomebodyLooks) {
  BiasPlan test;
  EXPECT_EQ(runTwice(test, /*observed=*/true), 0);
}

// The product's operand is dead where the kernel begins, so the result may lie there: the product would overwrite what
// it still reads.
TEST(EpilogueFusion, NotOverItsOwnOperand) {
  BiasPlan test;
  test.stage->buffers[R].offset = test.stage->buffers[X].offset;
  EXPECT_FALSE(test.isFused());
  EXPECT_EQ(runTwice(test), 0);
  BiasPlan behind; // the last bytes of what ends there
  behind.stage->buffers[R].offset = behind.stage->buffers[X].offset + 64;
  EXPECT_FALSE(behind.isFused());
  BiasPlan beside;
  beside.stage->buffers[R].offset = beside.stage->buffers[Other].offset;
  EXPECT_TRUE(beside.isFused());
}

TEST(EpilogueFusion, NotWhereTheProductIsReadToo) {
  BiasPlan between;
  between.insert(Relu, plan::Copy{{P, 44}, {Other, 0}, 4});
  EXPECT_FALSE(between.isFused());
  BiasPlan behind;
  behind.insert(Store, plan::Copy{{P, 0}, {Other, 0}, 4});
  EXPECT_FALSE(behind.isFused());
  BiasPlan result; // in place, where it is the kernel's result that is read
  result.workInPlace();
  result.insert(Store, plan::Copy{{P, 0}, {Other, 0}, 4});
  EXPECT_TRUE(result.isFused());
  BiasPlan later; // another program, or another step
  later.stage->buffers[P].lifetime = plan::Lifetime::Step;
  EXPECT_FALSE(later.isFused());
}

TEST(EpilogueFusion, NotAroundWhatUsesTheResultsPlace) {
  BiasPlan reads;
  reads.insert(Load, plan::Copy{{X, 0}, {Other, 0}, 48});
  reads.insert(Relu + 1, plan::Copy{{Other, 0}, {X, 0}, 48});
  EXPECT_TRUE(reads.isFused());
  reads.stage->buffers[R].offset = reads.stage->buffers[Other].offset;
  EXPECT_FALSE(reads.isFused());
  BiasPlan writes;
  writes.insert(Relu, plan::Copy{{X, 0}, {Other, 0}, 48});
  EXPECT_TRUE(writes.isFused());
  writes.stage->buffers[R].offset = writes.stage->buffers[Other].offset;
  EXPECT_FALSE(writes.isFused());
}

TEST(EpilogueFusion, NotBeforeTheBiasIsThere) {
  BiasPlan before, between;
  for (BiasPlan *test : {&before, &between})
    test->relu().args[1].place = {Other, 0};
  before.insert(Load, plan::Copy{{Bias, 0}, {Other, 0}, 12});
  EXPECT_TRUE(before.isFused());
  between.insert(Relu, plan::Copy{{Bias, 0}, {Other, 0}, 12});
  EXPECT_FALSE(between.isFused());
  BiasPlan posted; // what a Wait completes may be the bias, or lie where the result will
  posted.insert(Relu, plan::Wait{0});
  EXPECT_FALSE(posted.isFused());
}

TEST(EpilogueFusion, NotOfABiasInTheProductOrUnderTheResult) {
  BiasPlan own;
  own.relu().args[1].place = {P, 12};
  EXPECT_FALSE(own.isFused());
  BiasPlan row; // one row over its bias
  row.product().m = 1;
  row.relu().args[0].bytes = row.relu().args[2].bytes = 12;
  EXPECT_TRUE(row.isFused());
  row.relu().args[2].place = row.relu().args[1].place;
  EXPECT_FALSE(row.isFused());
}

// The argument must be what one product has made, whole and dense.
TEST(EpilogueFusion, NotOfAnythingElse) {
  const std::function<void(BiasPlan &)> changes[] = {
      [](BiasPlan &test) { test.relu().epilogue.reset(); },
      [](BiasPlan &test) {
        test.insert(Relu, plan::Copy{{X, 0}, {P, 44}, 4});
      }, // another wrote last
      [](BiasPlan &test) {
        test.instructions()[Product].action = plan::Copy{{X, 0}, {P, 0}, 48};
      },
      [](BiasPlan &test) { test.product().m = 3; },
      [](BiasPlan &test) { test.product().m = TinyPlan::byRank(4, 3); },
      [](BiasPlan &test) { test.product().n = TinyPlan::byRank(3, 2); },
      [](BiasPlan &test) { test.product().n = 2; },
      [](BiasPlan &test) { test.product().c.ld = 4; },
      [](BiasPlan &test) { test.product().c.place.byteOffset = 12; },
      [](BiasPlan &test) { test.product().c.dtype = DType::F64; },
      [](BiasPlan &test) { test.product().addToC = TinyPlan::byRank(0, 1); },
      [](BiasPlan &test) {
        test.product().batch = {1};
        test.product().a.stride = test.product().b.stride = test.product().c.stride = {0};
      },
      [](BiasPlan &test) { test.relu().args[1].bytes = 24; },
      [](BiasPlan &test) { test.instructions()[Relu].when = TinyPlan::byRank(1, 0); },
      [](BiasPlan &test) { test.instructions()[Product].onRequest = true; },
  };
  for (const auto &change : changes)
    for (bool inPlace : {false, true}) {
      BiasPlan test;
      if (inPlace)
        test.workInPlace();
      EXPECT_TRUE(test.isFused());
      change(test);
      EXPECT_FALSE(test.isFused()) << "change " << &change - changes << " in place " << inPlace;
    }
  BiasPlan requested; // both alike
  requested.instructions()[Product].onRequest = requested.instructions()[Relu].onRequest = true;
  EXPECT_TRUE(requested.isFused());
}
