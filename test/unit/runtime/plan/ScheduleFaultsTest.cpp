// Damaged schedules. Each way to break a list is tried at every place, and the checker's verdict is compared with a
// second definition of what may run: a graph of what must come before what, which must have no circle.
#include "runtime/plan/ScheduleCheck.h"
#include "runtime/plan/ScheduleKinds.h"
#include "runtime/plan/ScheduleSlots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace hpc;
using namespace hpc::plan;
using testing::HasSubstr;

namespace {

struct Good {
  Pipeline pipeline;
  PipelineSchedule schedule;
};

/// One of each kind, small enough to be broken everywhere.
std::vector<Good> goodSchedules() {
  std::vector<Good> all;
  for (auto [kind, p, v, m] :
       {std::tuple(ScheduleKind::Inference, 3, 1, 3), std::tuple(ScheduleKind::Inference, 2, 2, 3),
        std::tuple(ScheduleKind::GPipe, 2, 1, 3), std::tuple(ScheduleKind::OneForwardOneBackward, 3, 1, 3),
        std::tuple(ScheduleKind::Interleaved, 2, 2, 2), std::tuple(ScheduleKind::ZeroBubbleH1, 2, 1, 3)}) {
    Good good{pipelineOf(kind, p, v, m), *makeSchedule(kind, p, v, m)};
    addTransfers(good.pipeline, good.schedule);
    all.push_back(std::move(good));
  }
  return all;
}

std::string messageOf(const Pipeline &pipeline, const PipelineSchedule &schedule) {
  Expected<ScheduleFacts> facts = checkSchedule(pipeline, schedule);
  return facts.ok() ? "ok" : facts.status().text();
}

using Node = std::tuple<int32_t, ProgramKind, int32_t, int32_t>; // stage, kind, micro-batch, chunk

/// The second definition, for lists that have each action once.
struct Graph {
  std::map<Node, std::set<Node>> later;

  bool isCircle(const Node &node, std::set<Node> &open, std::set<Node> &done) {
    if (done.count(node))
      return false;
    if (!open.insert(node).second)
      return true;
    for (const Node &next : later[node])
      if (isCircle(next, open, done))
        return true;
    done.insert(node);
    open.erase(node);
    return false;
  }
};

bool mayRun(const Pipeline &pipeline, const PipelineSchedule &schedule) {
  Graph graph;
  std::map<Node, size_t> position;
  for (int32_t s = 0; s < int32_t(schedule.size()); ++s)
    for (size_t i = 0; i < schedule[s].size(); ++i) {
      auto node = [&](size_t at) {
        return Node(s, schedule[s][at].kind, schedule[s][at].microBatch, schedule[s][at].chunk);
      };
      position[node(i)] = i;
      if (i > 0)
        graph.later[node(i - 1)].insert(node(i));
    }
  std::map<std::pair<int32_t, int32_t>, std::vector<std::pair<size_t, size_t>>> messages; // sent at, received at
  for (const auto &[before, after] : pipeline.dependencies)
    for (int32_t i = 0; i < pipeline.microBatches; ++i) {
      Node first(before.stage, before.kind, i, before.chunk);
      Node second(after.stage, after.kind, isPerStep(after.kind) ? 0 : i, after.chunk);
      graph.later[first].insert(second);
      if (before.stage == after.stage) {
        if (isPerStep(after.kind) && i > 0) // sums begin with micro-batch 0
          graph.later[Node(before.stage, before.kind, 0, before.chunk)].insert(first);
        continue;
      }
      Node receive(after.stage, receiveOf(after.kind), i, after.chunk),
          drain(before.stage, drainOf(before.kind), i, before.chunk);
      graph.later[receive].insert(second);
      graph.later[receive].insert(drain);
      graph.later[first].insert(drain);
      messages[{before.stage, after.stage}].push_back({position[first], position[receive]});
    }
  for (auto &[link, list] : messages) {
    std::sort(list.begin(), list.end());
    for (size_t i = 1; i < list.size(); ++i)
      if (list[i].second < list[i - 1].second)
        return false;
  }
  std::set<Node> open, done;
  for (const auto &[node, next] : std::map<Node, std::set<Node>>(graph.later))
    if (graph.isCircle(node, open, done))
      return false;
  return true;
}

// An action that is dropped is named as missing, one that is there twice as that, one of another stage as unknown or
// twice.
TEST(ScheduleFaults, DroppedDoubledAndStrayActionsAreNamed) {
  for (const Good &good : goodSchedules())
    for (size_t s = 0; s < good.schedule.size(); ++s)
      for (size_t i = 0; i < good.schedule[s].size(); ++i) {
        PipelineSchedule dropped = good.schedule, doubled = good.schedule, stray = good.schedule;
        std::string where = "stage " + std::to_string(s) + ": ", text = actionText(good.schedule[s][i]);
        dropped[s].erase(dropped[s].begin() + i);
        EXPECT_EQ(messageOf(good.pipeline, dropped), "error[plan]: " + where + text + " is missing");
        doubled[s].insert(doubled[s].begin() + i, good.schedule[s][i]);
        EXPECT_EQ(messageOf(good.pipeline, doubled), "error[plan]: " + where + text + ": is there twice");
        size_t other = (s + 1) % good.schedule.size();
        stray[other].push_back(good.schedule[s][i]);
        EXPECT_THAT(messageOf(good.pipeline, stray), HasSubstr("stage " + std::to_string(other) + ": " + text + ": "));
      }
}

// Every action moved to every other place of its list, and every two exchanged: the checker agrees with the graph, and
// an action that is used before it is made is refused wherever that is.
TEST(ScheduleFaults, MovedAndSwappedActionsAreJudgedAsTheGraphDoes) {
  int64_t refused = 0, accepted = 0;
  auto judge = [&](const Good &good, const PipelineSchedule &changed) {
    std::string message = messageOf(good.pipeline, changed);
    bool may = mayRun(good.pipeline, changed);
    EXPECT_EQ(message == "ok", may) << message;
    may ? ++accepted : ++refused;
  };
  for (const Good &good : goodSchedules()) {
    ASSERT_TRUE(mayRun(good.pipeline, good.schedule));
    for (size_t s = 0; s < good.schedule.size(); ++s)
      for (size_t i = 0; i < good.schedule[s].size(); ++i)
        for (size_t j = 0; j < good.schedule[s].size(); ++j) {
          PipelineSchedule moved = good.schedule, swapped = good.schedule;
          moved[s].erase(moved[s].begin() + i);
          moved[s].insert(moved[s].begin() + j, good.schedule[s][i]);
          judge(good, moved);
          std::swap(swapped[s][i], swapped[s][j]);
          judge(good, swapped);
        }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 1000);
}

TEST(ScheduleFaults, WhatIsWrongIsNamed) {
  auto check = [](const Pipeline &pipeline, const std::string &text) {
    return messageOf(pipeline, *parseScheduleFile(text));
  };
  Pipeline two = inferencePipeline(2, 1, 2), training = trainingPipeline(1, 1, 2, true);
  EXPECT_EQ(check(two, "F0 F1 DF0 DF1\nRF0 RF1 F0 F1"), "ok");
  EXPECT_EQ(check(two, "F0 F1"), "error[plan]: the schedule has lists for 1 stage, the pipeline has 2");
  EXPECT_EQ(check(two, "F0 F1 DF0 DF1\nRF0 F1 RF1 F0"),
            "error[plan]: stage 1: F1 stands before RF1, which posts the receives that it waits for");
  EXPECT_EQ(check(two, "F0 DF1 F1 DF0\nRF0 RF1 F0 F1"),
            "error[plan]: stage 0: DF1 stands before F1, whose sends it completes");
  EXPECT_EQ(
      check(two, "F0 F1 DF0 DF1\nRF1 RF0 F0 F1"),
      "error[plan]: stage 0: F0 sends to stage 1 what stage 1 receives by RF0, but that one posts RF1 first; both must "
      "take the messages between them in one order");
  EXPECT_EQ(check(two, "F0 F1 F2 DF0 DF1\nRF0 RF1 F0 F1"), "error[plan]: stage 0: F2: there are micro-batches 0 to 1");
  EXPECT_EQ(check(two, "F0 F1 B1 DF0 DF1\nRF0 RF1 F0 F1"),
            "error[plan]: stage 0: B1: the stage has no such program; it has F, DF");
  EXPECT_EQ(check(training, "F0 B0 W0 F1 W1 B1 U"),
            "error[plan]: stage 0: W1 stands before B1, which makes what it needs");
  EXPECT_EQ(check(training, "F0 B0 W0 F1 U B1 W1"),
            "error[plan]: stage 0: U stands before W1, which makes what it needs");
}

// The first stage waits until its send is taken, the second takes nothing before it has a gradient to give: who waits
// for whom is said, and nobody else.
TEST(ScheduleFaults, DeadlocksSayWhoWaitsForWhom) {
  Pipeline pipeline = trainingPipeline(3, 1, 2, false);
  PipelineSchedule schedule = *parseScheduleFile("F0 F1 RB0 B0 RB1 B1 DF0 DF1 U\n"
                                                 "RF0 F0 DF0 RB0 B0 DB0 RF1 F1 DF1 RB1 B1 DB1 U\n"
                                                 "RF0 F0 RF1 F1 B0 B1 DB0 DB1 U");
  EXPECT_EQ(messageOf(pipeline, schedule), "error[plan]: deadlock: stage 1 stands at B0 until stage 2 has run B0; "
                                           "stage 2 stands at F1 until stage 1 has run F1");
}

// Slots: a buffer with one too few is refused, and the two micro-batches that meet are named.
TEST(ScheduleFaults, ASlotTooFewIsNamed) {
  StageSchedule stage = *parseSchedule("F0 F1 F2 B0 F3 B1 B2 B3 U");
  SlotSpan saved{{ProgramKind::Forward, 0}, {{ProgramKind::Backward, 0}}};
  EXPECT_EQ(slotsNeeded(stage, saved), 3);
  EXPECT_TRUE(checkSlots(stage, saved, 4).ok());
  EXPECT_EQ(checkSlots(stage, saved, 2).text(),
            "error[plan]: F2: slot 0 of 2 still holds micro-batch 0 for B0; 3 slots are needed");
  EXPECT_EQ(checkSlots(stage, saved, 0).text(), "error[plan]: a buffer has 0 slots; 3 are needed");
  // Two readers: it is held until the last of them.
  StageSchedule split = *parseSchedule("F0 B0 F1 B1 W0 W1");
  EXPECT_EQ(slotsNeeded(split, {{ProgramKind::Forward, 0}, {{ProgramKind::Backward, 0}}}), 1);
  EXPECT_EQ(
      slotsNeeded(split, {{ProgramKind::Forward, 0}, {{ProgramKind::Backward, 0}, {ProgramKind::WeightGradient, 0}}}),
      2);
}

} // namespace
