// Pipelines against the closed forms of their papers (ScheduleKinds.h), and ranks that stand for others against all ranks by themselves.
#include "runtime/cost/Predict.h"
#include "runtime/plan/Groups.h"
#include "runtime/plan/ScheduleKinds.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::cost;

namespace {

/// A schedule's programs, each one instruction of work that is called as the program; between the stages messages as ranks of equal
/// coordinates exchange them. With groups, work has an all-reduce over tp after it and the update a posted one over dp.
struct PipelineBuilder {
  ScheduleKind kind;
  int64_t stages, chunks, microBatches;
  std::vector<Axis> axes = {{"dp", 1}, {"tp", 1}};
  bool hasGroups = false;

  enum Request { Activation, SendActivation, Gradient, SendGradient };
  int32_t request(int64_t chunk, Request which) const { return int32_t(chunk * 4 + which); }

  ByCoord peers(int64_t stage, int64_t ranks) const {
    ByCoord peer;
    peer.values.clear();
    for (int64_t coordinate = 0; coordinate < ranks; ++coordinate)
      peer.values.push_back(((stage + stages) % stages) * ranks + coordinate);
    return peer;
  }

  static Collective reduce(const char *axis, int32_t request) {
    Collective collective;
    collective.axes = {axis};
    collective.count = 4;
    collective.src = collective.dst = {0, 0};
    collective.request = request;
    return collective;
  }

  Program program(const ProgramPlace &place, const Pipeline &pipeline, int64_t ranks) const {
    const int64_t part = place.chunk * stages + place.stage;
    const bool isForward = place.kind == ProgramKind::Forward, isBackward = place.kind == ProgramKind::Backward;
    const bool receives = isForward ? part > 0 : isBackward && part < pipeline.parts() - 1;
    const bool sends = isForward ? part < pipeline.parts() - 1 : isBackward && part > 0;
    Program program{place.kind, place.chunk, {}};
    if (receives)
      program.instructions.push_back({Wait{request(place.chunk, isForward ? Activation : Gradient)}, ""});
    program.instructions.push_back({Copy{{0, 0}, {1, 0}, 4}, kindText(place.kind)});
    if (hasGroups && place.kind != ProgramKind::Update)
      program.instructions.push_back({reduce("tp", -1), "tp"});
    if (hasGroups && place.kind == ProgramKind::Update) {
      const int32_t posted = int32_t(chunks * 4);
      program.instructions.push_back({reduce("dp", posted), "dp"});
      program.instructions.push_back({Copy{{0, 0}, {1, 0}, 4}, "U2"});
      program.instructions.push_back({Wait{posted}, ""});
    }
    if (sends) {
      const int64_t next = part + (isForward ? 1 : -1);
      Send send;
      send.src = {0, 0};
      send.bytes = 4;
      send.peer = peers(next % stages, ranks);
      send.channel = int32_t(next / stages * 2 + isBackward);
      send.request = request(place.chunk, isForward ? SendActivation : SendGradient);
      program.instructions.push_back({send, "message"});
    }
    return program;
  }

  void addTransferPrograms(std::vector<Program> &programs, const ProgramPlace &place, const Pipeline &pipeline, int64_t ranks) const {
    const int64_t part = place.chunk * stages + place.stage;
    const bool isForward = place.kind == ProgramKind::Forward;
    if (!isForward && place.kind != ProgramKind::Backward)
      return;
    if (isForward ? part > 0 : part < pipeline.parts() - 1) {
      Recv recv;
      recv.dst = {0, 0};
      recv.bytes = 4;
      recv.peer = peers((part + (isForward ? -1 : 1)) % stages, ranks);
      recv.channel = place.chunk * 2 + !isForward;
      recv.request = request(place.chunk, isForward ? Activation : Gradient);
      programs.push_back({receiveOf(place.kind), place.chunk, {{recv, ""}}});
    }
    if (isForward ? part < pipeline.parts() - 1 : part > 0)
      programs.push_back({drainOf(place.kind), place.chunk, {{Wait{request(place.chunk, isForward ? SendActivation : SendGradient)}, ""}}});
  }

  Plan build() const {
    Plan plan;
    plan.axes = axes;
    plan.microBatches = microBatches;
    const int64_t ranks = plan.ranksPerStage();
    const Pipeline pipeline = pipelineOf(kind, stages, chunks, microBatches);
    PipelineSchedule schedule = *makeSchedule(kind, stages, chunks, microBatches);
    addTransfers(pipeline, schedule);
    for (int64_t s = 0; s < stages; ++s) {
      Stage &stage = plan.stages.emplace_back();
      stage.buffers.resize(2);
      for (const ProgramPlace &place : pipeline.programs)
        if (place.stage == s) {
          addTransferPrograms(stage.programs, place, pipeline, ranks);
          stage.programs.push_back(program(place, pipeline, ranks));
        }
      stage.requests.assign(size_t(chunks * 4 + 1), microBatches);
      Expected<std::vector<ScheduleStep>> bound = bindSchedule(schedule[size_t(s)], stage.programs);
      EXPECT_TRUE(bound.ok()) << bound.status().text();
      stage.schedule = *bound;
    }
    return plan;
  }
};

Durations byName(std::map<std::string, double> seconds) {
  return [seconds](const InstructionRun &run) {
    auto found = seconds.find(run.instruction.node);
    return found == seconds.end() ? 0 : found->second;
  };
}

Prediction of(const PipelineBuilder &builder, const std::map<std::string, double> &seconds, const Machine &machine = {}) {
  Expected<Prediction> prediction = predict(builder.build(), machine, byName(seconds));
  EXPECT_TRUE(prediction.ok()) << prediction.status().text();
  return *prediction;
}

} // namespace

// (p - 1) / (m + p - 1) of the time is idle, whatever B is beside F (Narayanan et al. 2019, Huang et al. 2019).
TEST(PredictPipeline, OneForwardOneBackward) {
  for (ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::OneForwardOneBackward})
    for (auto [p, m] : {std::pair<int64_t, int64_t>(2, 4), {4, 4}, {4, 16}, {8, 32}}) {
      Prediction prediction = of({kind, p, 1, m}, {{"F", 1}, {"B", 2}});
      EXPECT_DOUBLE_EQ(prediction.seconds, 3.0 * double(m + p - 1)) << p << " " << m;
      EXPECT_NEAR(prediction.bubble, double(p - 1) / double(m + p - 1), 1e-12);
      EXPECT_EQ(prediction.simulatedRanks, p);
    }
}

// (p - 1) / (v m + p - 1) where p divides m (Narayanan et al. 2021, section 2.2); a chunk takes a v-th of a stage.
TEST(PredictPipeline, Interleaved) {
  for (auto [p, v, m] : {std::array<int64_t, 3>{2, 2, 4}, {4, 2, 8}, {4, 4, 8}}) {
    Prediction prediction = of({ScheduleKind::Interleaved, p, v, m}, {{"F", 1}, {"B", 2}});
    EXPECT_NEAR(prediction.bubble, double(p - 1) / double(v * m + p - 1), 1e-12) << p << " " << v << " " << m;
  }
}

// (p - 1) / (3m + p - 1) where F, B and W take the same (Qi et al. 2023, section 2.2).
TEST(PredictPipeline, ZeroBubble) {
  for (auto [p, m] : {std::pair<int64_t, int64_t>(2, 4), {4, 8}})
    EXPECT_NEAR(of({ScheduleKind::ZeroBubbleH1, p, 1, m}, {{"F", 1}, {"B", 1}, {"W", 1}}).bubble, double(p - 1) / double(3 * m + p - 1), 1e-12);
}

// Messages beside computation: they are posted before the program that precedes the one that waits, so that only the first and the last, on the
// way through all stages, are exposed. 2 stages, F = B = 2, messages 1: stage 1 waits from 2 to 3, and at the end until its last gradient is sent.
TEST(PredictPipeline, MessagesHideBehindComputation) {
  const double without = of({ScheduleKind::GPipe, 2, 1, 8}, {{"F", 2}, {"B", 2}}).seconds;
  Prediction prediction = of({ScheduleKind::GPipe, 2, 1, 8}, {{"F", 2}, {"B", 2}, {"message", 1}});
  EXPECT_DOUBLE_EQ(prediction.seconds, without + 2);
  EXPECT_DOUBLE_EQ(prediction.ranks[1].exposed, 2);
  EXPECT_DOUBLE_EQ(prediction.ranks[1].communicating, 16);
}

// Two ranks a host on one processor: tp's work takes turns; with a processor each it does not.
TEST(PredictPipeline, SharedProcessors) {
  PipelineBuilder builder{ScheduleKind::Inference, 1, 1, 4, {{"dp", 1}, {"tp", 2}}};
  Machine machine;
  machine.ranksPerHost = 2;
  machine.cores = 1;
  EXPECT_DOUBLE_EQ(of(builder, {{"F", 1}}, machine).seconds, 8);
  machine.cores = 2;
  EXPECT_DOUBLE_EQ(of(builder, {{"F", 1}}, machine).seconds, 4);
}

// The same seconds to the last bit, whatever is shared: 300 pipelines with random durations on random machines.
TEST(PredictPipeline, RanksStandForThoseAlike) {
  std::mt19937 random(7);
  auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  auto time = [&] { return std::uniform_real_distribution<double>(0.1, 3)(random); };
  int64_t fewer = 0;
  for (int i = 0; i < 300; ++i) {
    const ScheduleKind kind = ScheduleKind(draw(0, 4));
    const int64_t stages = draw(kind == ScheduleKind::Inference ? 1 : 2, 4), chunks = kind == ScheduleKind::Interleaved ? 2 : 1;
    PipelineBuilder builder{kind, stages, chunks, stages * draw(1, 3), {{"dp", draw(1, 3)}, {"tp", draw(1, 4)}}, true};
    Plan plan = builder.build();
    const int64_t ranks = plan.ranksPerStage();
    if (i % 3 == 0) // some coordinates skip some work
      for (Stage &stage : plan.stages)
        for (Program &program : stage.programs)
          for (Instruction &instruction : program.instructions)
            if (instruction.node == "F") {
              instruction.when.values.clear();
              for (int64_t c = 0; c < ranks; ++c)
                instruction.when.values.push_back(c % 2);
            }
    Machine machine;
    machine.ranksPerHost = draw(0, 3);
    machine.links = {{std::max<int64_t>(machine.ranksPerHost, 2), 1e-6, 1e9}, {0, 1e-5, 1e8}};
    machine.overlapSlowdown = i % 2 ? 1.3 : 1;
    machine.cores = i % 4 == 0 ? draw(1, 2) : 0;
    if (i % 5 == 0)
      machine.differences = {{draw(0, 2), draw(1, 3), 0.75, 0}};
    const Durations named = byName({{"F", time()}, {"B", time()}, {"W", time()}, {"U", time()}, {"U2", time()}, {"tp", time()}, {"dp", time()}, {"message", time()}});
    // Groups of odd number take longer, as those that cross hosts do.
    const Durations durations = [&](const InstructionRun &run) {
      const auto *collective = std::get_if<Collective>(&run.instruction.action);
      return named(run) * (i % 2 && collective && seatOf(plan.axes, run.coordinate, collective->axes).group % 2 ? 1.5 : 1);
    };
    Expected<Prediction> some = predict(plan, machine, durations), all = predict(plan, machine, durations, {true, {}});
    ASSERT_TRUE(some.ok() && all.ok()) << i;
    ASSERT_EQ(some->seconds, all->seconds) << i;
    EXPECT_EQ(all->simulatedRanks, plan.worldSize());
    fewer += some->simulatedRanks < all->simulatedRanks;
    for (size_t rank = 0; rank < all->ranks.size(); ++rank) {
      ASSERT_EQ(some->ranks[rank].computing, all->ranks[rank].computing) << i << " " << rank;
      ASSERT_NEAR(some->ranks[rank].communicating, all->ranks[rank].communicating, 1e-12 * all->seconds) << i << " " << rank; // a sum of two that end together
      ASSERT_EQ(some->ranks[rank].exposed, all->ranks[rank].exposed) << i << " " << rank;
    }
    ASSERT_EQ(some->path.size(), all->path.size()) << i;
    for (size_t part = 0; part < all->path.size(); ++part)
      EXPECT_EQ(some->path[part].seconds, all->path[part].seconds) << i << " " << all->path[part].what;
    EXPECT_NEAR(some->bytesSent, all->bytesSent, 1e-9 * all->bytesSent);
  }
  EXPECT_GT(fewer, 150);
}
