// Schedules: the builder's lists, their text form, and the independent checker over a grid of sizes and over broken
// lists.
#include "runtime/plan/Schedule.h"

#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;

namespace {

std::vector<StageSchedule> pipeline(int64_t stages, int64_t microBatches, int64_t slots) {
  std::vector<StageSchedule> schedules;
  for (int64_t stage = 0; stage < stages; ++stage)
    schedules.push_back(inferenceSchedule(stage, stages, microBatches, slots));
  return schedules;
}

std::vector<StageSchedule> parseAll(const std::vector<std::string> &texts, int64_t microBatches, int64_t slots) {
  std::vector<StageSchedule> schedules;
  for (const std::string &text : texts)
    schedules.push_back(*parseSchedule(text, microBatches, slots));
  return schedules;
}

std::string messageOf(const std::vector<StageSchedule> &schedules, int64_t microBatches, int64_t slots) {
  Expected<ScheduleFacts> facts = checkSchedules(schedules, microBatches, slots);
  return facts.ok() ? "ok" : facts.status().text();
}

TEST(Schedule, InferenceText) {
  EXPECT_EQ(formatSchedule(inferenceSchedule(0, 1, 2, 2)), "F0 F1");
  EXPECT_EQ(formatSchedule(inferenceSchedule(0, 2, 2, 2)), "F0 F1 D");
  EXPECT_EQ(formatSchedule(inferenceSchedule(1, 2, 2, 2)), "R0 R1 F0 F1");
  EXPECT_EQ(formatSchedule(inferenceSchedule(1, 3, 4, 2)), "R0 R1 F0 R2 F1 R3 F2 F3 D");
  EXPECT_EQ(formatSchedule(inferenceSchedule(1, 3, 2, 1)), "R0 F0 R1 F1 D");
}

// Every list that is built, printed and parsed again is the same list, and passes the checker, with no more in flight
// than there are slots.
TEST(Schedule, GridOfSizes) {
  for (int64_t stages = 1; stages <= 6; ++stages)
    for (int64_t microBatches = 1; microBatches <= 9; ++microBatches)
      for (int64_t slots = 1; slots <= 4; ++slots) {
        std::vector<StageSchedule> schedules = pipeline(stages, microBatches, slots);
        SCOPED_TRACE("stages " + std::to_string(stages) + ", micro-batches " + std::to_string(microBatches) +
                     ", slots " + std::to_string(slots));
        Expected<ScheduleFacts> facts = checkSchedules(schedules, microBatches, slots);
        ASSERT_TRUE(facts.ok()) << facts.status().text();
        for (int64_t stage = 0; stage < stages; ++stage) {
          EXPECT_LE(facts->peakInFlight[stage], std::min(slots, microBatches));
          Expected<StageSchedule> again = parseSchedule(formatSchedule(schedules[stage]), microBatches, slots);
          ASSERT_TRUE(again.ok());
          EXPECT_TRUE(*again == schedules[stage]) << formatSchedule(schedules[stage]);
        }
      }
}

// Dropping or doubling any one action is found, wherever it is.
TEST(Schedule, EveryDroppedOrDoubledActionIsFound) {
  for (int64_t slots = 1; slots <= 2; ++slots) {
    std::vector<StageSchedule> good = pipeline(3, 3, slots);
    for (size_t s = 0; s < good.size(); ++s)
      for (size_t i = 0; i < good[s].size(); ++i) {
        std::vector<StageSchedule> dropped = good, doubled = good;
        dropped[s].erase(dropped[s].begin() + i);
        doubled[s].insert(doubled[s].begin() + i, good[s][i]);
        EXPECT_NE(messageOf(dropped, 3, slots), "ok") << formatSchedule(dropped[s]);
        EXPECT_NE(messageOf(doubled, 3, slots), "ok") << formatSchedule(doubled[s]);
      }
  }
}

TEST(Schedule, BrokenListsAreNamed) {
  EXPECT_EQ(messageOf(parseAll({"F0 F1 D", "R0 F1 F0"}, 2, 2), 2, 2),
            "error[plan]: stage 1: F1: its input is not in slot 1; R1 must come first, in the same slot");
  EXPECT_EQ(messageOf(parseAll({"F0 F1 F2 D", "R0 R1 R2 F0 F1 F2"}, 3, 2), 3, 2),
            "error[plan]: stage 1: R2: slot 0 still holds micro-batch 0");
  EXPECT_EQ(messageOf(parseAll({"F0 F1", "R0 R1 F0 F1"}, 2, 2), 2, 2),
            "error[plan]: stage 0: D0 is missing: its send is never waited for");
  EXPECT_EQ(messageOf(parseAll({"F0 D", "R0"}, 1, 1), 1, 1), "error[plan]: stage 1: F0 is missing");
  EXPECT_EQ(messageOf(parseAll({"F1 F0 D", "R0 R1 F0 F1"}, 2, 2), 2, 2),
            "error[plan]: stage 0 sends micro-batches in another order than stage 1 receives them");
}

// Each stage is right by itself, and with FIFO matching nobody would block: the data would be another micro-batch's.
TEST(Schedule, OrderAcrossStagesIsCompared) {
  EXPECT_EQ(messageOf(parseAll({"F0 D0 F1 D1", "R0 F0 R1 F1"}, 2, 2), 2, 2), "ok");
  EXPECT_EQ(messageOf(parseAll({"F0 D0 F1 D1", "R0 F0 R1 F1 D", "R1 F1 R0 F0"}, 2, 2), 2, 2),
            "error[plan]: stage 1 sends micro-batches in another order than stage 2 receives them");
}

TEST(Schedule, BadTextIsNamed) {
  EXPECT_EQ(parseSchedule("F0 x", 2, 2).status().message(),
            "schedule: 'x' is not a letter and a micro-batch such as F0");
  EXPECT_EQ(parseSchedule("F0 F2", 2, 2).status().message(), "schedule: 'F2' names a micro-batch beyond the last, 1");
  EXPECT_FALSE(parseSchedule("F99999999999999999999", 2, 2).ok());
}

TEST(Schedule, BindsLettersToPrograms) {
  std::vector<Program> programs = {{ProgramKind::Receive, 0, {}}, {ProgramKind::Forward, 0, {}}};
  Expected<std::vector<ScheduleStep>> steps = bindSchedule(*parseSchedule("R0 F0", 1, 1), programs);
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ((*steps)[0].program, 0);
  EXPECT_EQ((*steps)[1].program, 1);
  EXPECT_EQ(bindSchedule(*parseSchedule("D0", 1, 1), programs).status().message(),
            "schedule: the stage has no program 'D'");
}

} // namespace
