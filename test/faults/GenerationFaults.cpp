// Faults of a plan for generation, planted in a step after its derivation or in the plan: --verify names the step, or the state.
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "passes/Driver/Generation.h"
#include "passes/Driver/VerifyGeneration.h"
#include "passes/Phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpc::generation_faults {

using ::testing::HasSubstr;

/// Batch 2, 12 positions, chunks of 4, heads over two ranks.
struct Compiled {
  MLIRContext context;
  DiagnosticPrinter diagnostics;
  std::unique_ptr<Compilation> decode;
  std::optional<Generation> generation;

  static DialectRegistry dialects() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }
  Compiled() : context(dialects()), diagnostics(&context, false, [](mlir::DiagnosticSeverity, ErrorKind, const std::string &text) { std::fprintf(stderr, "%s\n", text.c_str()); }) {
    context.loadAllAvailableDialects();
    context.disableMultithreading();
    CompileRequest request;
    request.input = std::string(HPC_SOURCE_DIR) + "/models/gpt2-tiny/dynamo-eager-op18.onnx";
    request.degrees["tp"] = 2;
    request.options.maxLength = 12;
    request.batch = 2;
    request.prefillChunk = 4;
    request.verify = true;
    decode = std::make_unique<Compilation>(decodeRequest(request), context, diagnostics);
    for (auto step : {&Compilation::load, &Compilation::runPhases, &Compilation::makePlan})
      if (Status status = ((*decode).*step)(); !status.ok())
        ADD_FAILURE() << status.text();
    Expected<Generation> made = makeGeneration(*decode, context, diagnostics);
    EXPECT_TRUE(made.ok()) << made.status().text();
    generation = std::move(*made);
  }
  static Compiled &get() {
    static Compiled *compiled = new Compiled;
    return *compiled;
  }
};

using BreakStep = std::function<void(func::FuncOp)>;
using BreakPlan = std::function<void(plan::Plan &)>;

/// What --verify says: "" where nothing.
static std::string verifyBroken(const BreakStep &prefill, const BreakStep &decode, const BreakPlan &plan) {
  Compiled &made = Compiled::get();
  MergedPlan merged = made.generation->merged;
  if (plan)
    plan(merged.plan);
  Verification steps[] = {made.generation->prefill->verification(), made.decode->verification()};
  OwningOpRef<ModuleOp> broken[2];
  const BreakStep *breaks[] = {&prefill, &decode};
  for (int entry : {0, 1})
    if (*breaks[entry]) {
      broken[entry] = steps[entry].serial.clone();
      (*breaks[entry])(broken[entry]->lookupSymbol<func::FuncOp>("main"));
      steps[entry].serial = *broken[entry];
    }
  Expected<std::string> report = verifyGeneration({made.decode->wholeSequences(), steps[0], steps[1], merged, 4, 12});
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
TEST(GenerationFaults, NoneIsVerified) { EXPECT_EQ(verifyBroken({}, {}, {}), ""); }

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

} // namespace hpc::generation_faults
