// Collectives beside computation on plans made by hand: where they are posted and waited for; and on random programs,
// that every instruction still reads what it read before, and that no more lives at once.
#include "passes/Place/Place.h"
#include "passes/Schedule/Rewrites.h"
#include "runtime/plan/Liveness.h"
#include "test/unit/schedule/StepPlans.h"

#include <gtest/gtest.h>
#include <random>

namespace hpc {
namespace {

using namespace plan;
using hpc::test::StepEvaluation, hpc::test::StepPlan;

/// "post(1) k0 wait(1) gather(2) add": collectives by the buffer that they read.
std::string textOf(const std::vector<Instruction> &instructions) {
  std::string text;
  std::map<int32_t, std::string> operands; // by request
  for (const Instruction &one : instructions) {
    if (!text.empty())
      text += " ";
    if (const auto *kernel = std::get_if<Kernel>(&one.action)) {
      text += kernel->symbol;
    } else if (const auto *collective = std::get_if<Collective>(&one.action)) {
      std::string operand = "(" + std::to_string(collective->src.buffer) + ")";
      text += (collective->request >= 0                            ? "post"
               : collective->kind == CollectiveKind::AllGather     ? "gather"
               : collective->kind == CollectiveKind::ReduceScatter ? "scatter"
                                                                   : "reduce") +
              operand;
      if (collective->request >= 0)
        operands[collective->request] = operand;
    } else if (const auto *wait = std::get_if<Wait>(&one.action)) {
      text += "wait" + operands[wait->request];
    } else {
      text += std::holds_alternative<Accumulate>(one.action) ? "add"
              : std::holds_alternative<Copy>(one.action)     ? "copy"
                                                             : "store";
    }
  }
  return text;
}

/// Layers that each gather a weight, here b0 and on, and multiply what the one before has made by it.
StepPlan layers(int count, int64_t elements) {
  StepPlan step(1, {ProgramKind::Forward});
  std::vector<int32_t> weights;
  for (int i = 0; i < count; ++i)
    weights.push_back(step.buffer(Lifetime::Session, elements));
  int32_t x = step.buffer(Lifetime::Program, 64);
  step.kernel(0, {}, {x}, Part::Forward);
  for (int32_t weight : weights) {
    int32_t whole = step.collective(0, CollectiveKind::AllGather, weight), y = step.buffer(Lifetime::Program, 64);
    step.kernel(0, {x, whole}, {y}, Part::Forward);
    x = y;
  }
  // The most lives here, so that there is room before.
  int32_t loss = step.buffer(Lifetime::Program, 16 * elements);
  step.kernel(0, {x}, {loss}, Part::Forward);
  return step;
}

int64_t mostLive(const StepPlan &step) {
  int64_t most = 0;
  for (size_t p = 0; p < step.plan.stages[0].programs.size(); ++p) {
    Expected<std::vector<LiveRange>> ranges = liveRanges(step.plan, 0, int64_t(p));
    EXPECT_TRUE(ranges.ok()) << ranges.status().message();
    if (!ranges.ok())
      return -1;
    for (size_t i = 0; i < step.plan.stages[0].programs[p].instructions.size(); ++i) {
      int64_t live = 0;
      for (const LiveRange &range : *ranges)
        if (range.first <= int64_t(i) && int64_t(i) <= range.last)
          live += step.plan.stages[0].buffers[size_t(range.buffer)].bytes;
      most = std::max(most, live);
    }
  }
  return most;
}

} // namespace

// A weight is on its way while the layers ahead of its own compute; two at a time, so that memory does not fill.
TEST(OverlapCollectives, WeightsComeBeforeTheirLayers) {
  StepPlan step = layers(4, 100);
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)), "post(0) post(1) k0 wait(0) post(2) k1 wait(1) post(3) k2 wait(2) k3 wait(3) k4 k5");
  // A request is free again behind its wait.
  EXPECT_EQ(step.stage().requests, (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(std::get<Collective>(step.of(0)[4].action).request, std::get<Collective>(step.of(0)[0].action).request);
  EXPECT_EQ(std::get<Collective>(step.of(0)[4].action).reason.path, "path2");
  EXPECT_TRUE(placeBuffers(step.plan).ok());
}

// Ahead of its layer a weight takes memory: only what is there anyway.
TEST(OverlapCollectives, MemoryIsTheLimit) {
  StepPlan step = layers(4, 100);
  // Now the most lives in the second layer.
  int32_t other = step.buffer(Lifetime::Program, 4000);
  std::get<Kernel>(step.of(0)[4].action).args.push_back({{other, 0}, 16000, false, true});
  const int64_t before = mostLive(step);
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)), "post(0) post(1) k0 wait(0) k1 wait(1) k2 gather(2) post(3) k3 wait(3) k4 k5");
  EXPECT_EQ(mostLive(step), before);
}

// A block of keys goes on to the next rank while it is read here: its bytes live anyway, so there is room even where the most lives.
TEST(OverlapCollectives, ABlockMovesOnWhileItIsRead) {
  StepPlan step(3, {ProgramKind::Forward});
  int32_t block = step.buffer(Lifetime::Program, 100), sum = -1;
  step.kernel(0, {}, {block}, Part::Forward);
  for (int i = 0; i < 3; ++i) {
    const int32_t next = i < 2 ? step.collective(0, CollectiveKind::Permute, block) : -1;
    const int32_t more = step.buffer(Lifetime::Program, 10);
    if (sum < 0)
      step.kernel(0, {block}, {more}, Part::Forward);
    else
      step.kernel(0, {block, sum}, {more}, Part::Forward);
    block = next;
    sum = more;
  }
  const int64_t before = mostLive(step);
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)), "k0 post(0) k1 wait(0) post(1) k2 wait(1) k3");
  EXPECT_EQ(mostLive(step), before);
}

// A gradient leaves while the next are computed, and is added to its sum when it has come.
TEST(OverlapCollectives, GradientsLeaveBesideWhatFollows) {
  StepPlan step(2, {ProgramKind::Forward});
  std::vector<int32_t> terms;
  for (int i = 0; i < 4; ++i)
    terms.push_back(step.buffer(Lifetime::Program, 100));
  for (int32_t term : terms) {
    int32_t sum = step.buffer(Lifetime::Step, 50);
    step.kernel(0, {}, {term}, Part::Gradient);
    step.accumulate(0, sum, step.collective(0, CollectiveKind::ReduceScatter, term));
    step.note(0, sum);
  }
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 1)}, Part::Gradient);
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 1000)}, Part::Gradient); // the most
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)),
            "k0 post(0) k1 post(1) k2 post(2) wait(0) add k3 post(3) wait(1) add k4 wait(2) add wait(3) add k5");
  // What --verify compares is in its sum behind the `add`, wherever that is.
  EXPECT_EQ(step.indexOf(step.values[0]), 7);
  EXPECT_EQ(step.indexOf(step.values[3]), 16);
  EXPECT_TRUE(placeBuffers(step.plan).ok());
}

// ZeRO 1: each parameter's new values are gathered and put in place while the next are computed.
TEST(OverlapCollectives, NewWeightsGoBesideTheNextUpdates) {
  StepPlan step(1, {ProgramKind::Update});
  for (int i = 0; i < 4; ++i) {
    int32_t weight = step.buffer(Lifetime::Session, 100), part = step.buffer(Lifetime::Program, 50);
    step.kernel(0, {weight}, {part}, Part::Update);
    step.copy(0, weight, step.collective(0, CollectiveKind::AllGather, part));
    step.note(0, weight);
  }
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 1000)}, Part::Update); // the most
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)),
            "k0 post(1) k1 post(4) k2 post(7) wait(1) copy k3 post(10) wait(4) copy k4 wait(7) copy wait(10) copy k5");
  EXPECT_EQ(step.indexOf(step.values[0]), 7);
}

// A request costs; where nothing is computed meanwhile it gains nothing.
TEST(OverlapCollectives, NothingBesideNothing) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t a = step.buffer(Lifetime::Program, 8);
  step.kernel(0, {}, {a}, Part::Forward);
  int32_t whole = step.allReduce(0, a, {"tp"});
  step.kernel(0, {whole}, {step.buffer(Lifetime::Program, 8)}, Part::Forward);
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)), "k0 reduce(0) k1");
  EXPECT_TRUE(step.stage().requests.empty());
  // With a product of its own in between (a gradient of weights behind that of what came in) it does.
  step.of(0).insert(step.of(0).begin() + 2, step.of(0)[0]);
  std::get<Kernel>(step.of(0)[2].action).args[0].place.buffer = step.buffer(Lifetime::Program, 8);
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 100)}, Part::Forward); // the most
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)), "k0 post(0) k0 wait(0) k1 k2");
}

// tp: the gradient of a layer's input is summed in place while that of its weight is computed. A view of what is there before
// the sum is compared before, wherever it came about.
TEST(OverlapCollectives, InPlaceBesideWhatFollows) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t dy = step.buffer(Lifetime::Program, 10), dx = step.buffer(Lifetime::Program, 10),
          dw = step.buffer(Lifetime::Program, 10);
  step.kernel(0, {}, {dy}, Part::Gradient);
  step.kernel(0, {dy}, {dx}, Part::Gradient);
  step.kernel(0, {dy}, {dw}, Part::Gradient);
  step.note(0, dx);
  step.allReduce(0, dx, {"tp"});
  auto &sum = std::get<Collective>(step.of(0).back().action);
  sum.dst = sum.src;
  step.note(0, dx);
  step.kernel(0, {dx, dw}, {step.buffer(Lifetime::Program, 10)}, Part::Gradient);
  StepEvaluation before(step);
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)), "k0 k1 post(1) k2 wait(1) k3");
  EXPECT_EQ(before.values, StepEvaluation(step).values);
  EXPECT_EQ(step.indexOf(step.values[0]), 1);
  EXPECT_EQ(step.indexOf(step.values[1]), 4);
}

// What somebody needs at once is not held up by what is needed later: a group does one after the other.
TEST(OverlapCollectives, WhatIsNeededAtOnceComesFirst) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t weight = step.buffer(Lifetime::Session, 10), a = step.buffer(Lifetime::Program, 10),
          b = step.buffer(Lifetime::Program, 10);
  step.kernel(0, {}, {a}, Part::Forward);
  int32_t whole = step.allReduce(0, a);
  step.kernel(0, {whole}, {b}, Part::Forward);
  int32_t gathered = step.collective(0, CollectiveKind::AllGather, weight);
  step.kernel(0, {b, gathered}, {step.buffer(Lifetime::Program, 100)}, Part::Forward);
  StepPlan others = step;
  overlapCollectives(step.plan, 0, step.values);
  EXPECT_EQ(textOf(step.of(0)), "k0 reduce(1) post(0) k1 wait(0) k2");
  // Of other ranks it may.
  std::get<Collective>(others.of(0)[3].action).axes = {"tp"};
  overlapCollectives(others.plan, 0, others.values);
  EXPECT_EQ(textOf(others.of(0)), "post(0) k0 reduce(1) k1 wait(0) k2");
}

namespace {

/// A sum over ranks with a kernel beside it that it has nothing to do with: "k0 post(0) k1 wait(0) k2 k3".
StepPlan oneSum(CollectiveKind kind = CollectiveKind::AllReduce) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t a = step.buffer(Lifetime::Program, 8), whole;
  step.kernel(0, {}, {a}, Part::Forward);
  whole = step.collective(0, kind, a, {"tp"});
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 8)}, Part::Forward);
  step.kernel(0, {whole}, {step.buffer(Lifetime::Program, 8)}, Part::Forward);
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 100)}, Part::Forward); // the most
  return step;
}

/// What is gathered is put into `target`: "k0 post(1) k1 wait(1) copy k2 k3" where that outlives the program.
StepPlan oneCopy(Lifetime target) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t kept = step.buffer(target, 16), a = step.buffer(Lifetime::Program, 8);
  step.kernel(0, {}, {a}, Part::Update);
  step.copy(0, kept, step.collective(0, CollectiveKind::AllGather, a));
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 8)}, Part::Update);
  step.kernel(0, {kept}, {step.buffer(Lifetime::Program, 8)}, Part::Update);
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 100)}, Part::Update); // the most
  return step;
}

} // namespace

// Each condition alone leaves a collective or what puts its result away where it stands.
TEST(OverlapCollectives, EachConditionAloneSaysNo) {
  auto expect = [](const char *what, StepPlan step, const std::string &wanted) {
    overlapCollectives(step.plan, 0, step.values);
    EXPECT_EQ(textOf(step.of(0)), wanted) << what;
  };
  auto sumOf = [](StepPlan &step) -> Collective & { return std::get<Collective>(step.of(0)[1].action); };
  expect("nothing", oneSum(), "k0 post(0) k1 wait(0) k2 k3");
  expect("nothing", oneCopy(Lifetime::Session), "k0 post(1) k1 wait(1) copy k2 k3");

  StepPlan posted = oneSum();
  sumOf(posted).request = 0;
  posted.stage().requests = {1};
  posted.of(0).insert(posted.of(0).begin() + 3, {Wait{0}, "wait"});
  expect("posted already", posted, "k0 post(0) k1 wait(0) k2 k3");
  StepPlan empty = oneSum();
  sumOf(empty).count = 0;
  std::get<Kernel>(empty.of(0)[3].action).args.erase(std::get<Kernel>(empty.of(0)[3].action).args.begin()); // nothing is there
  expect("nothing to sum", empty, "k0 reduce(0) k1 k2 k3");
  StepPlan some = oneSum();
  some.of(0)[1].when.values = {1, 0, 1, 0};
  expect("on some ranks", some, "k0 reduce(0) k1 k2 k3");
  StepPlan asked = oneSum();
  asked.of(0)[1].onRequest = true;
  expect("on request", asked, "k0 reduce(0) k1 k2 k3");
  StepPlan copied = oneSum(CollectiveKind::AllGather);
  std::get<Kernel>(copied.of(0)[3].action).args[0].place = sumOf(copied).dst = sumOf(copied).src;
  expect("in place, and no all-reduce", copied, "k0 gather(0) k1 k2 k3");

  expect("put into what the program has itself", oneCopy(Lifetime::Program), "k0 gather(1) copy k1 k2 k3");
  StepPlan seldom = oneCopy(Lifetime::Session);
  seldom.of(0)[2].when.values = {1, 0, 1, 0};
  expect("put away on some ranks", seldom, "k0 gather(1) copy k1 k2 k3");
  StepPlan twice = oneCopy(Lifetime::Session);
  int32_t other = twice.buffer(Lifetime::Session, 16);
  twice.copy(0, other, sumOf(twice).dst.buffer);
  std::rotate(twice.of(0).begin() + 4, twice.of(0).end() - 1, twice.of(0).end());
  expect("put away twice", twice, "k0 post(1) k1 wait(1) copy copy k2 k3");

  // A result that lives longer than the program may be somebody's before; a weight does not overtake what its group does first.
  for (Lifetime lifetime : {Lifetime::Program, Lifetime::Step}) {
    StepPlan step(1, {ProgramKind::Forward});
    int32_t weight = step.buffer(Lifetime::Session, 8), whole = step.buffer(lifetime, 16);
    step.kernel(0, {}, {step.buffer(Lifetime::Program, 8)}, Part::Forward);
    step.collective(0, CollectiveKind::AllGather, weight);
    sumOf(step).dst = {whole, 0};
    step.kernel(0, {whole}, {step.buffer(Lifetime::Program, 8)}, Part::Forward);
    step.kernel(0, {}, {step.buffer(Lifetime::Program, 100)}, Part::Forward); // the most
    expect("a result that lives longer", step, lifetime == Lifetime::Program ? "post(0) k0 wait(0) k1 k2" : "k0 gather(0) k1 k2");
  }
  StepPlan two(1, {ProgramKind::Forward});
  int32_t weight = two.buffer(Lifetime::Session, 8), a = two.buffer(Lifetime::Program, 8);
  two.kernel(0, {}, {a}, Part::Forward);
  int32_t first = two.collective(0, CollectiveKind::AllGather, a);
  two.kernel(0, {}, {two.buffer(Lifetime::Program, 8)}, Part::Forward);
  int32_t second = two.collective(0, CollectiveKind::AllGather, weight);
  two.kernel(0, {second}, {two.buffer(Lifetime::Program, 8)}, Part::Forward);
  two.kernel(0, {first}, {two.buffer(Lifetime::Program, 8)}, Part::Forward);
  two.kernel(0, {}, {two.buffer(Lifetime::Program, 200)}, Part::Forward); // the most
  expect("posted first", two, "k0 post(1) post(0) k1 wait(0) k2 wait(1) k3 k4");
}

// ---- random programs ----------------------------------------------------------------------------

namespace {

/// Collectives of all kinds among kernels that read and overwrite anything, some on request.
StepPlan randomProgram(std::mt19937 &random, bool hasViews) {
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  StepPlan step(1 + below(2), {ProgramKind::Forward, ProgramKind::Update});
  std::vector<int32_t> known[2]; // by program
  std::vector<int32_t> sums;
  auto note = [&](size_t program, int32_t buffer) {
    step.note(program, buffer);
  };
  for (size_t program = 0; program < 2; ++program) {
    std::vector<int32_t> &here = known[program];
    auto any = [&] { return here[size_t(below(int(here.size())))]; };
    if (program == 1)
      here = sums;
    for (int i = 0, count = 4 + below(30); i < count; ++i) {
      const int what = here.empty() ? 0 : below(8);
      if (what < 4) {
        std::vector<int32_t> reads;
        for (int n = here.empty() ? 0 : below(3); n > 0; --n)
          reads.push_back(any());
        int32_t made = step.buffer(Lifetime::Program, 4 + 4 * below(20));
        step.kernel(program, reads, {made}, Part::Forward);
        here.push_back(made);
        note(program, made);
        if (below(8) == 0) {
          int32_t asked = step.buffer(Lifetime::Program, 8);
          step.kernel(program, {any()}, {asked}, Part::Forward).onRequest = true;
          step.store(program, asked);
        }
      } else if (what == 4) { // over what it reads
        int32_t changed = any();
        step.kernel(program, {changed}, {}, Part::Forward);
        std::get<Kernel>(step.of(program).back().action).args[0].writes = true;
        note(program, changed);
      } else {
        const int32_t source = any();
        const bool isShort = step.stage().buffers[size_t(source)].bytes < 16; // nothing would be left of it
        CollectiveKind kind = what == 5              ? CollectiveKind::AllReduce
                              : what == 6 || isShort ? CollectiveKind::AllGather
                                                     : CollectiveKind::ReduceScatter;
        int32_t made = step.collective(program, kind, source, {below(3) ? "dp" : "tp"});
        if (kind == CollectiveKind::AllReduce && below(3) == 0) { // in place
          auto &collective = std::get<Collective>(step.of(program).back().action);
          collective.dst = collective.src;
          made = collective.src.buffer;
        }
        note(program, made);
        here.push_back(made);
        if (program == 0 && below(2)) {
          int32_t sum = step.buffer(Lifetime::Step, step.stage().buffers[size_t(made)].bytes / 4);
          step.accumulate(program, sum, made);
          note(program, sum);
          sums.push_back(sum);
        } else if (below(3) == 0) {
          here.push_back(step.buffer(Lifetime::Session, step.stage().buffers[size_t(made)].bytes / 4));
          step.copy(program, here.back(), made);
          note(program, here.back());
        }
      }
      if (hasViews && below(6) == 0 && !here.empty())
        note(program, any());
    }
  }
  return step;
}

} // namespace

// Whatever moves, every instruction reads what it read before, no buffer is touched in flight, values that are compared
// are where they are said to be, and memory is not more.
TEST(OverlapCollectives, RandomProgramsComputeTheSame) {
  std::mt19937 random(7);
  int posted = 0, added = 0, copied = 0;
  for (int round = 0; round < 3000; ++round) {
    const bool hasBuckets = round % 2;
    StepPlan step = randomProgram(random, !hasBuckets);
    SCOPED_TRACE("round " + std::to_string(round) + ": " + textOf(step.of(0)) + " | " + textOf(step.of(1)));
    if (hasBuckets)
      bucketGradients(step.plan, 0, step.values);
    StepEvaluation before(step);
    const int64_t most = mostLive(step);
    overlapCollectives(step.plan, 0, step.values);
    StepEvaluation after(step);
    ASSERT_EQ(before.history, after.history) << textOf(step.of(0)) << " | " << textOf(step.of(1));
    ASSERT_EQ(before.values, after.values) << textOf(step.of(0)) << " | " << textOf(step.of(1));
    ASSERT_LE(mostLive(step), most) << textOf(step.of(0)) << " | " << textOf(step.of(1));
    ASSERT_TRUE(placeBuffers(step.plan).ok());
    for (size_t p = 0; p < 2; ++p)
      for (size_t i = 0; i < step.of(p).size(); ++i) {
        const auto *collective = std::get_if<Collective>(&step.of(p)[i].action);
        posted += collective && collective->request >= 0;
        if (i == 0 || !std::holds_alternative<Wait>(step.of(p)[i - 1].action))
          continue;
        added += std::holds_alternative<Accumulate>(step.of(p)[i].action);
        copied += std::holds_alternative<Copy>(step.of(p)[i].action);
      }
    if (testing::Test::HasFailure())
      return;
  }
  EXPECT_GT(posted, 2000);
  EXPECT_GT(added, 200);
  EXPECT_GT(copied, 200);
}

} // namespace hpc
