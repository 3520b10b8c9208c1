// Buckets of gradients on plans made by hand: where they are posted and waited for, what may join; and on random steps,
// that every instruction still reads what it read before, by an evaluation in which a value is the history that made it.
#include "passes/Place/Place.h"
#include "passes/Schedule/Rewrites.h"
#include "test/unit/schedule/StepPlans.h"

#include <gtest/gtest.h>
#include <random>

namespace hpc {
namespace {

using namespace plan;
using test::StepEvaluation, test::StepPlan;

/// "k0 post(64) k1 wait k2": bytes of what is posted.
std::string text(const std::vector<Instruction> &instructions) {
  std::string text;
  for (const Instruction &one : instructions) {
    if (!text.empty())
      text += " ";
    if (const auto *kernel = std::get_if<Kernel>(&one.action))
      text += kernel->symbol;
    else if (const auto *collective = std::get_if<Collective>(&one.action))
      text += (collective->request < 0 ? "reduce(" : "post(") + std::to_string(collective->count * 4) + ")";
    else
      text += std::holds_alternative<Wait>(one.action)         ? "wait"
              : std::holds_alternative<Accumulate>(one.action) ? "add"
                                                               : "store";
  }
  return text;
}

/// Two gradients of 3 and 20 elements over two micro-batches, and the update that reads both.
StepPlan twoGradients() {
  StepPlan step(2, {ProgramKind::Forward, ProgramKind::Update});
  int32_t a = step.buffer(Lifetime::Step, 3), b = step.buffer(Lifetime::Step, 20), t = step.buffer(Lifetime::Program, 3),
          u = step.buffer(Lifetime::Program, 20), x = step.buffer(Lifetime::Program, 1);
  step.kernel(0, {}, {t}, Part::Gradient);
  step.accumulate(0, a, t);
  step.kernel(0, {}, {u}, Part::Gradient);
  step.accumulate(0, b, u);
  step.kernel(0, {u}, {x}, Part::Gradient);
  int32_t wholeA = step.allReduce(1, a), wholeB = step.allReduce(1, b);
  step.kernel(1, {wholeA}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
  step.kernel(1, {wholeB}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
  return step;
}

} // namespace

// Posted behind the last micro-batch's last sum, waited for where the first is read: anything later gives overlap away.
TEST(GradientBuckets, JoinAndMoveToTheirSums) {
  StepPlan step = twoGradients();
  bucketGradients(step.plan, 0, step.values);
  EXPECT_EQ(text(step.of(0)), "k0 add k1 add post(144) k2"); // 12 bytes, then 80 from 64
  EXPECT_EQ(text(step.of(1)), "wait k3 k4");
  const Instruction &post = step.of(0)[4];
  EXPECT_EQ(post.when.values, (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1})); // the last micro-batch, on all ranks
  const auto &collective = std::get<Collective>(post.action);
  EXPECT_EQ(collective.src.buffer, collective.dst.buffer);
  EXPECT_EQ(collective.reason.path, "path0 to path1, 2 sums in one");
  EXPECT_EQ(collective.reason.cause, "cause");
  ASSERT_EQ(step.stage().buffers.size(), 6u); // of 9: two sums and two results became one
  EXPECT_EQ(step.stage().buffers.back().lifetime, Lifetime::Step);
  EXPECT_EQ(step.stage().requests, std::vector<int32_t>{1});
  const auto &reader = std::get<Kernel>(step.of(1)[2].action);
  EXPECT_EQ(reader.args[0].place.byteOffset, 64);
  EXPECT_TRUE(placeBuffers(step.plan).ok());
}

// A bucket has a size, so that the first can be on its way while the rest is computed.
TEST(GradientBuckets, KeepToTheLimit) {
  StepPlan step = twoGradients();
  bucketGradients(step.plan, 0, step.values, 143);
  EXPECT_EQ(text(step.of(0)), "k0 add post(12) k1 add post(80) k2");
  EXPECT_EQ(text(step.of(1)), "wait k3 wait k4");
  // One that is larger than any bucket goes alone; what comes behind it still joins what came before.
  StepPlan three = twoGradients();
  int32_t c = three.buffer(Lifetime::Step, 3), t = three.buffer(Lifetime::Program, 3);
  three.kernel(0, {}, {t}, Part::Gradient);
  three.accumulate(0, c, t);
  three.kernel(1, {three.allReduce(1, c)}, {three.buffer(Lifetime::Program, 1)}, Part::Update);
  bucketGradients(three.plan, 0, three.values, 79);
  EXPECT_EQ(text(three.of(0)), "k0 add k1 add post(80) k2 k5 add post(76)");
  EXPECT_EQ(text(three.of(1)), "wait k3 wait k4 k6");
}

// A sum that anything else reads, or that another stage is sent, must not be replaced by the sum over all ranks.
TEST(GradientBuckets, LeaveWhatOthersRead) {
  StepPlan step = twoGradients();
  step.kernel(1, {0}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
  bucketGradients(step.plan, 0, step.values);
  EXPECT_EQ(text(step.of(0)), "k0 add k1 add post(80) k2");
  EXPECT_EQ(text(step.of(1)), "reduce(12) k3 wait k4 k5");
}

// Sums over other ranks, or of another kind, are other collectives.
TEST(GradientBuckets, KeepKindsApart) {
  for (bool isAxis : {true, false}) {
    StepPlan step = twoGradients();
    auto &second = std::get<Collective>(step.of(1)[1].action);
    if (isAxis)
      second.axes = {"dp", "tp"};
    else
      second.reduce = ReduceKind::Max;
    bucketGradients(step.plan, 0, step.values);
    EXPECT_EQ(text(step.of(0)), "k0 add post(12) k1 add post(80) k2");
    EXPECT_EQ(text(step.of(1)), "wait k3 wait k4");
  }
}

// Gradients that somebody asked for are stored from the sum; were that in its way, no step would overlap anything.
TEST(GradientBuckets, OutputsOnRequestFollow) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t a = step.buffer(Lifetime::Program, 8), b = step.buffer(Lifetime::Program, 8), x = step.buffer(Lifetime::Program, 1);
  step.kernel(0, {}, {a}, Part::Gradient);
  step.kernel(0, {}, {b}, Part::Gradient);
  int32_t wholeA = step.allReduce(0, a), scaled = step.buffer(Lifetime::Program, 8);
  step.kernel(0, {wholeA}, {scaled}, Part::Update).onRequest = true;
  step.store(0, scaled);
  step.kernel(0, {}, {x}, Part::Update);
  int32_t wholeB = step.allReduce(0, b);
  step.store(0, wholeB);
  step.kernel(0, {wholeA, wholeB}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
  step.note(0, b);
  step.note(0, wholeA);
  step.note(0, wholeB);
  bucketGradients(step.plan, 0, step.values);
  EXPECT_EQ(text(step.of(0)), "k0 k1 post(96) k3 wait k2 store store k4");
  // What --verify compares is found where it is: a term before it is posted, the sums behind the wait.
  EXPECT_EQ(step.indexOf(step.values[0]), 1);
  EXPECT_EQ(step.values[0].place.byteOffset, 64);
  EXPECT_EQ(step.indexOf(step.values[1]), 4);
  EXPECT_EQ(step.values[1].place.byteOffset, 0);
  EXPECT_EQ(step.indexOf(step.values[2]), 4);
  EXPECT_EQ(step.values[2].place.byteOffset, 64);
  EXPECT_TRUE(placeBuffers(step.plan).ok());
}

// A view costs no instruction: it is known with what it shows. Of a sum that is after the wait; before it would be this
// rank's term.
TEST(GradientBuckets, ViewsStayWithWhatTheyShow) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t a = step.buffer(Lifetime::Program, 8), b = step.buffer(Lifetime::Program, 8),
          x = step.buffer(Lifetime::Program, 1);
  step.kernel(0, {}, {x}, Part::Gradient);
  step.kernel(0, {}, {a, b}, Part::Gradient);
  int32_t wholeA = step.allReduce(0, a), wholeB = step.allReduce(0, b);
  step.store(0, wholeA);
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
  step.kernel(0, {wholeA, wholeB}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
  for (int32_t buffer : {x, a, wholeA, wholeB})
    step.note(0, buffer);
  bucketGradients(step.plan, 0, step.values);
  EXPECT_EQ(text(step.of(0)), "k0 k1 post(96) k2 wait store k3");
  std::vector<int64_t> instructions;
  for (const NotedValue &value : step.values)
    instructions.push_back(step.indexOf(value));
  EXPECT_EQ(instructions, (std::vector<int64_t>{0, 1, 4, 4}));
}

// Each condition alone keeps the sum where it is: the two gradients that else go as one, changed in one thing.
TEST(GradientBuckets, EachConditionAloneSaysNo) {
  auto sum = [](StepPlan &step, size_t number) -> Collective & { return std::get<Collective>(step.of(1)[number].action); };
  auto expectKept = [&](const char *what, auto change, const std::string &first, const std::string &second) {
    StepPlan step = twoGradients();
    change(step);
    bucketGradients(step.plan, 0, step.values);
    EXPECT_EQ(text(step.of(0)), first) << what;
    EXPECT_EQ(text(step.of(1)), second) << what;
  };
  const std::string alone = "k0 add k1 add post(80) k2";
  auto expectAlone = [&](const char *what, auto change) { expectKept(what, change, alone, "reduce(12) k3 wait k4"); };
  expectAlone("no all-reduce", [&](StepPlan &step) { sum(step, 0).kind = CollectiveKind::Permute; });
  expectAlone("on some ranks", [&](StepPlan &step) { step.of(1)[0].when.values = {1, 0, 1, 0}; });
  expectAlone("a part of a buffer", [&](StepPlan &step) { step.stage().buffers[0].bytes = 16; });
  expectAlone("a buffer with slots", [&](StepPlan &step) { step.stage().buffers[0].slots = 2; });
  expectAlone("a buffer of the host", [&](StepPlan &step) { step.stage().buffers[0].space = Space::Host; });
  expectAlone("a buffer of the session", [&](StepPlan &step) { step.stage().buffers[0].lifetime = Lifetime::Session; });
  expectAlone("a result that lives longer",
              [&](StepPlan &step) { step.stage().buffers[size_t(sum(step, 0).dst.buffer)].lifetime = Lifetime::Step; });
  StepPlan posted = twoGradients();
  sum(posted, 0).request = 0;
  posted.stage().requests = {1};
  posted.of(1).insert(posted.of(1).begin() + 1, {Wait{0}, "wait"});
  bucketGradients(posted.plan, 0, posted.values);
  EXPECT_EQ(text(posted.of(0)), alone) << "posted already";
  EXPECT_EQ(text(posted.of(1)), "post(12) wait k3 wait k4") << "posted already";

  // The source is read by whoever writes it alone, and before; the result is read from here on alone.
  StepPlan written = twoGradients();
  written.kernel(1, {}, {0}, Part::Update);
  bucketGradients(written.plan, 0, written.values);
  EXPECT_EQ(text(written.of(1)), "reduce(12) k3 wait k4 k5") << "written again";
  StepPlan looked = twoGradients();
  looked.kernel(0, {0}, {looked.buffer(Lifetime::Program, 1)}, Part::Gradient);
  bucketGradients(looked.plan, 0, looked.values);
  EXPECT_EQ(text(looked.of(1)), "reduce(12) k3 wait k4") << "read before";
  StepPlan scratch = twoGradients();
  Instruction before = scratch.kernel(1, {}, {sum(scratch, 0).dst.buffer}, Part::Update);
  scratch.of(1).pop_back();
  scratch.of(1).insert(scratch.of(1).begin(), before);
  bucketGradients(scratch.plan, 0, scratch.values);
  EXPECT_EQ(text(scratch.of(1)), "k5 reduce(12) k3 wait k4") << "the result's place is used before";
  StepPlan both = twoGradients(); // what others have added up an update writes itself
  std::vector<Instruction> more{both.kernel(1, {}, {0}, Part::Update), both.kernel(1, {}, {both.buffer(Lifetime::Program, 1)}, Part::Update)};
  both.of(1).resize(both.of(1).size() - 2);
  both.of(1).insert(both.of(1).begin(), more.begin(), more.end());
  bucketGradients(both.plan, 0, both.values);
  EXPECT_EQ(text(both.of(1)), "k5 k6 reduce(12) k3 wait k4") << "written by the update as well";
  StepPlan again(1, {ProgramKind::Forward});
  int32_t a = again.buffer(Lifetime::Program, 8), x = again.buffer(Lifetime::Program, 8);
  again.kernel(0, {}, {a}, Part::Gradient);
  int32_t whole = again.allReduce(0, a);
  again.kernel(0, {}, {a}, Part::Gradient);
  again.kernel(0, {}, {x}, Part::Gradient);
  again.kernel(0, {whole}, {again.buffer(Lifetime::Program, 1)}, Part::Update);
  bucketGradients(again.plan, 0, again.values);
  EXPECT_EQ(text(again.of(0)), "k0 reduce(32) k1 k2 k3") << "written again by the only program";
}

// There has to be one program that runs once a step, or the whole step is one program and one micro-batch.
TEST(GradientBuckets, NeedAProgramOfAStep) {
  for (bool isOne : {true, false}) {
    StepPlan step = isOne ? StepPlan(2, {ProgramKind::Forward}) : StepPlan(1, {ProgramKind::Forward, ProgramKind::Backward});
    int32_t a = step.buffer(Lifetime::Program, 8), b = step.buffer(Lifetime::Program, 8);
    step.kernel(0, {}, {a, b}, Part::Gradient);
    int32_t wholeA = step.allReduce(0, a), wholeB = step.allReduce(0, b);
    step.kernel(0, {}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
    step.kernel(0, {wholeA, wholeB}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
    bucketGradients(step.plan, 0, step.values);
    EXPECT_EQ(text(step.of(0)), "k0 reduce(32) reduce(32) k1 k2");
  }
}

// A program that comes to the last micro-batch before others has not added all of them up behind it, nor has one of two that add.
TEST(GradientBuckets, WaitForTheLastTerm) {
  StepPlan step = twoGradients();
  std::vector<ScheduleStep> &schedule = step.stage().schedule;
  auto last = std::find_if(schedule.rbegin(), schedule.rend(), [](const ScheduleStep &each) { return each.program == 0; });
  auto first = std::find_if(schedule.begin(), schedule.end(), [](const ScheduleStep &each) { return each.program == 0; });
  std::swap(first->microBatch, last->microBatch);
  bucketGradients(step.plan, 0, step.values);
  EXPECT_EQ(text(step.of(0)), "k0 add k1 add k2");
  EXPECT_EQ(text(step.of(1)), "post(144) wait k3 k4");

  StepPlan two(2, {ProgramKind::Forward, ProgramKind::Backward, ProgramKind::Update});
  int32_t a = two.buffer(Lifetime::Step, 3), b = two.buffer(Lifetime::Step, 3), t = two.buffer(Lifetime::Program, 3);
  for (size_t program : {0, 1}) {
    two.kernel(program, {}, {t}, Part::Gradient);
    two.accumulate(program, a, t);
    two.accumulate(program, b, t);
  }
  int32_t wholeA = two.allReduce(2, a), wholeB = two.allReduce(2, b);
  two.kernel(2, {wholeA, wholeB}, {two.buffer(Lifetime::Program, 1)}, Part::Update);
  bucketGradients(two.plan, 0, two.values);
  EXPECT_EQ(text(two.of(1)), "k1 add add");
  EXPECT_EQ(text(two.of(2)), "post(76) wait k2");
}

// Sums go together that are there at the same time, are of one type, and lie in buffers that live as long.
TEST(GradientBuckets, JoinWhatIsThereTogether) {
  StepPlan types = twoGradients();
  std::get<Collective>(types.of(1)[1].action).dtype = DType::I32;
  bucketGradients(types.plan, 0, types.values);
  EXPECT_EQ(text(types.of(0)), "k0 add post(12) k1 add post(80) k2");

  StepPlan programs(2, {ProgramKind::Forward, ProgramKind::Backward, ProgramKind::Update});
  int32_t sums[2], t = programs.buffer(Lifetime::Program, 3);
  for (size_t program : {0, 1}) {
    sums[program] = programs.buffer(Lifetime::Step, 3);
    programs.kernel(program, {}, {t}, Part::Gradient);
    programs.accumulate(program, sums[program], t);
  }
  int32_t wholeA = programs.allReduce(2, sums[0]), wholeB = programs.allReduce(2, sums[1]);
  programs.kernel(2, {wholeA, wholeB}, {programs.buffer(Lifetime::Program, 1)}, Part::Update);
  bucketGradients(programs.plan, 0, programs.values);
  EXPECT_EQ(text(programs.of(0)), "k0 add post(12)");
  EXPECT_EQ(text(programs.of(1)), "k1 add post(12)");

  // The loss is needed before gradients.
  StepPlan parts = twoGradients();
  for (Instruction &one : parts.of(0))
    one.part = &one < &parts.of(0)[2] ? Part::Forward : Part::Gradient;
  bucketGradients(parts.plan, 0, parts.values);
  EXPECT_EQ(text(parts.of(0)), "k0 add post(12) k1 add post(80) k2");

  // What is read before the next one is made cannot wait for it.
  StepPlan late(1, {ProgramKind::Forward});
  int32_t a = late.buffer(Lifetime::Program, 8), b = late.buffer(Lifetime::Program, 8), x = late.buffer(Lifetime::Program, 8);
  late.kernel(0, {}, {a}, Part::Gradient);
  late.kernel(0, {}, {x}, Part::Gradient);
  late.kernel(0, {late.allReduce(0, a)}, {late.buffer(Lifetime::Program, 1)}, Part::Update);
  late.kernel(0, {}, {b}, Part::Gradient);
  late.kernel(0, {}, {x}, Part::Gradient);
  late.kernel(0, {late.allReduce(0, b)}, {late.buffer(Lifetime::Program, 1)}, Part::Update);
  StepEvaluation before(late);
  bucketGradients(late.plan, 0, late.values);
  EXPECT_EQ(text(late.of(0)), "k0 post(32) k1 wait k2 k3 post(32) k4 wait k5");
  EXPECT_EQ(before.history, StepEvaluation(late).history);
}

// What forward and backward sum over ranks is needed at once; a request would cost and gain nothing.
TEST(GradientBuckets, LeaveSumsThatBackwardReads) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t a = step.buffer(Lifetime::Program, 8);
  step.kernel(0, {}, {a}, Part::Gradient);
  int32_t whole = step.allReduce(0, a, {"tp"});
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 8)}, Part::Gradient);
  step.kernel(0, {whole}, {step.buffer(Lifetime::Program, 1)}, Part::Gradient);
  bucketGradients(step.plan, 0, step.values);
  EXPECT_EQ(text(step.of(0)), "k0 reduce(32) k1 k2");
}

// ---- random steps -------------------------------------------------------------------------------

namespace {

/// Sums of all kinds in one program or two, in any order, and whoever reads them.
StepPlan randomStep(std::mt19937 &random) {
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  const bool isOne = below(3) == 0;
  StepPlan step = isOne ? StepPlan(1, {ProgramKind::Forward})
                        : StepPlan(1 + below(3), {ProgramKind::Forward, ProgramKind::Backward, ProgramKind::Update});
  const size_t update = isOne ? 0 : 2;
  struct Sum {
    int32_t source;
    std::vector<std::string> axes;
  };
  std::vector<Sum> sums;
  std::vector<int32_t> temporaries[3];
  for (int i = 0, count = 1 + below(8); i < count; ++i) {
    size_t program = isOne ? 0 : size_t(below(3));
    int64_t elements = 1 + below(100);
    Sum sum;
    sum.axes = below(4) ? std::vector<std::string>{"dp"} : std::vector<std::string>{"dp", "tp"};
    if (program == update) {
      sum.source = step.buffer(Lifetime::Program, elements);
      step.kernel(program, {}, {sum.source}, below(2) ? Part::Gradient : Part::Update);
    } else {
      sum.source = step.buffer(Lifetime::Step, elements);
      int32_t term = step.buffer(Lifetime::Program, elements);
      step.kernel(program, {}, {term}, Part::Gradient);
      step.accumulate(program, sum.source, term);
      if (program == 0 && below(4) == 0) { // two programs add to it
        int32_t other = step.buffer(Lifetime::Program, elements);
        step.kernel(1, {}, {other}, Part::Gradient);
        step.accumulate(1, sum.source, other);
      }
      if (below(8) == 0) // somebody looks at the sum as it is
        step.kernel(program, {sum.source}, {step.buffer(Lifetime::Program, 4)}, Part::Gradient);
    }
    sums.push_back(sum);
  }
  std::shuffle(sums.begin(), sums.end(), random);
  std::vector<int32_t> wholes;
  for (const Sum &sum : sums) {
    wholes.push_back(step.allReduce(update, sum.source, sum.axes, below(5) ? ReduceKind::Sum : ReduceKind::Max));
    step.note(update, wholes.back());
    if (below(6) == 0) { // a sum of sums
      wholes.back() = step.allReduce(update, wholes.back(), {"tp"});
      step.note(update, wholes.back());
    }
    if (below(2)) {
      int32_t scaled = step.buffer(Lifetime::Program, 8);
      std::vector<int32_t> reads{wholes.back()};
      if (below(3) == 0)
        reads.push_back(wholes[size_t(below(int(wholes.size())))]);
      step.kernel(update, reads, {scaled}, Part::Update).onRequest = true;
      step.store(update, scaled);
    }
    for (int i = below(3); i > 0; --i)
      step.kernel(update, below(3) ? std::vector<int32_t>{} : std::vector<int32_t>{wholes[size_t(below(int(wholes.size())))]},
                  {step.buffer(Lifetime::Program, 4)}, Part::Update);
    if (below(8) == 0) // in place, as clipping may be
      step.kernel(update, {wholes.back()}, {}, Part::Update),
          std::get<Kernel>(step.of(update).back().action).args[0].writes = true;
  }
  for (int32_t whole : wholes)
    step.kernel(update, {whole}, {step.buffer(Lifetime::Program, 4)}, Part::Update);
  return step;
}

} // namespace

// Whatever is joined and moved, every instruction reads what it read before, and no buffer is touched in flight.
TEST(GradientBuckets, RandomStepsComputeTheSame) {
  std::mt19937 random(11);
  int joined = 0, early = 0;
  for (int round = 0; round < 2000; ++round) {
    StepPlan step = randomStep(random);
    SCOPED_TRACE("round " + std::to_string(round) + ": " + text(step.of(step.stage().programs.size() - 1)));
    StepEvaluation before(step);
    int64_t limit = round % 3 ? 1 << 20 : 256;
    bucketGradients(step.plan, 0, step.values, limit);
    StepEvaluation after(step);
    ASSERT_EQ(before.history, after.history) << text(step.of(step.stage().programs.size() - 1));
    ASSERT_EQ(before.values, after.values) << text(step.of(step.stage().programs.size() - 1));
    ASSERT_TRUE(placeBuffers(step.plan).ok());
    for (size_t p = 0; p < step.stage().programs.size(); ++p)
      for (const Instruction &one : step.of(p))
        if (const auto *collective = std::get_if<Collective>(&one.action); collective && collective->request >= 0) {
          bool isBucket = step.stage().buffers[size_t(collective->src.buffer)].name.find("bucket") == 0;
          joined += isBucket;
          early += p + 1 < step.stage().programs.size();
          EXPECT_TRUE(!isBucket || collective->count * 4 <= limit);
        }
    for (const NotedValue &value : step.values) { // known where it has been waited for, or summed at once
      const Instruction &one = step.of(size_t(value.program))[size_t(step.indexOf(value))];
      EXPECT_TRUE(std::holds_alternative<Wait>(one.action) || std::holds_alternative<Collective>(one.action));
    }
    if (testing::Test::HasFailure())
      return;
  }
  EXPECT_GT(joined, 500);
  EXPECT_GT(early, 500);
}

} // namespace hpc
