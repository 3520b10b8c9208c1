// Schedules: their text form and their binding to programs.
#include "runtime/plan/Schedule.h"

#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;

namespace {

std::string messageOf(const std::string &text) { return parseSchedule(text).status().message(); }

// Every kind of action prints as it parses; one that did not would change a dumped schedule.
TEST(Schedule, TextIsReadAsItIsWritten) {
  std::string text = "RF0 RF1.2 F0 F1.2 DF0 DF1.2 RB0 B0 B1.2 W12.1 DB0 U";
  Expected<StageSchedule> schedule = parseSchedule("  " + text + " ");
  ASSERT_TRUE(schedule.ok()) << schedule.status().text();
  EXPECT_EQ(formatSchedule(*schedule), text);
  EXPECT_TRUE((*schedule)[3] == (ScheduleAction{ProgramKind::Forward, 1, 2}));
  EXPECT_TRUE((*schedule)[9] == (ScheduleAction{ProgramKind::WeightGradient, 12, 1}));
}

// A user's file: comments and empty lines are no stages.
TEST(Schedule, FileHasALineAStage) {
  Expected<PipelineSchedule> schedule = parseScheduleFile("# two stages\n\nF0 F1 # first\n  \nF0 F1\r\n");
  ASSERT_TRUE(schedule.ok()) << schedule.status().text();
  ASSERT_EQ(schedule->size(), 2u);
  EXPECT_EQ(formatSchedule((*schedule)[1]), "F0 F1");
  EXPECT_EQ(parseScheduleFile("F0\nF0 X1").status().message().substr(0, 38), "line 2: schedule: 'X1' is no action; w");
}

// What is no action is named, with what would be one.
TEST(Schedule, BadTextIsNamed) {
  EXPECT_EQ(messageOf("F0 x"),
            "schedule: 'x' is no action; write F, B or W with a micro-batch (F0, or F0.1 for chunk 1), U, "
            "and, where receives and drains are written too, RF, DF, RB, DB");
  EXPECT_EQ(messageOf("F"), "schedule: 'F' needs a micro-batch and may have a chunk, as F0 and F0.1");
  EXPECT_EQ(messageOf("B0."), "schedule: 'B0.' needs a micro-batch and may have a chunk, as B0 and B0.1");
  EXPECT_EQ(messageOf("DF0.1.2"), "schedule: 'DF0.1.2' needs a micro-batch and may have a chunk, as DF0 and DF0.1");
  EXPECT_EQ(messageOf("W99999999999999999999"),
            "schedule: 'W99999999999999999999' needs a micro-batch and may have a chunk, as W0 and W0.1");
  EXPECT_EQ(messageOf("U0"), "schedule: 'U0': U runs once a step and has no number");
  EXPECT_FALSE(parseSchedule("R0").ok());
}

TEST(Schedule, BindsActionsToPrograms) {
  std::vector<Program> programs = {
      {ProgramKind::Receive, 0, {}}, {ProgramKind::Forward, 0, {}}, {ProgramKind::Forward, 1, {}}};
  Expected<std::vector<ScheduleStep>> steps = bindSchedule(*parseSchedule("RF0 F0 F1.1"), programs);
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ((*steps)[0].program, 0);
  EXPECT_EQ((*steps)[1].program, 1);
  EXPECT_EQ((*steps)[2].program, 2);
  EXPECT_EQ((*steps)[2].microBatch, 1);
  EXPECT_EQ(bindSchedule(*parseSchedule("DF0"), programs).status().message(),
            "schedule: DF0: the stage has no such program");
}

} // namespace
