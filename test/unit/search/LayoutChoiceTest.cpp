// The layout that the search chooses: the integer program has the same optimum, the plan has the collectives that the solution has, and
// it is Megatron's where that is the cheapest.
#include "BruteForce.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "passes/Driver/Compilation.h"
#include "passes/Phases.h"
#include "passes/Search/Elimination.h"
#include "passes/Search/LayoutChoice.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <fstream>

using namespace hpc;
using namespace hpc::search;

namespace {
struct ModelCase {
  std::string file;
  std::map<std::string, int64_t> dims;
  int64_t tp = 2;
  std::string loss = {};
};

std::string pathOf(const ModelCase &model) { return HPC_SOURCE_DIR "/models/" + model.file; }

class LayoutChoiceTest : public testing::Test {
protected:
  LayoutChoiceTest() : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  Expected<LayoutChoice> choose(const ModelCase &model, const cost::Machine &machine, bool explains = false) {
    ImportOptions import;
    import.dims = model.dims;
    options.loss = model.loss;
    import.training = options.trains();
    import.inference = !import.training;
    options.degrees = dist::degreesOf({{"tp", model.tp}});
    Expected<OwningOpRef<ModuleOp>> imported = importOnnx(pathOf(model), import, &context);
    if (!imported.ok())
      return imported.status();
    module = std::move(*imported);
    noteShapes(*module);
    if (failed(runPhases(*module, options, options.trains() ? "train" : "raise", [](StringRef) { return success(); }, [](PassManager &) {})))
      return Status::error(ErrorKind::Internal, "phases");
    return chooseLayout(*module, options, machine, explains);
  }

  /// The program's own axes, each with its number.
  using Counts = std::map<std::string, int>;
  static Counts countsOf(const std::vector<LayoutCollective> &collectives) {
    const char *names[] = {"", "permute", "all_to_all", "all_gather", "all_reduce", "", "reduce_scatter"};
    Counts counts;
    for (const LayoutCollective &each : collectives)
      counts[std::string(names[each.kind]) + " over " + llvm::join(each.axes, ",") + ": " + std::to_string(each.bytes)] += int(each.times);
    return counts;
  }
  static Counts countsOf(const CompiledPlan &compiled) {
    std::map<plan::CollectiveKind, const char *> names = {{plan::CollectiveKind::Permute, "permute"},
                                                          {plan::CollectiveKind::AllToAll, "all_to_all"},
                                                          {plan::CollectiveKind::AllGather, "all_gather"},
                                                          {plan::CollectiveKind::AllReduce, "all_reduce"},
                                                          {plan::CollectiveKind::ReduceScatter, "reduce_scatter"}};
    Counts counts;
    for (const plan::TrafficFacts &each : compiled.facts.collectives) {
      const plan::Instruction &instruction =
          compiled.plan.stages[size_t(each.stage)].programs[size_t(each.program)].instructions[size_t(each.instruction)];
      const auto &collective = std::get<plan::Collective>(instruction.action);
      counts[std::string(names[collective.kind]) + " over " + llvm::join(collective.axes, ",") + ": " + std::to_string(each.bytes)] += int(each.runs);
    }
    return counts;
  }

  /// The plan has what the compiler's program has, one by one; and as many collectives as the solution, of as many bytes. (A gather after an op and a
  /// scatter before it may take as long.)
  static void expectSame(const CompiledPlan &plan, const LayoutChoice &choice, const std::string &name) {
    EXPECT_EQ(countsOf(plan), countsOf(choice.collectives)) << name;
    auto total = [](const std::vector<LayoutCollective> &collectives) {
      std::pair<int64_t, int64_t> sum;
      for (const LayoutCollective &each : collectives) {
        sum.first += each.times;
        sum.second += each.bytes * each.times;
      }
      return sum;
    };
    EXPECT_EQ(total(choice.collectives), total(choice.predicted)) << name;
  }

  Expected<CompiledPlan> compiled(const ModelCase &model, const Sidecar &sidecar) {
    std::string spec = testing::TempDir() + "layout-choice.shard.json";
    std::ofstream(spec) << sidecarText(sidecar);
    CompileRequest request;
    request.input = pathOf(model);
    request.dims = model.dims;
    request.inference = !options.trains();
    request.options = options;
    request.degrees = {{"tp", model.tp}};
    request.spec = spec;
    request.verify = true; // errors where the plan does not compute what the model does
    return compile(request);
  }

  MLIRContext context;
  Options options;
  OwningOpRef<ModuleOp> module;
};

/// Computes slowly, so that every op is worth a cut.
cost::Machine slow() {
  cost::Machine machine;
  machine.products = {{DType::F32, 1e10, {}}};
  machine.bytesPerSecond = 1e10;
  machine.links = {{0, 1e-8, 1e10}};
  return machine;
}

const ModelCase mlp{"mlp/dynamo-op18.onnx", {{"batch", 4}}}, tiny{"gpt2-tiny/dynamo-eager-op18.onnx", {{"batch_size", 4}, {"sequence_length", 16}}},
    decoder{"decoder/model.onnx", {{"batch", 4}, {"time", 8}}}, vit{"vit/model.onnx", {{"batch", 4}}};
} // namespace

TEST_F(LayoutChoiceTest, PlansHaveTheSolutionsCollectives) {
  for (ModelCase model : {mlp, tiny, decoder, vit})
    for (int64_t tp : {2, 4})
      for (const cost::Machine &machine : {cost::Machine(), slow()}) {
        model.tp = tp;
        Expected<LayoutChoice> choice = choose(model, machine);
        ASSERT_TRUE(choice.ok()) << model.file << ": " << choice.status().message();
        EXPECT_NEAR(choice->seconds, choice->solution, 1e-6 * choice->solution) << model.file << " tp=" << tp;
        Expected<CompiledPlan> plan = compiled(model, choice->sidecar);
        ASSERT_TRUE(plan.ok()) << model.file << ": " << plan.status().message();
        expectSame(*plan, *choice, model.file + " tp=" + std::to_string(tp));
      }
}

TEST_F(LayoutChoiceTest, EqualsTheIntegerProgram) {
  for (const ModelCase &model : {tiny, decoder, vit})
    for (const cost::Machine &machine : {cost::Machine(), slow()}) {
      Expected<LayoutChoice> choice = choose(model, machine);
      ASSERT_TRUE(choice.ok());
      std::optional<double> best = solveByCbc(choice->problem.condensed().problem);
      ASSERT_TRUE(best.has_value()) << model.file;
      EXPECT_NEAR(choice->solution, *best, 1e-6 * *best) << model.file;
    }
}

static std::map<std::string, std::string> cutsOf(const LayoutChoice &choice, StringRef block) {
  std::map<std::string, std::string> cuts;
  for (const ParamRule &rule : choice.sidecar.params)
    if (StringRef(rule.match).contains(block) && StringRef(rule.match).ends_with("weight")) {
      std::string text;
      for (const SidecarCut &cut : rule.shard)
        text += std::to_string(cut.dim) + (cut.of.empty() ? "" : " of " + std::to_string(cut.of.size()));
      cuts[rule.match] = text;
    }
  return cuts;
}

/// One row: nothing but weights can be cut, so Shoeybi et al.'s layout is the cheapest: columns of thirds, rows, columns, rows.
static const std::map<std::string, std::string> megatron = {{"transformer.h.1.attn.c_attn.weight", "1 of 2"},
                                                            {"transformer.h.1.attn.c_proj.weight", "0"},
                                                            {"transformer.h.1.mlp.c_fc.weight", "1"},
                                                            {"transformer.h.1.mlp.c_proj.weight", "0"}};

TEST_F(LayoutChoiceTest, FindsMegatronsForOneRow) {
  ModelCase model = tiny;
  model.dims = {{"batch_size", 1}, {"sequence_length", 1}};
  Expected<LayoutChoice> choice = choose(model, slow());
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_EQ(cutsOf(*choice, ".h.1."), megatron);
  Expected<CompiledPlan> plan = compiled(model, choice->sidecar);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  expectSame(*plan, *choice, model.file);
}

TEST_F(LayoutChoiceTest, KeepsWeightsWholeWhereRowsCanBeCut) {
  Expected<LayoutChoice> choice = choose(tiny, slow());
  ASSERT_TRUE(choice.ok());
  for (const ParamRule &rule : choice->sidecar.params)
    EXPECT_TRUE(rule.shard.empty()) << rule.match;
  EXPECT_TRUE(choice->predicted.empty());
}

TEST_F(LayoutChoiceTest, FindsMegatronsForAStep) {
  ModelCase model = tiny;
  model.loss = "causal-lm";
  model.dims = {{"batch_size", 1}, {"sequence_length", 8}}; // activations of 1 KiB, gradients of 48 KiB a layer
  Expected<LayoutChoice> choice = choose(model, slow(), /*explains=*/true);
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_EQ(cutsOf(*choice, ".h.1."), megatron);
  ASSERT_FALSE(choice->reasons.empty());
  for (const WeightReason &reason : choice->reasons)
    EXPECT_GE(reason.more, -1e-12) << reason.text(); // another cut is never faster
  Expected<CompiledPlan> plan = compiled(model, choice->sidecar);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
}

TEST_F(LayoutChoiceTest, KeepsTheUsersRules) {
  ModelCase model = tiny;
  ASSERT_TRUE(choose(model, slow()).ok());
  setSidecar(*module, "mine.shard.json", R"({"version": 1, "params": [{"match": "*.h.2.mlp.c_fc.weight", "shard": [{"dim": 0, "axis": "tp"}]}]})");
  Expected<LayoutChoice> choice = chooseLayout(*module, options, slow());
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_EQ(choice->sidecar.params.front().match, "*.h.2.mlp.c_fc.weight");
  EXPECT_EQ(llvm::count_if(choice->sidecar.params, [](const ParamRule &rule) { return StringRef(rule.match).contains("h.2.mlp.c_fc.weight"); }), 1);
}

TEST_F(LayoutChoiceTest, IsTheSameEveryTime) {
  for (const char *loss : {"", "causal-lm"}) {
    ModelCase model = tiny;
    model.loss = loss;
    Expected<LayoutChoice> once = choose(model, slow()), again = choose(model, slow());
    ASSERT_TRUE(once.ok() && again.ok());
    EXPECT_EQ(sidecarText(once->sidecar), sidecarText(again->sidecar));
    EXPECT_EQ(once->solution, again->solution);
  }
}

/// Four equal layers are one and what differs at the ends.
TEST_F(LayoutChoiceTest, SolvesEqualBlocksOnce) {
  for (const char *loss : {"", "causal-lm"}) {
    ModelCase model = tiny;
    model.loss = loss;
    Expected<LayoutChoice> choice = choose(model, slow());
    ASSERT_TRUE(choice.ok());
    EXPECT_LT(2 * choice->problem.condensed().problem.size(), choice->problem.size()) << loss;
  }
}

TEST_F(LayoutChoiceTest, RefusesOneRank) {
  ModelCase model = tiny;
  model.tp = 1;
  Expected<LayoutChoice> choice = choose(model, slow());
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.status().kind(), ErrorKind::Usage);
}
