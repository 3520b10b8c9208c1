// Faults of a plan for generation, planted in a step after its derivation or in the plan: --verify names the step, or the state.
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Masks.h"
#include "passes/Driver/Generation.h"
#include "passes/Driver/VerifyGeneration.h"
#include "passes/Phases.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpc::generation_faults {

using ::testing::HasSubstr;

using Configure = std::function<void(PassManager &)>;
using Degrees = std::map<std::string, int64_t>;

/// Two rows for each micro-batch.
struct Compiled {
  MLIRContext context;
  DiagnosticPrinter diagnostics;
  std::unique_ptr<Compilation> decode;
  std::optional<Generation> generation;
  OwningOpRef<ModuleOp> serial[2], propagated[2]; ///< prefill, decode

  static DialectRegistry dialects() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }
  Compiled(const std::string &model, const Degrees &degrees, int64_t length, int64_t chunk, const Configure &configure = [](PassManager &) {}) : context(dialects()), diagnostics(&context, false, [](mlir::DiagnosticSeverity, ErrorKind, const std::string &text) { std::fprintf(stderr, "%s\n", text.c_str()); }) {
    context.loadAllAvailableDialects();
    context.disableMultithreading();
    CompileRequest request;
    request.input = model;
    request.batch = 2;
    for (const auto &[axis, size] : degrees) {
      request.degrees[axis] = size;
      request.batch *= axis == "mb" ? size : 1;
    }
    request.options.maxLength = length;
    request.prefillChunk = chunk;
    request.verify = true;
    decode = std::make_unique<Compilation>(decodeRequest(request), context, diagnostics);
    decode->configure = configure;
    for (auto step : {&Compilation::load, &Compilation::runPhases, &Compilation::makePlan})
      if (Status status = ((*decode).*step)(); !status.ok())
        ADD_FAILURE() << status.text();
    Expected<Generation> made = makeGeneration(*decode, context, diagnostics);
    EXPECT_TRUE(made.ok()) << made.status().text();
    generation = std::move(*made);
    // The references of --verify are derived without `configure`: here they have its fault too.
    auto nothing = [](StringRef) { return success(); };
    const Options *options[] = {&generation->prefill->request.options, &decode->request.options};
    for (int entry : {0, 1}) {
      serial[entry] = decode->wholeSequences().clone();
      EXPECT_TRUE(succeeded(runPhases(*serial[entry], *options[entry], "generate", nothing, configure)));
      propagated[entry] = serial[entry]->clone();
      EXPECT_TRUE(succeeded(runPhases(*propagated[entry], *options[entry], "propagate", nothing, [](PassManager &) {})));
    }
  }
  static Compiled &get(const Degrees &degrees = {{"tp", 2}}) {
    static std::map<Degrees, std::unique_ptr<Compiled>> compiled;
    std::unique_ptr<Compiled> &found = compiled[degrees];
    if (!found)
      found = std::make_unique<Compiled>(std::string(HPC_SOURCE_DIR) + "/models/gpt2-tiny/dynamo-eager-op18.onnx", degrees, 12, 4);
    return *found;
  }
};

using BreakStep = std::function<void(func::FuncOp)>;
using BreakPlan = std::function<void(plan::Plan &)>;

/// What --verify says: "" where nothing.
static std::string verifyBroken(const BreakStep &prefill, const BreakStep &decode, const BreakPlan &plan, Compiled &made = Compiled::get()) {
  MergedPlan merged = made.generation->merged;
  if (plan)
    plan(merged.plan);
  Verification steps[] = {made.generation->prefill->verification(), made.decode->verification()};
  OwningOpRef<ModuleOp> broken[2];
  const BreakStep *breaks[] = {&prefill, &decode};
  for (int entry : {0, 1}) {
    steps[entry].serial = *made.serial[entry];
    steps[entry].propagated = *made.propagated[entry];
    if (*breaks[entry]) {
      broken[entry] = steps[entry].serial.clone();
      (*breaks[entry])(broken[entry]->lookupSymbol<func::FuncOp>("main"));
      steps[entry].serial = *broken[entry];
    }
  }
  Expected<std::string> report = verifyGeneration({made.decode->wholeSequences(), steps[0], steps[1], merged, made.generation->prefill->request.options.stepRows, made.decode->request.options.maxLength});
  return report.ok() ? "" : report.status().message();
}

static BlockArgument scalarOf(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : function.getArguments())
    if (nn::argumentPort(function, argument.getArgNumber()).stepScalar == name)
      return argument;
  ADD_FAILURE() << "no step scalar " << name.str();
  std::exit(1);
}

static Value constant(func::FuncOp function, int64_t value) {
  OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
  auto type = RankedTensorType::get({}, builder.getI64Type());
  return nn::ConstantOp::create(builder, function.getLoc(), DenseElementsAttr::get(type, builder.getI64IntegerAttr(value)));
}

/// If it fails, a plan that is right is refused.
TEST(GenerationFaults, NoneIsVerified) {
  EXPECT_EQ(verifyBroken({}, {}, {}), "");
  EXPECT_EQ(verifyBroken({}, {}, {}, Compiled::get({{"pp", 2}, {"mb", 2}})), "");
}

/// A key or value one row before its place.
TEST(GenerationFaults, RowWrittenOneOff) {
  const std::string said = verifyBroken({}, [](func::FuncOp step) {
    auto write = *step.getOps<nn::UpdateSliceOp>().begin();
    OpBuilder builder(write);
    write.getPositionMutable().assign(nn::AddOp::create(builder, step.getLoc(), write.getPosition(), constant(step, -1)));
  }, {});
  EXPECT_THAT(said, HasSubstr("decode at position 6: the derived step differs from the forward pass of whole sequences at [0, 6, "));
}

/// Tables and masks of the first position, in every step. Rows are written where they belong.
TEST(GenerationFaults, PositionNotAdded) {
  const std::string said = verifyBroken({}, [](func::FuncOp step) {
    Value first = constant(step, 0);
    scalarOf(step, "position").replaceUsesWithIf(first, [](OpOperand &use) { return !isa<nn::UpdateSliceOp>(use.getOwner()); });
  }, {});
  EXPECT_THAT(said, HasSubstr("decode at position 6: the derived step differs from the forward pass of whole sequences"));
}

/// The logits of a chunk's first row.
TEST(GenerationFaults, OtherRow) {
  const std::string said = verifyBroken([](func::FuncOp step) { scalarOf(step, "row").replaceAllUsesWith(constant(step, 0)); }, {}, {});
  EXPECT_THAT(said, HasSubstr("prefill at position 0: the derived step differs from the forward pass of whole sequences at [0, 3, "));
}

/// Two rows in each other's place after reordering.
TEST(GenerationFaults, RowsInOtherOrder) {
  const std::string said = verifyBroken({}, {}, [](plan::Plan &plan) {
    std::vector<plan::Copy *> copies;
    for (plan::Instruction &instruction : plan.stages[0].programs[size_t(plan.entries[2].schedules[0][0].program)].instructions)
      if (auto *copy = std::get_if<plan::Copy>(&instruction.action); copy && copy->srcOffset.varies())
        copies.push_back(copy);
    std::swap(copies[0]->srcOffset, copies[1]->srcOffset);
  });
  EXPECT_THAT(said, HasSubstr("reorder: state '"));
}

/// A kernel of decoding that writes the row to the other cache of the layer.
TEST(GenerationFaults, RowOfOtherCache) {
  const std::string said = verifyBroken({}, {}, [](plan::Plan &plan) {
    std::vector<plan::Kernel *> writers;
    auto cacheOf = [&](const plan::Kernel &kernel) {
      for (const plan::KernelArg &argument : kernel.args)
        if (argument.writes && plan.stages[0].buffers[size_t(argument.place.buffer)].lifetime == plan::Lifetime::Session)
          return argument.place.buffer;
      return -1;
    };
    for (plan::Instruction &instruction : plan.stages[0].programs[size_t(plan.entries[1].schedules[0][0].program)].instructions)
      if (auto *kernel = std::get_if<plan::Kernel>(&instruction.action); kernel && cacheOf(*kernel) >= 0)
        writers.push_back(kernel);
    ASSERT_GE(writers.size(), 2u);
    const int32_t first = cacheOf(*writers[0]), second = cacheOf(*writers[1]);
    for (int kernel : {0, 1})
      for (plan::KernelArg &argument : writers[kernel]->args) // it is read and written in place
        if (argument.place.buffer == (kernel ? second : first))
          argument.place.buffer = kernel ? first : second;
  });
  EXPECT_THAT(said, HasSubstr("decode at position 6: rank 0 (stage 0), 'forward' of micro-batch 0"));
}

/// Mistral with made-up weights and a window of 10 positions: 30 in chunks of 2, so caches are rings of 11 rows.
static std::unique_ptr<Compiled> windowed(int64_t moreWindow = 0) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "hpc-windowed";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(std::string(HPC_SOURCE_DIR) + "/models/decoders/mistral.onnx", folder / "mistral.onnx", std::filesystem::copy_options::overwrite_existing);
  std::vector<float> weights(1 << 15);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = float(int64_t(i * 7919 % 1009) - 504) / 1009;
  std::ofstream(folder / "mistral.weights", std::ios::binary).write(reinterpret_cast<const char *>(weights.data()), std::streamsize(weights.size() * sizeof(float)));
  struct OtherWindow : PassInstrumentation {
    explicit OtherWindow(int64_t more) : more(more) {}
    const int64_t more;
    void runBeforePass(Pass *pass, Operation *op) override {
      if (pass->getArgument() == "hpc-keep-windows")
        op->walk([&](nn::AttentionOp attention) {
          auto window = attention->getAttrOfType<IntegerAttr>(windowAttrName);
          attention->setAttr(windowAttrName, IntegerAttr::get(window.getType(), window.getInt() + more));
        });
    }
  };
  return std::make_unique<Compiled>((folder / "mistral.onnx").string(), Degrees{{"tp", 2}}, 30, 2, [=](PassManager &passes) { passes.addInstrumentation(std::make_unique<OtherWindow>(moreWindow)); });
}

/// If it fails, rings that are right are refused, or states have all positions and the faults below plant nothing.
TEST(GenerationFaults, NoneOfRings) {
  const std::unique_ptr<Compiled> made = windowed();
  EXPECT_EQ(verifyBroken({}, {}, {}, *made), "");
  EXPECT_THAT(cachesText(made->generation->merged.plan), HasSubstr("caches: 4 of f32[2, 2, 11, 8]"));
}

/// A ring of one row too few: a chunk overwrites a key that its first row sees.
TEST(GenerationFaults, RingTooShort) {
  const std::string said = verifyBroken({}, {}, {}, *windowed(-1));
  EXPECT_THAT(said, HasSubstr("prefill at position 10: the derived step differs from the forward pass of whole sequences at [0, 11, "));
}

/// Masks of a ring of another length than the state has: keys count as those of other positions.
TEST(GenerationFaults, OtherModulo) {
  const std::string said = verifyBroken({}, [](func::FuncOp step) {
    for (auto rest : step.getOps<nn::ModOp>())
      rest->setOperand(1, constant(step, 12));
  }, {}, *windowed());
  EXPECT_THAT(said, HasSubstr("decode at position 2"));
  EXPECT_THAT(said, HasSubstr("the derived step differs from the forward pass of whole sequences"));
}

/// A kernel of decoding that writes to the rows of the first micro-batch in all of them.
TEST(GenerationFaults, RowsOfOtherMicroBatch) {
  const std::string said = verifyBroken({}, {}, [](plan::Plan &plan) {
    for (plan::Instruction &instruction : plan.stages[0].programs[size_t(plan.entries[1].schedules[0][0].program)].instructions)
      if (auto *kernel = std::get_if<plan::Kernel>(&instruction.action))
        for (plan::KernelArg &argument : kernel->args)
          argument.place.microBatchStride = 0;
  }, Compiled::get({{"pp", 2}, {"mb", 2}}));
  EXPECT_THAT(said, HasSubstr("decode at position 6: rank 0 (stage 0), 'forward' of micro-batch 1"));
}

} // namespace hpc::generation_faults
