// Models with fewer blocks against the same models made with fewer, and profiles against plans of whole models.
#include "passes/Driver/ProfileEstimate.h"
#include "passes/Search/StageSplit.h"
#include "runtime/cost/MachineFile.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "passes/Phases.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

using namespace hpc;

namespace {
struct BlockProfileTest : testing::Test {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<ScopedDiagnosticHandler> quiet;
  BlockProfileTest() {
    registerDialects(registry);
    context = std::make_unique<MLIRContext>(registry);
    context->loadAllAvailableDialects();
    context->disableMultithreading();
    quiet = std::make_unique<ScopedDiagnosticHandler>(context.get(), [](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        ADD_FAILURE() << diagnostic.str();
      return success();
    });
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get());
    if (module)
      setPhase(*module, "raise");
    return module;
  }

  /// After raise; null where the model is not there.
  OwningOpRef<ModuleOp> raised(const std::string &path, const std::map<std::string, int64_t> &dims, const Options &options) {
    const std::string file = std::string(HPC_SOURCE_DIR) + "/" + path;
    if (!std::filesystem::exists(file))
      return {};
    ImportOptions import;
    import.dims = dims;
    import.withoutWeights = true;
    import.training = options.trains();
    Expected<OwningOpRef<ModuleOp>> module = importOnnx(file, import, context.get());
    EXPECT_TRUE(module.ok()) << module.status().text();
    if (!module.ok())
      return {};
    setPhase(**module, "import");
    EXPECT_TRUE(succeeded(runPhases(**module, options, "raise", [](StringRef) { return success(); }, [](PassManager &) {})));
    return std::move(*module);
  }
};

/// `layers` of two products with a residual and a cache; layer `odd`, if any, has another activation. Every layer returns its own keys, and reads its own past.
/// From `wideFrom` on, layers are wider.
std::string layeredModel(int layers, int odd = -1, int wideFrom = 1000) {
  std::ostringstream arguments, results, types, weights, body, returned;
  for (int i = 0; i < layers; ++i) {
    arguments << ", %past" << i << ": tensor<2x4x8xf32> {nn.name = \"past." << i << "\"}";
    types << ", tensor<2x4x8xf32> {nn.name = \"present." << i << "\"}";
    const std::string w = i < wideFrom ? "16" : "24", bytes = i < wideFrom ? "512" : "768";
    weights << "%a" << i << " = nn.parameter \"h." << i << ".a\" stored <file = \"w\", offset = " << 2048 * i << ", bytes = " << bytes << "> : tensor<8x" << w << "xf32>\n"
            << "%b" << i << " = nn.parameter \"h." << i << ".b\" stored <file = \"w\", offset = " << 2048 * i + 1024 << ", bytes = " << bytes << "> : tensor<" << w << "x8xf32>\n";
    const std::string x = i ? "%x" + std::to_string(i) : "%e", inner = "tensor<2x4x" + w + "xf32>";
    body << "%m" << i << " = nn.matmul " << x << ", %a" << i << " : tensor<2x4x8xf32>, tensor<8x" << w << "xf32> -> " << inner << "\n"
         << "%g" << i << " = nn." << (i == odd ? "tanh" : "relu") << " %m" << i << " : " << inner << " -> " << inner << "\n"
         << "%n" << i << " = nn.matmul %g" << i << ", %b" << i << " : " << inner << ", tensor<" << w << "x8xf32> -> tensor<2x4x8xf32>\n"
         << "%k" << i << " = nn.add %n" << i << ", %past" << i << " : tensor<2x4x8xf32>, tensor<2x4x8xf32> -> tensor<2x4x8xf32>\n"
         << "%x" << i + 1 << " = nn.add " << x << ", %k" << i << " : tensor<2x4x8xf32>, tensor<2x4x8xf32> -> tensor<2x4x8xf32>\n";
    returned << ", %k" << i;
    results << ", tensor<2x4x8xf32>";
  }
  std::ostringstream all;
  all << "func.func @main(%in: tensor<2x4x8xf32> {nn.name = \"in\"}" << arguments.str() << ") -> (tensor<2x4x32xf32> {nn.name = \"out\"}" << types.str() << ") {\n"
      << "%head = nn.parameter \"head\" stored <file = \"w\", offset = 65536, bytes = 1024> : tensor<8x32xf32>\n"
      << weights.str() << "%e = nn.relu %in : tensor<2x4x8xf32> -> tensor<2x4x8xf32>\n"
      << body.str() << "%out = nn.matmul %x" << layers << ", %head : tensor<2x4x8xf32>, tensor<8x32xf32> -> tensor<2x4x32xf32>\n"
      << "return %out" << returned.str() << " : tensor<2x4x32xf32>" << results.str() << "\n}\n";
  return all.str();
}

bool areEqual(ModuleOp one, ModuleOp other) {
  return OperationEquivalence::isEquivalentTo(one, other, OperationEquivalence::IgnoreLocations);
}

void expectWithin(double found, double expected, double share, const std::string &what) {
  EXPECT_NEAR(found, expected, share * expected) << what;
}
} // namespace

TEST_F(BlockProfileTest, shortenedIsTheModelWithFewerLayers) {
  OwningOpRef<ModuleOp> whole = parse(layeredModel(6));
  ASSERT_TRUE(whole);
  std::vector<BlockChain> chains = findRepeatedBlocks(*whole, Options());
  ASSERT_EQ(chains.size(), 1u);
  ASSERT_EQ(chains[0].size(), 6u);
  for (int layers : {1, 2, 3, 6}) {
    OwningOpRef<ModuleOp> few = shortened(*whole, chains, {layers}).module;
    ASSERT_TRUE(succeeded(mlir::verify(*few)));
    EXPECT_TRUE(areEqual(*few, *parse(layeredModel(layers)))) << layers;
  }
  EXPECT_TRUE(areEqual(*whole, *parse(layeredModel(6)))) << "the model itself stays";
}

TEST_F(BlockProfileTest, twoKindsOfLayersAreTwoChains) {
  OwningOpRef<ModuleOp> whole = parse(layeredModel(11, -1, 5));
  ASSERT_TRUE(whole);
  std::vector<BlockChain> chains = findRepeatedBlocks(*whole, Options());
  ASSERT_EQ(chains.size(), 2u);
  EXPECT_EQ(chains[0].size(), 5u);
  EXPECT_EQ(chains[1].size(), 6u);
  ShortenedModel few = shortened(*whole, chains, {2, 3});
  ASSERT_TRUE(succeeded(mlir::verify(*few.module)));
  int64_t products = 0;
  few.module->walk([&](nn::MatmulOp) { ++products; });
  EXPECT_EQ(products, 2 * 2 + 2 * 3 + 1);
  EXPECT_EQ(few.blocks[0].size(), 2u);
  EXPECT_EQ(few.blocks[1].size(), 3u);
  BlockProfiler profiler(*whole, Options());
  for (int64_t stages : {1, 3}) { // the sums are those of the whole plan
    Options options;
    for (dist::Mesh::Axis &axis : options.degrees.axes)
      if (axis.role == dist::AxisRole::Pipeline)
        axis.size = stages;
    Expected<BlockProfile> profile = profiler.profile(options);
    ASSERT_TRUE(profile.ok()) << stages << profile.status().text();
    Expected<Trial> plan = tryPlan(*whole, options);
    ASSERT_TRUE(plan.ok()) << stages << plan.status().text();
    int64_t weights = 0;
    for (const plan::MemoryFacts &memory : plan->memory)
      weights += memory.weight;
    EXPECT_EQ(profile->whole().weight, weights) << stages;
  }
}

TEST_F(BlockProfileTest, namesHaveCounterparts) {
  OwningOpRef<ModuleOp> whole = parse(layeredModel(5));
  std::vector<BlockChain> chains = findRepeatedBlocks(*whole, Options());
  ASSERT_EQ(chains.size(), 1u);
  std::map<std::string, std::string> names = shortenedNames(chains, {3});
  EXPECT_EQ(names.size(), 10u);
  EXPECT_EQ(names["h.0.a"], "h.0.a");
  EXPECT_EQ(names["h.1.b"], "h.1.b");
  EXPECT_EQ(names["h.3.b"], "h.1.b");
  EXPECT_EQ(names["h.4.a"], "h.2.a");
  EXPECT_EQ(shortenedNames(chains, {2})["h.3.a"], "h.1.a");
}

TEST_F(BlockProfileTest, anOddLayerEndsAChain) {
  OwningOpRef<ModuleOp> whole = parse(layeredModel(8, 6)); // 0 to 5 are equal
  std::vector<BlockChain> chains = findRepeatedBlocks(*whole, Options());
  ASSERT_EQ(chains.size(), 1u);
  EXPECT_EQ(chains[0].size(), 6u);
  OwningOpRef<ModuleOp> few = shortened(*whole, chains, {2}).module;
  ASSERT_TRUE(succeeded(mlir::verify(*few)));
  EXPECT_EQ(cast<func::FuncOp>(few->lookupSymbol("main")).getNumArguments(), 1u + 4u); // past 0, 1, 6 and 7
  std::vector<BlockChain> ofFirst = findRepeatedBlocks(*parse(layeredModel(8, 0)), Options());
  ASSERT_EQ(ofFirst.size(), 1u);
  EXPECT_EQ(ofFirst[0].size(), 7u);
}

TEST_F(BlockProfileTest, theUsersRulesMakeBlocksUnequal) {
  OwningOpRef<ModuleOp> whole = parse(layeredModel(8));
  Options options;
  options.freeze = "h.0.*,h.1.*";
  ASSERT_EQ(findRepeatedBlocks(*whole, options).size(), 1u);
  EXPECT_EQ(findRepeatedBlocks(*whole, options)[0].size(), 6u);
  // A rule for each block that says the same leaves them equal.
  std::string same = R"({"version": 1, "params": [)", other = same;
  for (int i = 0; i < 8; ++i) {
    same += (i ? ", " : "") + ("{\"match\": \"h." + std::to_string(i) + ".a\", \"shard\": [{\"dim\": 1, \"axis\": \"tp\"}]}");
    other += (i ? ", " : "") + ("{\"match\": \"h." + std::to_string(i) + ".a\", \"shard\": [{\"dim\": " + std::to_string(i == 7 ? 0 : 1) + ", \"axis\": \"tp\"}]}");
  }
  setSidecar(*whole, "x.shard.json", same + "]}");
  ASSERT_EQ(findRepeatedBlocks(*whole, Options()).size(), 1u);
  EXPECT_EQ(findRepeatedBlocks(*whole, Options())[0].size(), 8u);
  setSidecar(*whole, "x.shard.json", other + "]}");
  EXPECT_EQ(findRepeatedBlocks(*whole, Options())[0].size(), 7u);
}

TEST_F(BlockProfileTest, whatDoesNotRepeatIsItsOwnProfile) {
  Options options;
  EXPECT_TRUE(findRepeatedBlocks(*parse(layeredModel(1)), options).empty());
  EXPECT_FALSE(BlockProfiler(*parse(layeredModel(3)), options).repeats());
  OwningOpRef<ModuleOp> trained = parse(layeredModel(6));
  setPhase(*trained, "train");
  EXPECT_TRUE(findRepeatedBlocks(*trained, options).empty());
}

/// The costs that --pp-split=balanced balances, by hand: products read and write, other ops write.
TEST_F(BlockProfileTest, blocksCountTheirBytesOnAMachine) {
  OwningOpRef<ModuleOp> module = parse(layeredModel(4));
  const std::vector<double> flops = BlockProfiler(*module, Options()).unitCosts();
  ASSERT_EQ(flops.size(), 4u);
  EXPECT_GE(flops[1], 2 * (2 * 4 * 8 * 16) + 2 * (2 * 4 * 16 * 8));
  cost::Machine machine;
  machine.name = "1000 operations a byte";
  machine.products = {{DType::F32, 100e12, {}}};
  machine.bytesPerSecond = 100e9;
  Options options;
  options.machine = cost::machineText(machine);
  (*module)->setAttr(optionsAttrName, options.toAttribute(context.get()));
  const std::vector<double> costs = BlockProfiler(*module, options).unitCosts();
  ASSERT_EQ(costs.size(), 4u);
  const double layer = (256 + 512 + 512) + 512 + (512 + 512 + 256) + 256 + 256, head = 256 + 1024 + 1024;
  EXPECT_DOUBLE_EQ(costs[1], 1000 * layer);
  EXPECT_DOUBLE_EQ(costs[3], 1000 * (layer + head));
}

namespace {
struct WholeCase {
  const char *model;
  std::map<std::string, int64_t> dims;
  std::map<std::string, int64_t> degrees;
  const char *loss = "";
  int64_t zero = 0;
  const char *recompute = "none";
  double seconds = 0.01; ///< share by which the sum may be off
};

Options optionsOf(const WholeCase &given) {
  Options options;
  for (auto [kind, axis] : llvm::zip_equal(dist::axisKinds(), options.degrees.axes))
    if (auto degree = given.degrees.find(std::string(kind.flag)); degree != given.degrees.end())
      axis.size = degree->second;
  options.loss = given.loss;
  options.zero = given.zero;
  options.recompute = given.recompute;
  return options;
}
} // namespace

/// Memory and time of one-stage plans of whole models are the profile's sums.
TEST_F(BlockProfileTest, sumsAreThoseOfWholePlans) {
  const std::string gpt2 = "../shared/models/gpt2-124m/model.onnx", llama = "../shared/models/llama3-8b/model.onnx";
  const std::vector<WholeCase> cases = {
      {gpt2.c_str(), {{"batch_size", 8}, {"sequence_length", 64}}, {{"tp", 2}}},
      {gpt2.c_str(), {{"batch_size", 8}, {"sequence_length", 64}}, {{"tp", 2}, {"dp", 2}}, "causal-lm"},
      {gpt2.c_str(), {{"batch_size", 8}, {"sequence_length", 64}}, {{"dp", 2}, {"micro-batches", 4}}, "causal-lm", 1},
      {gpt2.c_str(), {{"batch_size", 8}, {"sequence_length", 64}}, {{"dp", 2}, {"micro-batches", 2}}, "causal-lm", 3, "full", 0.08}, // gathers of a few blocks hide otherwise
      {llama.c_str(), {{"batch_size", 4}, {"sequence_length", 256}}, {{"tp", 4}}, "causal-lm", 0, "attention"},
  };
  for (const WholeCase &each : cases) {
    const Options options = optionsOf(each);
    OwningOpRef<ModuleOp> module = raised(each.model, each.dims, options);
    if (!module)
      GTEST_SKIP() << each.model << " is not there";
    BlockProfiler profiler(*module, options);
    ASSERT_TRUE(profiler.repeats());
    Expected<BlockProfile> profile = profiler.profile(options);
    ASSERT_TRUE(profile.ok()) << profile.status().text();
    Expected<Trial> whole = tryPlan(*module, options);
    ASSERT_TRUE(whole.ok()) << whole.status().text();
    const BlockShare sum = profile->whole();
    const std::string what = std::string(each.model) + " zero=" + std::to_string(each.zero) + " " + each.recompute;
    const plan::MemoryFacts &memory = whole->memory[0];
    EXPECT_EQ(sum.weight, memory.weight) << what;
    EXPECT_EQ(sum.state, memory.state) << what;
    expectWithin(double(sum.step), double(memory.step), 0.01, what + ": accumulators");
    expectWithin(double(sum.weight + sum.state + sum.step + sum.kept + sum.temp), double(memory.total()), 0.01, what + ": memory");
    const int64_t microBatches = options.microBatches();
    expectWithin(double(microBatches) * sum.seconds.computing() + sum.seconds.update, whole->seconds, each.seconds, what + ": seconds");
  }
}

/// Stages of pipelines of whole models are sums of the profile's parts.
TEST_F(BlockProfileTest, stagesAreSumsOfBlocks) {
  const std::string gpt2 = "../shared/models/gpt2-124m/model.onnx";
  WholeCase given{gpt2.c_str(), {{"batch_size", 16}, {"sequence_length", 64}}, {{"pp", 4}, {"tp", 2}, {"micro-batches", 8}}, "causal-lm"};
  for (const char *recompute : {"none", "full"}) {
    given.recompute = recompute;
    Options options = optionsOf(given);
    options.ppSplit = "3,3,3,3";
    OwningOpRef<ModuleOp> module = raised(given.model, given.dims, options);
    if (!module)
      GTEST_SKIP() << given.model << " is not there";
    BlockProfiler profiler(*module, options);
    Expected<BlockProfile> profile = profiler.profile(options);
    ASSERT_TRUE(profile.ok()) << profile.status().text();
    Expected<Trial> whole = tryPlan(*module, options);
    ASSERT_TRUE(whole.ok()) << whole.status().text();
    for (size_t stage = 0; stage < 4; ++stage) {
      BlockShare sum = stage == 0 ? profile->before : stage == 3 ? profile->after : profile->between;
      sum.add(profile->block[0], 3);
      const plan::MemoryFacts &memory = whole->memory[stage];
      const std::string what = std::string(recompute) + ", stage " + std::to_string(stage);
      expectWithin(double(sum.weight + sum.state + sum.step), double(memory.weight + memory.state + memory.step), 0.01, what + ": lasting");
      expectWithin(double(sum.kept), double(whole->costs[stage].microBatchBytes), 0.01, what + ": kept");
      expectWithin(sum.seconds.computing(), whole->costs[stage].seconds.computing(), 0.01, what + ": seconds");
    }
  }
}

/// The split that the problem finds is the fastest of the plans of all splits near it, by the plans' own costs.
TEST_F(BlockProfileTest, theBestSplitIsTheBestOfPlans) {
  const std::string gpt2 = "../shared/models/gpt2-124m/model.onnx";
  WholeCase given{gpt2.c_str(), {{"batch_size", 8}, {"sequence_length", 64}}, {{"pp", 2}, {"micro-batches", 4}}, "causal-lm"};
  Options options = optionsOf(given);
  OwningOpRef<ModuleOp> module = raised(given.model, given.dims, options);
  if (!module)
    GTEST_SKIP() << given.model << " is not there";
  BlockProfiler profiler(*module, options);
  Expected<BlockProfile> profile = profiler.profile(options);
  ASSERT_TRUE(profile.ok()) << profile.status().text();
  Expected<search::StageProblem> problem = search::stageProblemOf(*profile, options);
  ASSERT_TRUE(problem.ok()) << problem.status().text();
  Expected<search::StageProblem::Solution> found = search::splitStages(*problem);
  ASSERT_TRUE(found.ok()) << found.status().text();
  Trials trials(*module);
  auto slowestOf = [&](int64_t first) {
    StagedTrials tries;
    options.ppSplit = std::to_string(first) + "," + std::to_string(12 - first);
    Expected<Trial> trial = trials.run(options, tries);
    EXPECT_TRUE(trial.ok()) << trial.status().text();
    return trial.ok() ? std::max(trial->costs[0].seconds.computing(), trial->costs[1].seconds.computing()) : 0;
  };
  const double best = slowestOf(found->counts[0]);
  expectWithin(found->seconds, best, 0.01, "slowest stage");
  for (int64_t other : {found->counts[0] - 1, found->counts[0] + 1})
    if (other > 0 && other < 12)
      EXPECT_GE(slowestOf(other), best * 0.999) << other;
  EXPECT_EQ(search::splitText(*found), std::to_string(found->counts[0]) + "," + std::to_string(found->counts[1]));
}

/// The proposals of --memory for large programs: memory of each stage and time, for pipelines cut as phase stage cuts them.
TEST_F(BlockProfileTest, estimatesAreNearPlans) {
  const std::string gpt2 = "../shared/models/gpt2-124m/model.onnx";
  const std::vector<WholeCase> cases = {
      {gpt2.c_str(), {{"batch_size", 16}, {"sequence_length", 64}}, {{"pp", 4}, {"tp", 2}, {"micro-batches", 8}}, "causal-lm"},
      // With one micro-batch a stage sends its gradient before it is done with its own weights.
      {gpt2.c_str(), {{"batch_size", 16}, {"sequence_length", 64}}, {{"pp", 4}}, "causal-lm", 0, "none", 0.25},
      {gpt2.c_str(), {{"batch_size", 16}, {"sequence_length", 64}}, {{"pp", 2}, {"tp", 2}, {"micro-batches", 4}}, "causal-lm", 0, "full"},
      {gpt2.c_str(), {{"batch_size", 16}, {"sequence_length", 64}}, {{"tp", 2}}, ""},
      {gpt2.c_str(), {{"batch_size", 16}, {"sequence_length", 64}}, {{"pp", 3}, {"micro-batches", 2}}, ""},
  };
  for (const WholeCase &each : cases) {
    const Options options = optionsOf(each);
    OwningOpRef<ModuleOp> module = raised(each.model, each.dims, options);
    if (!module)
      GTEST_SKIP() << each.model << " is not there";
    BlockProfiler profiler(*module, options);
    Expected<ProfileEstimate> estimate = estimateByProfile(profiler, options);
    ASSERT_TRUE(estimate.ok()) << estimate.status().text();
    Expected<Trial> whole = tryPlan(*module, options);
    ASSERT_TRUE(whole.ok()) << whole.status().text();
    const std::string what = "pp=" + std::to_string(options.stages()) + " " + each.recompute;
    for (size_t stage = 0; stage < whole->memory.size(); ++stage)
      expectWithin(double(estimate->memory[stage]), double(whole->memory[stage].total()), 0.03, what + ", memory of stage " + std::to_string(stage));
    expectWithin(estimate->seconds, whole->seconds, std::max(0.15, each.seconds), what + ": seconds");
  }
}
