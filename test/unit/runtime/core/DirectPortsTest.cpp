// Which loads and stores need no copy, and that a run through the caller's arrays gives what it gave. A plan of one rank:
// x is loaded, copied to y, and y is stored; each case adds what makes one of the two impossible.
#include "runtime/core/Specialise.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanPrinter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;

namespace {

constexpr int64_t count = 6;

plan::Slice slice(int64_t start, int64_t extent) { return {{count}, {start}, {extent}, {extent}}; }

struct CopyPlan {
  plan::Plan plan;

  CopyPlan() {
    plan.inputs.push_back({"x", DType::F32, {count}});
    plan.outputs.push_back({"y", DType::F32, {count}});
    plan::Stage &stage = plan.stages.emplace_back();
    for (const char *name : {"x", "y"}) {
      plan::Buffer buffer;
      buffer.name = name;
      buffer.box = {count};
      buffer.bytes = count * 4;
      buffer.offset = int64_t(stage.buffers.size()) * 64;
      stage.buffers.push_back(buffer);
    }
    stage.workBytes = 128;
    stage.programs.push_back({plan::ProgramKind::Forward, 0, {}});
    add(plan::LoadInput{0, {0, 0}, slice(0, count)});
    add(plan::Copy{{0, 0}, {1, 0}, count * 4});
    add(plan::StoreOutput{0, {1, 0}, slice(0, count), 1});
    stage.schedule = {{0, 0}};
  }
  std::vector<plan::Instruction> &instructions() { return plan.stages[0].programs[0].instructions; }
  void add(plan::Action action) { instructions().push_back({std::move(action), "node"}); }

  /// "in", "out", as found.
  std::vector<std::string> found() const {
    std::vector<std::string> list;
    for (const DirectPort &port : findDirectPorts(plan, plan.stages[0], Place{}, true))
      list.push_back(port.isOutput ? "out" : "in");
    return list;
  }
  std::vector<float> run() const {
    Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), {});
    if (!session.ok())
      return {};
    Array x = Array::zeros(DType::F32, {count});
    for (int64_t i = 0; i < count; ++i)
      x.as<float>()[i] = float(i + 1);
    const std::vector<std::byte> before = x.data;
    const std::vector<Array> inputs = {x};
    std::vector<float> all;
    for (int step = 0; step < 2; ++step) { // the arrays of the second step lie elsewhere
      Expected<std::vector<Array>> outputs = (*session)->run(inputs);
      if (!outputs.ok() || inputs[0].data != before)
        return {};
      all.assign((*outputs)[0].as<float>(), (*outputs)[0].as<float>() + count);
    }
    return all;
  }
};

const std::vector<float> same = {1, 2, 3, 4, 5, 6};

} // namespace

TEST(DirectPorts, WholePortsNeedNoCopy) {
  CopyPlan test;
  EXPECT_THAT(test.found(), testing::ElementsAre("in", "out"));
  DeviceTraits traits;
  std::vector<std::string> lines;
  for (bool worksInHostMemory : {false, true}) {
    traits.worksInHostMemory = worksInHostMemory;
    Expected<SpecialStage> special = specialise(test.plan, {}, traits, /*storesOutputs=*/true);
    ASSERT_TRUE(special.ok());
    EXPECT_EQ(special->directPorts.size(), worksInHostMemory ? 2u : 0u);
    for (const plan::Instruction &instruction : special->stage->programs[0].instructions)
      lines.push_back(plan::instructionLine(test.plan, *special->stage, instruction));
  }
  EXPECT_THAT(lines, testing::ElementsAre("load b0 = input x: whole  # node", "copy b1 = b0, 24 bytes  # node",
                                          "store output y = b1: whole, owner 1  # node", "load b0 = input x: whole, when 0  # node",
                                          "copy b1 = b0, 24 bytes  # node", "store output y = b1: whole, owner 1, when 0  # node"));
  EXPECT_EQ(test.run(), same);
}

// A kernel that works in place would write into the caller's input.
TEST(DirectPorts, AnInputThatIsOverwrittenIsCopied) {
  CopyPlan test;
  test.add(plan::Copy{{1, 0}, {0, 0}, count * 4});
  EXPECT_THAT(test.found(), testing::ElementsAre("out"));
  EXPECT_EQ(test.run(), same);
}

// Logits that become their gradient in place, for example: the caller gets what was stored.
TEST(DirectPorts, AnOutputThatIsOverwrittenLaterIsCopied) {
  CopyPlan test;
  test.add(plan::Copy{{0, 4}, {1, 0}, 4});
  EXPECT_THAT(test.found(), testing::ElementsAre("in"));
  EXPECT_EQ(test.run(), same);
}

// One buffer cannot be an input's array and an output's.
TEST(DirectPorts, ABufferIsOneArray) {
  CopyPlan test;
  std::get<plan::StoreOutput>(test.instructions()[2].action).src = {0, 0};
  EXPECT_THAT(test.found(), testing::ElementsAre("in"));
  EXPECT_EQ(test.run(), same);
}

// Half of a port is half of somebody's array; the rest of the buffer would lie behind its end.
TEST(DirectPorts, PartsAreCopied) {
  CopyPlan test;
  std::get<plan::LoadInput>(test.instructions()[0].action).slice = slice(0, count - 1);
  std::get<plan::StoreOutput>(test.instructions()[2].action).slice = slice(1, count - 1);
  EXPECT_THAT(test.found(), testing::IsEmpty());
}

TEST(DirectPorts, BuffersOfSeveralProgramsOrMicroBatchesAreCopied) {
  CopyPlan later;
  later.plan.stages[0].programs.push_back({plan::ProgramKind::Forward, 0, {later.instructions()[2]}});
  later.instructions().pop_back();
  EXPECT_THAT(later.found(), testing::ElementsAre("in"));
  later.plan.stages[0].schedule.push_back({1, 0}); // each of them once: still two programs
  EXPECT_THAT(later.found(), testing::ElementsAre("in"));
  CopyPlan twice;
  twice.plan.stages[0].schedule.push_back({0, 0});
  EXPECT_THAT(twice.found(), testing::IsEmpty());
  CopyPlan parts;
  parts.plan.microBatches = 2;
  EXPECT_THAT(parts.found(), testing::IsEmpty());
}

// Another rank would read the caller's input, or write the caller's output: while the step runs, and after one that has
// failed, when the caller has its arrays back and the engine may still be at the message.
TEST(DirectPorts, WhatTravelsBetweenRanksIsCopied) {
  using Kind = plan::CollectiveKind;
  auto collective = [](Kind kind, plan::Ref source, plan::Ref target) {
    plan::Collective action;
    action.kind = kind;
    action.count = count;
    action.src = source;
    action.dst = target;
    return action;
  };
  const plan::Ref x{0, 0}, y{1, 0};
  const std::vector<std::string> in = {"in"}, out = {"out"}, none;
  auto found = [](bool isBefore, const std::vector<plan::Action> &actions) {
    CopyPlan test;
    test.plan.stages[0].buffers.push_back(test.plan.stages[0].buffers[1]); // of the collectives
    for (const plan::Action &action : actions) // behind the copy to y: y is stored later in any case
      test.instructions().insert(test.instructions().begin() + (isBefore ? 1 : 2), {action, "node"});
    return test.found();
  };
  EXPECT_EQ(found(true, {plan::Send{x, count * 4, 1, 0, 0, {}}}), out);
  EXPECT_EQ(found(true, {plan::Send{x, 4, 1, 0, 0, {}}}), out) << "a part of it";
  EXPECT_EQ(found(false, {plan::Send{y, count * 4, 1, 0, 0, {}}}), in) << "an output that is sent, too";
  EXPECT_EQ(found(false, {plan::Recv{y, count * 4, 1, 0, 0, {}}}), in);
  EXPECT_EQ(found(false, {plan::Recv{y, 4, 1, 0, 0, {}}}), in) << "a part of it";
  for (Kind kind : {Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::AllToAll, Kind::Permute}) {
    EXPECT_EQ(found(true, {collective(kind, x, {2, 0})}), out);
    EXPECT_EQ(found(false, {collective(kind, {2, 0}, y)}), in);
    EXPECT_EQ(found(false, {collective(kind, x, y)}), none);
  }
  // In another program: its buffer is of that program alone.
  EXPECT_THAT(CopyPlan().found(), testing::ElementsAre("in", "out"));
}

// Each other condition, in a case in which it alone says no.
TEST(DirectPorts, EachConditionAlone) {
  auto found = [](auto change) {
    CopyPlan test;
    change(test, test.plan.stages[0], test.instructions());
    return test.found();
  };
  using Test = CopyPlan &;
  using Stage = plan::Stage &;
  using List = std::vector<plan::Instruction> &;
  const std::vector<std::string> both = {"in", "out"}, in = {"in"}, out = {"out"};
  EXPECT_EQ(found([](Test, Stage, List) {}), both);
  for (plan::Lifetime lifetime : {plan::Lifetime::Session, plan::Lifetime::Step, plan::Lifetime::MicroBatch}) {
    EXPECT_EQ(found([&](Test, Stage stage, List) { stage.buffers[0].lifetime = lifetime; }), out);
    EXPECT_EQ(found([&](Test, Stage stage, List) { stage.buffers[1].lifetime = lifetime; }), in);
  }
  EXPECT_EQ(found([](Test, Stage stage, List) { stage.buffers[0].slots = 2; }), out);
  // Not at its beginning; and something else beyond the port's end.
  EXPECT_EQ(found([](Test, Stage, List list) { std::get<plan::LoadInput>(list[0].action).dst.byteOffset = 4; }), out);
  EXPECT_EQ(found([](Test, Stage, List list) { std::get<plan::Copy>(list[1].action).bytes += 4; }), std::vector<std::string>());
  // Only what is done: by this rank, in every step, where the arrays are.
  EXPECT_EQ(found([](Test, Stage, List list) { list[0].when = 0; }), out);
  EXPECT_EQ(found([](Test, Stage, List list) { list[2].when = 0; }), in);
  EXPECT_EQ(found([](Test, Stage, List list) { list[2].onRequest = true; }), in);
  EXPECT_EQ(found([](Test test, Stage, List) { test.plan.outputs[0].onRequest = true; }), in);
  EXPECT_EQ(found([](Test, Stage, List list) { std::get<plan::StoreOutput>(list[2].action).owner = 0; }), in);
  CopyPlan elsewhere;
  std::vector<DirectPort> ports = findDirectPorts(elsewhere.plan, elsewhere.plan.stages[0], Place{}, /*storesOutputs=*/false);
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_FALSE(ports[0].isOutput);
  // A buffer that two inputs are loaded into is neither's.
  EXPECT_EQ(found([](Test test, Stage, List list) {
              test.plan.inputs.push_back({"z", DType::F32, {count}});
              list.insert(list.begin() + 1, {plan::LoadInput{1, {0, 0}, slice(0, count)}, "node"});
            }),
            out);
}
