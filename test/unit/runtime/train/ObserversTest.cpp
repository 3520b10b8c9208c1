// The lines and files that tell of a run, with reports and times made up: exact texts, worked out by hand.
#include "runtime/train/observers/EventFile.h"
#include "runtime/train/observers/LogLines.h"
#include "runtime/train/observers/MetricsFile.h"
#include "runtime/train/observers/ProgressLine.h"
#include "runtime/train/observers/RunSummary.h"
#include "runtime/train/observers/StepLines.h"
#include "runtime/train/observers/StepNotes.h"
#include "runtime/train/observers/TensorBoard.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <limits>

using namespace hpc;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Takes what an observer prints.
struct Printed {
  std::string text;
  TextSink sink() {
    return [this](const std::string &more) { text += more; };
  }
  /// What has come since the last call.
  std::string take() { return std::exchange(text, ""); }
};

StepReport reportOf(int64_t step, double loss, double milliseconds = 500) {
  StepReport report;
  report.step = report.batch = step;
  report.loss = loss;
  report.learningRate = 1e-3;
  report.gradientNorm = 1.5;
  report.milliseconds = milliseconds;
  report.readerSeconds = 0.01;
  return report;
}

RunState stateOf(int64_t steps) {
  RunState state;
  state.steps = steps;
  return state;
}

void tell(RunObserver &observer, const StepReport &report) {
  ASSERT_TRUE(observer.stepped(report, stateOf(report.step + 1)).ok());
}

RunFacts eightRanks() {
  RunFacts facts;
  facts.steps = 10;
  facts.ranks = 8;
  facts.items = 8192;
  return facts;
}

/// Data without a NaN in it.
struct GoodData : StepData {
  int64_t count() const override { return 4; }
  Status fill(int64_t, std::vector<Array> &) const override { return Status::success(); }
  std::string findNumber(int64_t, bool (*)(double)) const override { return ""; }
  uint64_t fingerprint() const override { return 0; }
  std::string summary() const override { return ""; }
};

/// 2.5 batches an epoch: the third step begins in the first epoch and takes rows of the second.
struct HalvedData : GoodData {
  int64_t count() const override { return 3; }
  int64_t epochOf(int64_t step) const override { return step * 2 / 5; }
};

} // namespace

// The line that users of PaddleFleetX parse, with the numbers of the line that program.md shows.
TEST(LogLines, IsThatOfPaddleFleetX) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  Printed printed;
  const auto time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1764074400833)); // 2025-11-25 12:40:00,833
  LogLines lines(eightRanks(), printed.sink(), [=] { return time; });
  StepReport report = reportOf(0, 11.083364487, 2053.44);
  report.readerSeconds = 0.23392;
  report.learningRate = 1e-4 / 18000;
  tell(lines, report);
  EXPECT_EQ(printed.take(), "[2025-11-25 12:40:00,833] [    INFO] - global step 1, epoch: 0, batch: 0, loss: 11.083364487, avg_reader_cost: 0.23392 sec, "
                            "avg_batch_cost: 2.05344 sec, speed: 0.49 step/s, ips_total: 3989 tokens/s, ips: 499 tokens/s, learning rate: 5.55556e-09\n");
}

// A mean over other steps than those since the last line is wrong in every line after the first.
TEST(LogLines, MeansAreOfTheStepsSinceTheLastLine) {
  RunFacts facts = eightRanks();
  facts.every = 3;
  facts.steps = 4;
  Printed printed;
  LogLines lines(facts, printed.sink());
  for (int64_t step : {0, 1})
    tell(lines, reportOf(step, 4, 1000));
  EXPECT_EQ(printed.take(), "");
  tell(lines, reportOf(2, 3, 400));
  EXPECT_THAT(printed.take(), HasSubstr("global step 3, epoch: 0, batch: 2, loss: 3.000000000, avg_reader_cost: 0.01000 sec, avg_batch_cost: 0.80000 sec, speed: "
                                        "1.25 step/s, ips_total: 10240 tokens/s, ips: 1280 tokens/s, learning rate: 1.00000e-03\n"));
  tell(lines, reportOf(3, 2, 200)); // the last one has a line of its own
  EXPECT_THAT(printed.take(), HasSubstr("global step 4, epoch: 0, batch: 3, loss: 2.000000000, avg_reader_cost: 0.01000 sec, avg_batch_cost: 0.20000 sec"));
}

TEST(LogLines, TellOfEvaluationsEpochsAndSaves) {
  Printed printed;
  LogLines lines(eightRanks(), printed.sink());
  EvaluationReport evaluation;
  evaluation.loss = std::log(8);
  evaluation.validTokens = 100;
  evaluation.batches = 5;
  evaluation.milliseconds = 250;
  ASSERT_TRUE(lines.evaluated(evaluation, 19).ok());
  EXPECT_THAT(printed.take(), HasSubstr("] - valid step 20, batch: 5, loss: 2.079441542, perplexity: 8, speed: 20.00 step/s\n"));
  StepReport last = reportOf(3, 2);
  last.ended = EpochReport{0, 3, 1, 2.5, 1.25, 400};
  tell(lines, last);
  EXPECT_THAT(printed.take(), HasSubstr("] - epoch 0: loss 2.5, gradient norm 1.25, means of 3 steps; 1 step skipped\n"));
  SaveReport save;
  save.path = "c/step-00000004";
  save.bytes = 3 << 20;
  save.seconds = 0.5;
  save.stopped = 0.25;
  ASSERT_TRUE(lines.saved(save).ok());
  EXPECT_THAT(printed.take(), HasSubstr("] - checkpoint 'c/step-00000004': 3.00 MiB in 0.50 s, in which no step ran for 0.250 s\n"));
}

// Many tests and scripts match this line.
TEST(StepLines, LineOfAStep) {
  RunFacts facts = eightRanks();
  facts.every = 2;
  Printed printed;
  StepLines lines(facts, printed.sink());
  tell(lines, reportOf(0, 3.25));
  EXPECT_EQ(printed.take(), "");
  tell(lines, reportOf(1, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(printed.take(), "step 1: loss nan, lr 0.001, gradient norm 1.5, 500.0 ms\n");
}

// A line longer than the terminal cannot be drawn over itself.
TEST(ProgressLine, IsDrawnOverItselfAndNotTooOften) {
  Printed printed;
  std::chrono::steady_clock::time_point time{};
  int64_t columns = 80;
  ProgressLine::Terminal terminal{printed.sink(), [&] { return columns; }, /*hasColour=*/false, [&] { return time; }};
  ProgressLine line(eightRanks(), terminal);
  ASSERT_TRUE(line.started(stateOf(0)).ok());
  time += std::chrono::seconds(2);
  tell(line, reportOf(0, 3.25));
  // 2 seconds for a step with all around it, and 9 to go; the step itself took half of one.
  EXPECT_EQ(printed.take(), "\r\x1b[Kstep 1/10 [##                        ] loss 3.2500, 16384 tokens/s, ETA 0:00:18");
  time += std::chrono::milliseconds(50);
  tell(line, reportOf(1, 3));
  EXPECT_EQ(printed.take(), "");
  columns = 30;
  time += std::chrono::milliseconds(50);
  tell(line, reportOf(2, 3));
  EXPECT_EQ(printed.take(), "\r\x1b[Kstep 3/10 loss 3.0000, 16384 ");
  // A note takes the line away once.
  line.clear();
  line.clear();
  EXPECT_EQ(printed.take(), "\r\x1b[K");
  EvaluationReport evaluation;
  evaluation.loss = 2;
  evaluation.batches = 1;
  ASSERT_TRUE(line.evaluated(evaluation, 2).ok());
  EXPECT_EQ(printed.take(), "evaluation after step 2: loss 2, 1 batch, 0.0 ms\n");
  tell(line, reportOf(9, 1)); // the last step is drawn in any case
  EXPECT_THAT(printed.take(), HasSubstr("step 10/10"));
  ASSERT_TRUE(line.ended(stateOf(10)).ok());
  EXPECT_EQ(printed.take(), "\n");
}

TEST(ProgressLine, ColoursTheBarAlone) {
  Printed printed;
  ProgressLine line(eightRanks(), {printed.sink(), [] { return int64_t(0); }});
  ASSERT_TRUE(line.started(stateOf(0)).ok());
  tell(line, reportOf(4, 3));
  EXPECT_THAT(printed.take(), HasSubstr("step 5/10 \x1b[32m[#############             ] \x1b[0mloss 3.0000, "));
}

// Mean and deviation of 20 losses, 1 and 3 by turns, are 2 and 1.
TEST(StepNotes, TellsOfALossBeyondSixDeviations) {
  GoodData data;
  std::vector<std::string> notes;
  StepNotes observer(data, 6, [&](const std::string &text) { notes.push_back(text); });
  for (int64_t step = 0; step < 19; ++step)
    tell(observer, reportOf(step, step % 2 ? 3 : 1));
  tell(observer, reportOf(19, 3)); // the twentieth loss: one fewer than this would be no reason to judge
  EXPECT_THAT(notes, ElementsAre());
  tell(observer, reportOf(20, 7.9));
  EXPECT_THAT(notes, ElementsAre());
  LossSpikes spikes(6);
  for (int64_t step = 0; step < 20; ++step)
    EXPECT_EQ(spikes.add(step % 2 ? 3 : 1), std::nullopt);
  EXPECT_EQ(spikes.mean(), 2);
  EXPECT_EQ(spikes.add(8.5).value_or(0), 6.5);
  EXPECT_EQ(spikes.add(std::numeric_limits<double>::infinity()), std::nullopt);
  tell(observer, reportOf(21, 50));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("step 21: the loss of 50 is a spike: "));
  EXPECT_THAT(notes[0], HasSubstr("standard deviations above the mean of the steps before, 2.28095; --spike sets"));
}

// Too few losses, --spike=0, and the old end of the window.
TEST(LossSpikes, KnowsItsLimits) {
  LossSpikes few(6), never(0), window(6);
  for (int step = 0; step < 19; ++step) {
    few.add(1);
    never.add(1);
  }
  EXPECT_EQ(few.add(1000), std::nullopt);
  never.add(1);
  EXPECT_EQ(never.add(1000), std::nullopt);
  for (int step = 0; step < 200; ++step)
    window.add(step < 100 ? 1000 : 2);
  EXPECT_EQ(window.mean(), 2);
  EXPECT_NE(window.add(3), std::nullopt);
}

TEST(StepNotes, NamesSkippedSteps) {
  GoodData data;
  std::vector<std::string> notes;
  StepNotes observer(data, 6, [&](const std::string &text) { notes.push_back(text); });
  StepReport report = reportOf(5, 2);
  report.gradientNorm = std::numeric_limits<double>::infinity();
  report.lossScale = 1024;
  tell(observer, report);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("step 5: the gradient norm is inf with a loss scale of 1024, so weights, states and the count of updates stay as they were; "));
}

TEST(MetricsFile, LinesOfStepsAndEvaluations) {
  TemporaryFolder folder;
  RunFacts facts = eightRanks();
  facts.flops = 1e9;
  facts.peak = 8e9;
  MetricsFile metrics(folder / "m.jsonl", /*goesOn=*/false, facts, [](const std::string &) {});
  ASSERT_TRUE(metrics.started(stateOf(0)).ok());
  StepReport report = reportOf(7, 2.5);
  report.validTokens = 8000;
  report.seed = 3;
  report.epoch = 1;
  report.ended = EpochReport{1, 4, 0, 2.75, 1.25, 32000};
  tell(metrics, report);
  EvaluationReport evaluation;
  evaluation.loss = std::numeric_limits<double>::quiet_NaN();
  evaluation.batches = 2;
  evaluation.milliseconds = 1.5;
  ASSERT_TRUE(metrics.evaluated(evaluation, 7).ok());
  EXPECT_EQ(TemporaryFolder::read(folder / "m.jsonl"), R"({"step":7,"loss":2.5,"lr":0.001,"grad_norm":1.5,"valid_tokens":8000,"seed":3,"epoch":1,"ms":500.0,"reader_ms":10.0,)"
                          R"("tokens_per_s":16384.0,"mfu":0.25,"epoch_mean":{"loss":2.75,"grad_norm":1.25,"steps":4,"skipped":0,"valid_tokens":32000},)"
                          R"("skipped":false})"
                          "\n"
                          R"({"step":7,"evaluation":{"loss":null,"batches":2,"ms":1.5}})"
                          "\n");
}

TEST(RunSummary, AddsUpTimes) {
  Printed printed;
  RunFacts facts = eightRanks();
  facts.flops = 1e9;
  facts.peak = 8e9;
  plan::Plan plan;
  RunSummary summary(facts, plan, printed.sink());
  ASSERT_TRUE(summary.started(stateOf(8)).ok());
  tell(summary, reportOf(8, 1));
  tell(summary, reportOf(9, 1));
  EvaluationReport evaluation;
  evaluation.milliseconds = 250;
  ASSERT_TRUE(summary.evaluated(evaluation, 9).ok());
  SaveReport save;
  save.stopped = 0.125;
  ASSERT_TRUE(summary.saved(save).ok());
  ASSERT_TRUE(summary.ended(stateOf(10)).ok());
  EXPECT_THAT(printed.take(), HasSubstr("2 steps in 1 s, of which 0.02 s waiting for data, 1 evaluation in 0.25 s, 1 save that stopped it for 0.125 s; 16384 tokens/s, "
                                        "MFU 25.0%; this process held at most "));
}

// The check value of CRC-32C is in RFC 3720 and in Koopman's tables; the mask is tensorflow's.
TEST(EventFile, RecordsHaveMaskedChecksums) {
  const uint32_t check = 0xE3069283u;
  EXPECT_EQ(maskedChecksum("123456789"), ((check >> 15) | (check << 17)) + 0xa282ead8u);
  const std::string record = recordOf("123456789");
  ASSERT_EQ(record.size(), 8 + 4 + 9 + 4u);
  uint64_t length;
  std::memcpy(&length, record.data(), 8);
  EXPECT_EQ(length, 9u);
  EXPECT_EQ(record.substr(12, 9), "123456789");
}

// A file that cannot be made ends the run before its first step.
TEST(TensorBoard, NamesAFolderThatCannotBe) {
  TemporaryFolder folder;
  TensorBoard board(folder.write("file", "x"), eightRanks());
  const Status status = board.started(stateOf(0));
  EXPECT_THAT(status.message(), HasSubstr("/file'"));
}

// A batch number counted from another step than the epoch's first is that of another batch.
TEST(StepData, EpochsNeedNoWholeSteps) {
  HalvedData data; // epochs: 0 0 0 1 1 2 2 2 3 3
  std::vector<int64_t> batches;
  for (int64_t step = 0; step < 10; ++step)
    batches.push_back(data.batchOf(step));
  EXPECT_THAT(batches, ElementsAre(0, 1, 2, 0, 1, 0, 1, 2, 0, 1));
  EXPECT_EQ(data.stepsOf(1), 3);
  EXPECT_EQ(data.stepsOf(2), 5);
  EXPECT_EQ(data.stepsOf(4), 10);
  EXPECT_EQ(GoodData().stepsOf(3), 12);
}
