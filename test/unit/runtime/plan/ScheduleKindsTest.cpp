// The named schedules over stages 1..8 x micro-batches 1..16 x chunks 1..3: all are accepted, and their bubbles and
// peaks in flight are those of the papers.
#include "runtime/plan/ScheduleKinds.h"
#include "runtime/plan/ScheduleCheck.h"
#include "runtime/plan/ScheduleSlots.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace hpc;
using namespace hpc::plan;

namespace {

struct KindCase {
  ScheduleKind kind;
  int64_t p, v, m;
  Pipeline pipeline;
  PipelineSchedule schedule;
  ScheduleFacts facts;
};

bool trains(ScheduleKind kind) { return kind != ScheduleKind::Inference; }

/// Every kind and size that the kind takes, made and checked once.
const std::vector<KindCase> &allSizes() {
  static const std::vector<KindCase> all = [] {
    std::vector<KindCase> cases;
    for (ScheduleKind kind : {ScheduleKind::Inference, ScheduleKind::GPipe, ScheduleKind::OneForwardOneBackward,
                              ScheduleKind::Interleaved, ScheduleKind::ZeroBubbleH1})
      for (int64_t p = 1; p <= 8; ++p)
        for (int64_t m = 1; m <= 16; ++m)
          for (int64_t v = 1; v <= 3; ++v) {
            Expected<PipelineSchedule> schedule = makeSchedule(kind, p, v, m);
            bool isOne = kind == ScheduleKind::OneForwardOneBackward || kind == ScheduleKind::ZeroBubbleH1;
            EXPECT_EQ(schedule.ok(), kind == ScheduleKind::Interleaved ? v > 1 : v == 1 || !isOne);
            if (!schedule.ok())
              continue;
            Pipeline pipeline = pipelineOf(kind, p, v, m);
            addTransfers(pipeline, *schedule);
            ScheduleCosts costs; // of zb-h1 as in the paper, all three alike; else a backward takes two forwards
            costs.backward = kind == ScheduleKind::ZeroBubbleH1 ? 1 : 2;
            Expected<ScheduleFacts> facts = checkSchedule(pipeline, *schedule, costs);
            EXPECT_TRUE(facts.ok()) << name(kind) << " " << p << " " << m << " " << v << facts.status().text();
            if (facts.ok())
              cases.push_back(KindCase{kind, p, v, m, pipeline, *schedule, *facts});
          }
    return cases;
  }();
  return all;
}

template <typename Test> void forAllSizes(Test test) {
  EXPECT_EQ(allSizes().size(), 8u * 16 * (3 + 3 + 1 + 2 + 1));
  for (const KindCase &c : allSizes()) {
    SCOPED_TRACE(name(c.kind) + ", " + std::to_string(c.p) + " stages, " + std::to_string(c.m) + " micro-batches, " +
                 std::to_string(c.v) + " chunks");
    test(c);
  }
}

/// A stage's list and its text are the same thing.
TEST(ScheduleKinds, TextOfAllSizes) {
  forAllSizes([](const KindCase &c) {
    for (const StageSchedule &stage : c.schedule) {
      Expected<StageSchedule> again = parseSchedule(formatSchedule(stage));
      ASSERT_TRUE(again.ok());
      EXPECT_TRUE(*again == stage) << formatSchedule(stage);
    }
  });
}

// A schedule that idles more or less than the papers say is another one, or the clock is wrong.
TEST(ScheduleKinds, BubblesAreThePapers) {
  forAllSizes([](const KindCase &c) {
    double p = double(c.p), m = double(c.m), v = double(c.v);
    if (c.kind == ScheduleKind::ZeroBubbleH1) {
      // Qi et al. 2023, table 1: (p-1)(F+B-W) for m >= p. Below, the first stage also waits for p - m forwards.
      double idle = p - 1 + std::max(0.0, p - m);
      EXPECT_NEAR(c.facts.bubble(), idle / (3 * m + idle), 1e-12);
    } else if (c.v == 1 || c.m % c.p == 0) {
      // Huang et al. 2019; Narayanan et al. 2021, section 2.2: (p-1)/v forwards and backwards more than the ideal.
      EXPECT_NEAR(c.facts.bubble(), (p - 1) / (v * m + p - 1), 1e-12);
    } else {
      // No paper: it idles at least as long as the ideal, and takes no longer than the next multiple of p would.
      int64_t unit = trains(c.kind) ? 3 : 1, multiple = (c.m / c.p + 1) * c.p;
      EXPECT_GE(c.facts.length, unit * (c.v * c.m + c.p - 1));
      EXPECT_LE(c.facts.length, unit * (c.v * multiple + c.p - 1));
      if (c.kind != ScheduleKind::Interleaved) { // the last group takes p turns a chunk, but for the last chunk
        double lost = (v - 1) * (p - double(c.m % c.p));
        EXPECT_NEAR(c.facts.bubble(), (p - 1 + lost) / (v * m + lost + p - 1), 1e-12);
      }
    }
  });
}

// More in flight than the papers say is memory that 1f1b exists to save.
TEST(ScheduleKinds, PeaksInFlightAreThePapers) {
  forAllSizes([](const KindCase &c) {
    for (int64_t s = 0; s < c.p; ++s) {
      SCOPED_TRACE("stage " + std::to_string(s));
      int64_t peak = peakInFlight(c.schedule[s], ProgramKind::Forward,
                                  trains(c.kind) ? ProgramKind::Backward : ProgramKind::Forward);
      switch (c.kind) {
      case ScheduleKind::Inference:
        EXPECT_EQ(peak, 1);
        break;
      case ScheduleKind::GPipe:
        EXPECT_EQ(peak, c.m * c.v);
        break;
      case ScheduleKind::Interleaved: // warm-up of Narayanan et al. 2021, and one more
        if (int64_t most = std::min(c.m * c.v, 2 * (c.p - s - 1) + (c.v - 1) * c.p + 1); c.m % c.p == 0)
          EXPECT_EQ(peak, most);
        else
          EXPECT_LE(peak, most);
        break;
      case ScheduleKind::ZeroBubbleH1: // with what W still reads no more than 1f1b's most, that of the first stage
        EXPECT_EQ(peakInFlight(c.schedule[s], ProgramKind::Forward, ProgramKind::WeightGradient), std::min(c.m, c.p));
        [[fallthrough]];
      case ScheduleKind::OneForwardOneBackward:
        EXPECT_EQ(peak, std::min(c.m, c.p - s));
        break;
      }
    }
  });
}

// A receive is posted one computation ahead and a drain one run late: two slots for what is sent and received, whatever
// the schedule; and slots in order make saved activations need no more than are in flight.
TEST(ScheduleKinds, SlotsAreWhatIsInFlight) {
  forAllSizes([](const KindCase &c) {
    for (const StageSchedule &stage : c.schedule)
      for (int32_t chunk = 0; chunk < c.v; ++chunk) {
        auto slots = [&](ProgramKind first, ProgramKind last) {
          SlotSpan span{{first, chunk}, {{last, chunk}}};
          int64_t needed = slotsNeeded(stage, span);
          EXPECT_TRUE(checkSlots(stage, span, needed).ok());
          EXPECT_TRUE(needed == 1 || !checkSlots(stage, span, needed - 1).ok());
          return needed;
        };
        EXPECT_LE(slots(ProgramKind::Receive, ProgramKind::Forward), 2);
        EXPECT_LE(slots(ProgramKind::Forward, ProgramKind::Drain), 2);
        EXPECT_LE(slots(ProgramKind::ReceiveGradient, ProgramKind::Backward), 2);
        EXPECT_LE(slots(ProgramKind::Backward, ProgramKind::DrainGradient), 2);
        EXPECT_LE(slots(ProgramKind::Forward, ProgramKind::Backward),
                  peakInFlight(stage, ProgramKind::Forward, ProgramKind::Backward) + 1);
      }
  });
}

// The forms that people know, receives and drains left out.
TEST(ScheduleKinds, KnownForms) {
  auto text = [](ScheduleKind kind, int64_t p, int64_t v, int64_t m, int64_t stage) {
    return formatSchedule((*makeSchedule(kind, p, v, m))[stage]);
  };
  EXPECT_EQ(text(ScheduleKind::Inference, 2, 1, 3, 1), "F0 F1 F2");
  EXPECT_EQ(text(ScheduleKind::GPipe, 2, 1, 3, 0), "F0 F1 F2 B0 B1 B2 U");
  EXPECT_EQ(text(ScheduleKind::OneForwardOneBackward, 3, 1, 4, 0), "F0 F1 F2 B0 F3 B1 B2 B3 U");
  EXPECT_EQ(text(ScheduleKind::OneForwardOneBackward, 3, 1, 4, 2), "F0 B0 F1 B1 F2 B2 F3 B3 U");
  EXPECT_EQ(text(ScheduleKind::Interleaved, 2, 2, 2, 1), "F0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1 U");
  EXPECT_EQ(text(ScheduleKind::ZeroBubbleH1, 2, 1, 3, 0), "F0 F1 B0 W0 F2 B1 W1 B2 W2 U");
  EXPECT_EQ(text(ScheduleKind::ZeroBubbleH1, 2, 1, 3, 1), "F0 B0 F1 B1 W0 F2 B2 W1 W2 U");
}

TEST(ScheduleKinds, AddsReceivesAndDrains) {
  auto text = [](int64_t p, int64_t m, int64_t stage) {
    PipelineSchedule schedule = *makeSchedule(ScheduleKind::Inference, p, 1, m);
    addTransfers(inferencePipeline(p, 1, m), schedule);
    return formatSchedule(schedule[stage]);
  };
  EXPECT_EQ(text(1, 2, 0), "F0 F1");
  EXPECT_EQ(text(2, 2, 0), "F0 F1 DF0 DF1");
  EXPECT_EQ(text(2, 2, 1), "RF0 RF1 F0 F1");
  EXPECT_EQ(text(3, 4, 1), "RF0 RF1 F0 RF2 F1 RF3 DF0 F2 DF1 F3 DF2 DF3");
}

TEST(ScheduleKinds, WhatAKindDoesNotTakeIsAnError) {
  EXPECT_EQ(makeSchedule(ScheduleKind::OneForwardOneBackward, 2, 2, 4).status().text(),
            "error[usage]: schedule 1f1b takes one chunk a stage, not 2; use interleaved");
  EXPECT_EQ(makeSchedule(ScheduleKind::Interleaved, 2, 1, 4).status().text(),
            "error[usage]: schedule interleaved needs at least 2 chunks a stage; with 1 it would be 1f1b, use that");
  EXPECT_EQ(parseScheduleKind("dapple").status().text(),
            "error[usage]: schedule 'dapple' is not known; there are inference, gpipe, 1f1b, interleaved, zb-h1");
}

} // namespace
