// The whole search against brute force: every outer choice of gpt2-tiny, written down here once more as plain loops, compiled and simulated. HPC_TEST_ALL
// takes 8 ranks and all choices of a training step, too: thousands of plans.
#include "passes/Search/Search.h"

#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Phases.h"

#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace hpc;

namespace {
/// The question of a search: gpt2-tiny for some ranks.
struct Case {
  int64_t devices = 4, batch = 4, sequence = 16;
  bool trains = false;
  std::set<std::string> given = {}; ///< flags that stay at their defaults
  int64_t memory = 0;
  size_t effort = 1;
};

struct SearchTest : testing::Test {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<DiagnosticPrinter> diagnostics;
  SearchTest() {
    registerDialects(registry);
    context = std::make_unique<MLIRContext>(registry);
    context->loadAllAvailableDialects();
    context->disableMultithreading();
    diagnostics = std::make_unique<DiagnosticPrinter>(context.get(), false, [](DiagnosticSeverity severity, ErrorKind, const std::string &text) {
      if (severity == DiagnosticSeverity::Error)
        ADD_FAILURE() << text;
    });
  }

  static search::Question questionOf(const Case &given) {
    search::Question question;
    question.effort = given.effort;
    question.listed = 1000;
    CompileRequest &request = question.request;
    request.input = std::string(HPC_SOURCE_DIR) + "/models/gpt2-tiny/dynamo-eager-op18.onnx";
    request.dims = {{"batch_size", given.batch}, {"sequence_length", given.sequence}};
    request.devices = given.devices;
    request.spec = "none";
    request.given = given.given;
    request.options.memory = given.memory;
    if (given.trains)
      request.options.loss = "auto";
    return question;
  }

  Expected<search::Answer> found(const Case &given) { return search::findPlan(questionOf(given), *context, *diagnostics); }

  /// The program before anything is cut.
  OwningOpRef<ModuleOp> program(const Case &given, int64_t microBatches) {
    CompileRequest request = questionOf(given).request;
    request.devices.reset();
    request.degrees = {{"mb", microBatches}};
    Compilation compilation(request, *context, *diagnostics);
    EXPECT_TRUE(compilation.load().ok());
    EXPECT_TRUE(succeeded(runPhases(*compilation.module, compilation.request.options, "precision", [](StringRef) { return success(); }, [](PassManager &) {})));
    return std::move(compilation.module);
  }

  /// Seconds of the fastest plan, and of the fastest that fits a memory.
  struct Fastest {
    double any, fitting;
  };
  Fastest bruteForce(const Case &given, int64_t memory);
};

/// All choices of which the phases up to partition read the same stand in one list.
std::vector<std::vector<Options>> allChoices(const Case &given, const Options &options) {
  constexpr int64_t layers = 4;
  auto free = [&](const char *flag) { return given.given.count(flag) == 0; };
  std::vector<std::vector<Options>> all;
  for (int64_t dp = 1; dp <= given.devices; ++dp)
    for (int64_t cp = 1; cp <= given.devices; ++cp)
      for (int64_t tp = 1; tp <= given.devices; ++tp)
        for (int64_t pp = 1; pp <= given.devices; ++pp) {
          if (dp * cp * tp * pp != given.devices || given.batch % dp || (!free("cp") && cp > 1))
            continue;
          for (const std::string &layout : tp > 1 ? layoutsOf(tp) : std::vector<std::string>{"1d"})
            for (const char *mode : {"gather", "ring", "ulysses"})
              for (int64_t microBatches = 1; microBatches <= given.batch / dp; ++microBatches)
                for (int64_t zero = 0; zero < 4; ++zero) {
                  if ((cp == 1 && mode != std::string("gather")) || given.batch / dp % microBatches || (zero && (!given.trains || dp * cp == 1 || !free("zero"))) ||
                      (zero == 2 && microBatches == 1))
                    continue;
                  std::vector<Options> list;
                  for (const char *recompute : {"none", "attention", "full", "auto"})
                    for (const char *schedule : {"", "gpipe", "zb-h1"})
                      for (int64_t chunks = 1; chunks <= layers; ++chunks) {
                        const bool recomputes = recompute != std::string("none"), isNamed = *schedule != 0;
                        if ((recomputes && (!given.trains || !free("recompute"))) || (recompute == std::string("auto") && !given.memory) ||
                            ((isNamed || chunks > 1) && (!given.trains || pp == 1)) || (isNamed && chunks > 1) ||
                            (chunks > 1 && (layers % (pp * chunks) || microBatches % pp)))
                          continue;
                        Options next = options;
                        next.degrees = dist::degreesOf({{"dp", dp}, {"cp", cp}, {"tp", tp}, {"pp", pp}, {"mb", microBatches}});
                        next.setLayout(layout);
                        next.cpMode = mode;
                        next.zero = zero;
                        next.recompute = recompute;
                        next.ppSchedule = schedule;
                        next.ppChunks = chunks;
                        list.push_back(next);
                      }
                  all.push_back(std::move(list));
                }
        }
  return all;
}

/// A limit of memory changes what --recompute=auto makes, and no other plan: the others are compiled once.
SearchTest::Fastest SearchTest::bruteForce(const Case &given, int64_t memory) {
  Case limited = given;
  limited.memory = memory;
  OwningOpRef<ModuleOp> whole = program(given, 1), pieces = program(given, 2);
  const std::vector<std::vector<Options>> all = allChoices(limited, questionOf(limited).request.options);
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<Fastest> least(all.size(), Fastest{never, never});
  ManyThreads threads(context.get());
  mlir::parallelFor(context.get(), 0, all.size(), [&](size_t number) {
    Trials trials(all[number].front().microBatches() > 1 ? *pieces : *whole);
    Fastest &found = least[number];
    for (const Options &options : all[number]) {
      StagedTrials staged;
      Expected<Trial> trial = trials.run(options, staged);
      if (!trial.ok())
        continue;
      if (options.recompute != "auto")
        found.any = std::min(found.any, trial->seconds);
      if (trial->fits.ok())
        found.fitting = std::min(found.fitting, trial->seconds);
    }
  });
  Fastest fastest{never, never};
  for (const Fastest &each : least)
    fastest = {std::min(fastest.any, each.any), std::min(fastest.fitting, each.fitting)};
  return fastest;
}

/// The fastest plan without a sidecar and a split of the search's own, which no outer choice has.
const search::Ranked &fastestOf(const search::Answer &answer) {
  return *llvm::find_if(answer.best, [](const search::Ranked &each) { return each.candidate.sidecar.empty() && each.candidate.split.empty(); });
}

/// The search finds what brute force finds, without and with a limit of memory.
#define EXPECT_EXACT(given)                                                                                                                                    \
  do {                                                                                                                                                         \
    Case one = given;                                                                                                                                          \
    Expected<search::Answer> fastest = found(one);                                                                                                             \
    ASSERT_TRUE(fastest.ok()) << fastest.status().text();                                                                                                      \
    one.memory = fastestOf(*fastest).memory * 7 / 10;                                                                                                          \
    Expected<search::Answer> smaller = found(one);                                                                                                             \
    ASSERT_TRUE(smaller.ok()) << smaller.status().text();                                                                                                      \
    const Fastest expected = bruteForce(given, one.memory);                                                                                                    \
    EXPECT_EQ(fastestOf(*fastest).seconds, expected.any) << fastestOf(*fastest).candidate.flags();                                                             \
    EXPECT_LE(fastest->winner().seconds, fastestOf(*fastest).seconds);                                                                                         \
    EXPECT_LE(fastest->atPeak, fastest->winner().seconds);                                                                                                     \
    EXPECT_EQ(fastestOf(*smaller).seconds, expected.fitting) << fastestOf(*smaller).candidate.flags();                                                         \
    EXPECT_LE(smaller->winner().memory, one.memory);                                                                                                           \
  } while (false)

TEST_F(SearchTest, ForwardIsExact) { EXPECT_EXACT((Case{4, 4, 16, false, {}, 0, 100})); }

/// A sample of the choices of a training step.
TEST_F(SearchTest, TrainingIsExact) { EXPECT_EXACT((Case{4, 2, 8, true, {"zero", "recompute", "cp"}, 0, 100})); }

/// All choices of a kind: two sequences are enough for dp, micro-batches and chunks.
struct AllOfSearchTest : SearchTest {
  void SetUp() override {
    if (!std::getenv("HPC_TEST_ALL"))
      GTEST_SKIP() << "HPC_TEST_ALL";
  }
};
TEST_F(AllOfSearchTest, FourRanksOfTraining) { EXPECT_EXACT((Case{4, 2, 16, true, {}, 0, 100})); }
TEST_F(AllOfSearchTest, EightRanks) { EXPECT_EXACT((Case{8, 8, 16, false, {}, 0, 100})); }
TEST_F(AllOfSearchTest, EightRanksOfTraining) { EXPECT_EXACT((Case{8, 2, 16, true, {}, 0, 100})); }

/// A candidate's flags name what it differs in, and bounds are below what is compiled.
TEST_F(SearchTest, BoundsHoldForAllCandidates) {
  OwningOpRef<ModuleOp> whole = program({4, 4, 16, true}, 1);
  const cost::Machine machine;
  const search::Work work = search::workOf(*whole, machine);
  search::Space space;
  space.options = questionOf({4, 4, 16, true}).request.options;
  space.devices = 4;
  space.batch = 4;
  space.positions = 16;
  space.products = 17;
  space.blocks = 4;
  space.decided = {"micro-batches", "cp", "pp-schedule"};
  std::vector<search::Candidate> candidates;
  for (const search::Family &family : search::familiesOf(space)) {
    const std::vector<search::Candidate> members = search::membersOf(space, family);
    EXPECT_EQ(int64_t(members.size()), family.members);
    for (const search::Candidate &member : members) {
      EXPECT_LE(search::leastSeconds(family.fastest, work, machine), search::leastSeconds(member, work, machine));
      EXPECT_LE(search::leastMemory(family.thinnest, work), search::leastMemory(member, work));
    }
    candidates.insert(candidates.end(), members.begin(), members.end());
  }
  std::set<std::string> flags;
  size_t tried = 0, compiled = 0;
  for (const search::Candidate &candidate : candidates) {
    EXPECT_EQ(candidate.ranks(), 4);
    EXPECT_TRUE(flags.insert(candidate.flags()).second) << candidate.flags();
    if (flags.size() % 3 != 0 && !std::getenv("HPC_TEST_ALL"))
      continue;
    ++tried;
    Expected<Trial> trial = tryPlan(*whole, candidate.options(space.options));
    if (!trial.ok())
      continue;
    ++compiled;
    EXPECT_LE(search::leastSeconds(candidate, work, machine), trial->seconds) << candidate.flags();
    EXPECT_LE(search::leastMemory(candidate, work), trial->peak()) << candidate.flags();
  }
  EXPECT_GT(compiled, tried / 2);
}
} // namespace
