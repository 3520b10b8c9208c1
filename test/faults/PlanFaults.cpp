// Ways of breaking a finished plan of gpt2-odd. What can make a plan hang, read or write a wrong place or lose an
// output is found by the plan's check, which runs nothing; what only computes something else, by running it (--verify).
#include "test/faults/PlanFault.h"

#include "runtime/plan/PlanCheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::test;
using testing::HasSubstr;

namespace {

int32_t weightOf(const Binding &binding) {
  const auto *stored = std::get_if<StoredWeight>(&binding.start);
  return stored ? stored->weight : -1;
}
Binding &weight(Plan &plan, int stage, const std::string &name) {
  for (Binding &binding : plan.stages[stage].bindings)
    if (int32_t stored = weightOf(binding); stored >= 0 && plan.weights[stored].name == name)
      return binding;
  ADD_FAILURE() << "no weight " << name;
  std::exit(1);
}
/// All values of a table over coordinates and micro-batches.
void spread(ByCoord &table, const Plan &plan, bool byMicroBatch = false) {
  std::vector<int64_t> values;
  for (int64_t batch = 0; batch < (byMicroBatch ? plan.microBatches : 1); ++batch)
    for (int64_t rank = 0; rank < plan.ranksPerStage(); ++rank)
      values.push_back(table.at(rank, batch, plan.ranksPerStage()));
  table.values = std::move(values);
}

constexpr const char *attentionOut = "node_addmm_5";
constexpr const char *lastWeight = "transformer.h.2.attn.c_proj.weight"; // in stage 1: [40, 40], rows cut (5@tp, 8)

// ---- faults -----------------------------------------------------------------------------------------

/// The product of c_proj lands on what it reads.
void overlapBuffers(Plan &plan) {
  const Gemm &gemm = the<Gemm>(plan, 0, "forward", attentionOut);
  std::vector<Buffer> &buffers = plan.stages[0].buffers;
  buffers[gemm.c.place.buffer].offset = buffers[gemm.a.place.buffer].offset;
}
/// Stage 1 has one slot for what it receives of two micro-batches.
void dropSlot(Plan &plan) { plan.stages[1].buffers[the<Recv>(plan, 1, "receive").dst.buffer].slots = 1; }
/// Rank 1 binds rows from the middle of rank 0's.
void shiftWeight(Plan &plan) {
  Slice &slice = weight(plan, 1, lastWeight).slice;
  spread(slice.start[0], plan);
  slice.start[0].values[1] -= 1;
}
/// Rank 0 binds rank 1's columns and the other way round: all are held, by the wrong ranks.
void swapWeightSlices(Plan &plan) {
  Slice &slice = weight(plan, 1, "transformer.h.2.mlp.c_fc.weight").slice;
  for (size_t dim = 0; dim < slice.view.size(); ++dim) {
    spread(slice.start[dim], plan);
    std::swap(slice.start[dim].values[0], slice.start[dim].values[1]);
  }
}
/// The bytes of another tensor: same shape, another place in the file.
void otherBytes(Plan &plan) { plan.weights[weightOf(weight(plan, 1, lastWeight))].offset -= 64; }
void crossPeers(Plan &plan) {
  ByCoord &peer = the<Recv>(plan, 1, "receive").peer;
  std::swap(peer.values[0], peer.values[1]);
}
void dropWait(Plan &plan) {
  Program &forward = program(plan, 1, "forward");
  forward.instructions.erase(forward.instructions.begin() + find<Wait>(forward));
}
void dropLastWaits(Plan &plan) { program(plan, 0, "drain").instructions.clear(); }
/// One column more than the buffer of a row holds.
void contractBeyond(Plan &plan) {
  Gemm &gemm = the<Gemm>(plan, 0, "forward", attentionOut);
  gemm.k = gemm.a.ld + 1;
}
/// Two heads on each rank: rank 0 has three.
void contractLess(Plan &plan) { the<Gemm>(plan, 0, "forward", attentionOut).k = 16; }
void reduceLess(Plan &plan) { the<Collective>(plan, 0, "forward", attentionOut).count /= 2; }
void receiveLess(Plan &plan) { the<Recv>(plan, 1, "receive").bytes /= 2; }
void disown(Plan &plan) {
  ByCoord &owner = the<StoreOutput>(plan, 1, "forward").owner;
  spread(owner, plan);
  owner.values[1] = 0;
}
/// Micro-batch 1 reads the rows of micro-batch 0.
void sameRows(Plan &plan) {
  Slice &slice = the<LoadInput>(plan, 0, "forward").slice;
  for (ByCoord &start : slice.start)
    start = 0;
}
/// Whatever adds the bias of h.1 adds that of h.0.
void otherBias(Plan &plan) {
  int32_t other = weight(plan, 0, "transformer.h.0.mlp.c_fc.bias").buffer,
          own = weight(plan, 0, "transformer.h.1.mlp.c_fc.bias").buffer;
  for (Instruction &instruction : program(plan, 0, "forward").instructions)
    if (auto *kernel = std::get_if<Kernel>(&instruction.action))
      for (KernelArg &arg : kernel->args)
        if (arg.place.buffer == own)
          arg.place.buffer = other;
}
/// The all-reduce of c_proj comes before the product that it sums.
void swapInstructions(Plan &plan) {
  Program &forward = program(plan, 0, "forward");
  size_t reduce = find<Collective>(forward, attentionOut), gemm = find<Gemm>(forward, attentionOut);
  std::swap(forward.instructions[reduce], forward.instructions[gemm]);
}

// ---- fields that say how, not what --------------------------------------------------------------

Gemm &attentionGemm(Plan &plan) { return the<Gemm>(plan, 0, "forward", attentionOut); }
/// The first kernel of stage 0 and its last argument, a result.
Kernel &firstKernel(Plan &plan) { return the<Kernel>(plan, 0, "forward"); }
/// The head's: its weight is that of the embedding, stored the other way.
Gemm &transposedGemm(Plan &plan) {
  for (Instruction &instruction : program(plan, 1, "forward").instructions)
    if (auto *gemm = std::get_if<Gemm>(&instruction.action); gemm && gemm->b.transpose)
      return *gemm;
  ADD_FAILURE() << "no product with a transposed operand";
  std::exit(1);
}
Buffer &receivedBuffer(Plan &plan) { return plan.stages[1].buffers[the<Recv>(plan, 1, "receive").dst.buffer]; }

void requestTooFew(Plan &plan) { plan.stages[1].requests[the<Recv>(plan, 1, "receive").request] = 1; }
void otherKind(Plan &plan) { program(plan, 0, "drain").kind = ProgramKind::Update; }
/// The product runs in micro-batch 0 only.
void skipOnce(Plan &plan) {
  Program &forward = program(plan, 0, "forward");
  forward.instructions[find<Gemm>(forward, attentionOut)].when.values = {1, 1, 0, 0};
}
void addToNothing(Plan &plan) { attentionGemm(plan).addToC = 1; }
void otherOperandType(Plan &plan) { attentionGemm(plan).b.dtype = DType::F16; }
void otherLeadingDim(Plan &plan) { attentionGemm(plan).a.ld += 8; }
void untransposed(Plan &plan) { transposedGemm(plan).b.transpose = false; }
/// The same product twice, the second time one element further in its weight.
void otherStride(Plan &plan) {
  Gemm &gemm = attentionGemm(plan);
  gemm.batch = {2};
  gemm.a.stride = gemm.c.stride = {0};
  gemm.b.stride = {1};
}
void sumInHalf(Plan &plan) { attentionGemm(plan).accumulate = DType::F16; }
void postAndForget(Plan &plan) { the<Collective>(plan, 0, "forward", attentionOut).request = 0; }
void unsaidResult(Plan &plan) { firstKernel(plan).args.back() = {firstKernel(plan).args.back().place, 4, true, false}; }
/// The second operand of a kernel lies where its result is written, half a vector further.
void aliasedResult(Plan &plan) {
  Kernel &kernel = firstKernel(plan);
  kernel.args.front().place = kernel.args.back().place;
  kernel.args.front().bytes = kernel.args.back().bytes / 2;
}
void launchTooWide(Plan &plan) { firstKernel(plan).launch.threads = 4096; }
/// A layer norm is no bias.
void otherEpilogue(Plan &plan) { firstKernel(plan).epilogue = Epilogue{EpilogueKind::Bias, 0, 1}; }
void dropBinding(Plan &plan) { plan.stages[1].bindings.pop_back(); }
void startWithNothing(Plan &plan) { weight(plan, 1, lastWeight).start = Nothing{}; }
void startWithNumber(Plan &plan) { weight(plan, 1, lastWeight).start = Number{0.125}; }
void liveTooShort(Plan &plan) {
  receivedBuffer(plan).lifetime = Lifetime::Program;
  receivedBuffer(plan).slots = 1;
}
/// A temporary that must now outlive its program lies where others are.
void liveTooLong(Plan &plan) { plan.stages[0].buffers[attentionGemm(plan).c.place.buffer].lifetime = Lifetime::Step; }
void moveToHost(Plan &plan) {
  plan.stages[0].buffers[attentionGemm(plan).b.place.buffer].space = Space::Host;
  plan.stages[0].hostBytes = plan.stages[0].sessionBytes;
}
void dropSymbol(Plan &plan) { plan.modules[0].symbols.pop_back(); }
void otherTarget(Plan &plan) { plan.modules[0].target = "ptx"; }
void unknownFeature(Plan &plan) { plan.modules[0].features.push_back("quantum"); }
void scalarOfDims(Plan &plan) { plan.inputs[0].isStepScalar = true; }

const FaultOfPlan planFaults[] = {
    {"RequestTooFew", requestTooFew, {"posts request", "again before a wait"}, {}},
    {"ProgramOfOtherKind", otherKind, {"micro-batch of an update is 1"}, {}},
    {"ProductSkippedOnce", skipOnce, {"node_addmm_5", "before any instruction of the program wrote to it"}, {}},
    {"AddsToNothing", addToNothing, {"gemm, node node_addmm_5", "(c) before any instruction"}, {}},
    {"OperandOfOtherType", otherOperandType, {"gemm, node node_addmm_5", "it must be f16"}, {}},
    {"OperandOfOtherLeadingDim", otherLeadingDim, {"gemm, node node_addmm_5", "reads"}, {}},
    {"OperandUntransposed", untransposed, {"leading dim of b"}, {}},
    {"OperandOfOtherStride", otherStride, {"gemm", "(b), which has"}, {}},
    {"SumInHalf", sumInHalf, {"node_addmm_5", "sums in f16 what is stored as f32"}, {}},
    {"PostedAndForgotten", postAndForget, {"all_reduce, node node_addmm_5", "ends before a wait on request 0"}, {}},
    {"ResultUnsaid", unsaidResult, {"kernel", "before any instruction of the program wrote to it"}, {}},
    {"ResultAliased", aliasedResult, {"kernel", "overlap in buffer"}, {}},
    {"LaunchTooWide", launchTooWide, {"table 'threads' has 4096"}, {}},
    {"EpilogueOfOtherArguments",
     otherEpilogue,
     {"kernel", "epilogue bias: the kernel has", "it must have product, bias and result alone"},
     {}},
    {"BindingDropped", dropBinding, {"stage 1", "no binding says what it starts with"}, {}},
    {"WeightOfNothing", startWithNothing, {"transformer.h.2.attn.c_proj.weight", "holds nothing yet"}, {}},
    {"WeightOfANumber", startWithNumber, {}, {"plan differs at ONNX node 'node_addmm_9'"}},
    {"LifetimeTooShort", liveTooShort, {"lives for the program, which ends before a wait"}, {}},
    {"LifetimeTooLong", liveTooLong, {"stage 0", "in use all the time"}, {}},
    {"OperandOnHost", moveToHost, {"which lies in host memory; only a copy reaches it"}, {}},
    {"SymbolDropped", dropSymbol, {"kernel", "which none of the plan's code for 'x86-64' defines"}, {}},
    {"CodeForOthers", otherTarget, {}, {"code for 'ptx' only"}},
    {"FeatureOfOthers", unknownFeature, {}, {"CPU features that this machine lacks: quantum"}},
    {"StepScalarOfDims", scalarOfDims, {"a step scalar of shape"}, {}},
    {"BuffersOverlap", overlapBuffers, {"stage 0, program forward", "gemm, node node_addmm_5", "bytes"}, {}},
    {"SlotTooFew", dropSlot, {"receive, micro-batch 1", "while it is in flight"}, {}},
    {"WeightSliceShifted",
     shiftWeight,
     {"stage 1: weight 'transformer.h.2.attn.c_proj.weight'", "ranges must be equal or apart"},
     {}},
    {"WeightSlicesSwapped", swapWeightSlices, {}, {"node_addmm_10"}},
    {"WeightOfOtherBytes",
     otherBytes,
     {},
     {"transformer.h.2.attn.c_proj.weight", "are not those that the plan was compiled from"}},
    {"PeersCrossed", crossPeers, {"deadlock", "stage 1", "node_add_15"}, {}},
    {"WaitDropped", dropWait, {"stage 1, program forward", "buffer"}, {}},
    {"LastWaitsDropped", dropLastWaits, {"wait"}, {}},
    {"GemmBeyondItsRows", contractBeyond, {"stage 0, program forward", "gemm, node node_addmm_5"}, {}},
    {"GemmOverTooLittle", contractLess, {}, {"plan differs at ONNX node 'node_addmm_5'", "rank"}},
    {"AllReduceOfHalf", reduceLess, {}, {"plan differs at ONNX node 'node_addmm_5'"}},
    {"ReceiveOfHalf", receiveLess, {"expects", "node_add_15"}, {}},
    {"OutputUnowned", disown, {"output 'logits'", "stored by no rank"}, {}},
    {"RowsOfOtherMicroBatch", sameRows, {}, {"node_embedding", "micro-batch 1"}},
    // Bias and GELU are one region, which ends in node_mul_55.
    {"BiasOfOtherBlock", otherBias, {}, {"plan differs at ONNX node 'node_mul_55'"}},
    {"ReducedBeforeComputed", swapInstructions, {"node_addmm_5"}, {}},
};

} // namespace

namespace hpc::test {

TEST_P(PlanFault, IsNamed) {
  const FaultOfPlan &fault = GetParam();
  Compilation &compilation = Compilation::of(fault.layout(), "partition");
  std::string checked = compilation.checkPlan(fault.breakIt), verified;
  if (fault.check.empty()) {
    EXPECT_EQ(checked, "") << "the plan's check sees more than this table says";
    verified = compilation.verifyPlan(fault.breakIt);
  }
  for (const char *text : fault.check)
    EXPECT_THAT(checked, HasSubstr(text));
  for (const char *text : fault.verify)
    EXPECT_THAT(verified, HasSubstr(text));
  if (std::getenv("HPC_SHOW"))
    std::fprintf(stderr, "%s: %s%s\n", fault.name, checked.c_str(), verified.c_str());
}

} // namespace hpc::test

namespace {

INSTANTIATE_TEST_SUITE_P(All, PlanFault, testing::ValuesIn(planFaults),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
