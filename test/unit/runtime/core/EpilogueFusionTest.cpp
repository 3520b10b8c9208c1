// Which products take a kernel over, and that a step gives the same numbers if they do. A plan of one rank: x is
// loaded, p = x w, r = relu(p + bias), r is stored; each case adds the one thing that makes it impossible, or does not.
#include "runtime/core/EpilogueFusion.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/host/HostDevice.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
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
  bool isFused() const {
    const std::vector<FusedEpilogue> found = findFusedEpilogues(plan, *stage, stage->programs[0]);
    return found.size() == 1;
  }
};

/// The host, with products that have epilogues.
class FusingDevice : public host::HostDevice {
public:
  explicit FusingDevice(int &count) : count(count) {}
  bool worksInHostMemory() const override { return false; } // as cards, which load and store
  Expected<GemmHandle> prepareFused(const GemmCall &call) override { return prepare(call); }
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
  const std::vector<FusedEpilogue> found = findFusedEpilogues(test.plan, *test.stage, test.stage->programs[0]);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].product, Product);
  EXPECT_EQ(found[0].kernel, Relu);
  EXPECT_EQ(found[0].gemm.c.place.buffer, R);
  EXPECT_EQ(found[0].bias.buffer, Bias);
  EXPECT_EQ(runTwice(test), 2);
  BiasPlan inPlace;
  inPlace.workInPlace();
  EXPECT_EQ(runTwice(inPlace), 2);
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
