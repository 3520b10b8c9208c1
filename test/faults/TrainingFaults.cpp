// Ways of breaking a training step: gradients, their sum over ranks and micro-batches, clipping, the update; and of its
// plan, what the order of F, B, W and U and the slots between them make possible.
#include "test/faults/PlanFault.h"
#include "test/faults/ProgramFault.h"

#include "compiler/Dialect/NN/Ports.h"
#include "passes/Schedule/EvaluationEntry.h"

using namespace hpc;
using namespace hpc::test;

namespace {

// Of stage 0: [40, 72], columns cut over tp. Its gradient is the second product of node_addmm_6's backward.
constexpr const char *weightName = "transformer.h.1.mlp.c_fc.weight", *product = "node_addmm_6";
constexpr const char *tiedName = "lm_head.weight", *tiedTerm = "node_embedding"; ///< where the two terms meet
constexpr const char *wholeName = "transformer.wpe.weight";                       ///< whole on each rank of tp

template <typename OpT> void drop(OpT op) {
  op.getResult().replaceAllUsesWith(op->getOperand(0));
  op.erase();
}

// ---- sums of gradients --------------------------------------------------------------------------

/// The sum of the weight's gradient over dp: of the all-reduces of the product's backward the one of its shape.
dist::AllReduceOp gradientReduce(ModuleOp module) {
  for (auto reduce : all<dist::AllReduceOp>(module, product))
    if (nn::shapeOf(reduce.getResult()) == ArrayRef<int64_t>({40, 36}))
      return reduce;
  ADD_FAILURE() << "no sum of the gradient over ranks";
  std::exit(1);
}
void dropGradientReduce(ModuleOp module) {
  dist::AllReduceOp reduce = gradientReduce(module);
  claim(reduce.getOperand(), dist::shardingOf(reduce.getResult()));
  drop(reduce);
}
void doubleGradientReduce(ModuleOp module) {
  dist::AllReduceOp first = gradientReduce(module);
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfter(first);
  auto second = cast<dist::AllReduceOp>(builder.clone(*first));
  first.getResult().replaceAllUsesExcept(second.getResult(), second);
  second->setOperand(0, first.getResult());
  first.setAfterAttr(first.getBeforeAttr());
  claim(first.getResult(), first.getBefore().getValue());
}
void reduceGradientOverTensorParallel(ModuleOp module) {
  gradientReduce(module).setAxesAttr(Builder(module.getContext()).getStrArrayAttr({"tp"}));
}
void reduceGradientByMaximum(ModuleOp module) { gradientReduce(module).setKind(ReduceKind::Max); }
/// Each step updates with the gradient of its last micro-batch.
void dropAccumulate(ModuleOp module) {
  auto accumulate = the<dist::AccumulateOp>(module, product);
  claim(accumulate.getOperand(), dist::shardingOf(accumulate.getResult()));
  drop(accumulate);
}
/// The sum over dp of valid tokens, of which 1/count is made.
void dropReduceOfCount(ModuleOp module) {
  dist::AllReduceOp count;
  module.walk([&](nn::DivOp op) { // 1 / count
    auto reduce = op.getRhs().getDefiningOp<dist::AllReduceOp>();
    if (!count && reduce && nn::shapeOf(op.getResult()).empty() && op.getLhs().getDefiningOp<nn::ConstantOp>())
      count = reduce;
  });
  ASSERT_TRUE(count) << "no 1 / count";
  claim(count.getOperand(), dist::shardingOf(count.getResult()));
  drop(count);
}

// ---- what a gradient is -------------------------------------------------------------------------

/// The sum in which head and embedding meet.
nn::AddOp tiedSum(ModuleOp module) {
  SmallVector<nn::AddOp> found = all<nn::AddOp>(module, tiedTerm);
  return found.back();
}
void addTiedOnce(ModuleOp module) {
  nn::AddOp sum = tiedSum(module);
  sum.getResult().replaceAllUsesWith(sum.getRhs());
  sum.erase();
}
void addTiedTwice(ModuleOp module) {
  nn::AddOp sum = tiedSum(module);
  sum->setOperand(0, sum.getRhs());
}
/// The products of an update, in the order in which they stand.
enum UpdateProduct { byCount, squareOfGradient, byClip, firstDecayed, firstAdded, secondDecayed, squareOfClipped };
nn::MulOp updateProduct(ModuleOp module, UpdateProduct which) { return the<nn::MulOp>(module, weightName, which); }
void forgetCount(ModuleOp module) { drop(updateProduct(module, byCount)); }
void forgetClip(ModuleOp module) { drop(updateProduct(module, byClip)); }
/// W of block 1 multiplies what its norm gave block 0.
void readOtherActivation(ModuleOp module) {
  auto own = the<nn::LayerNormOp>(module, "node_layer_norm_3");
  auto other = the<nn::LayerNormOp>(module, "node_layer_norm_1");
  for (OpOperand &use : llvm::make_early_inc_range(own.getResult().getUses()))
    if (isa<nn::ReshapeOp>(use.getOwner()))
      use.set(other.getResult());
}

// ---- the norm -----------------------------------------------------------------------------------

/// The square sum of a parameter that every rank of tp holds is added before the sum over tp.
void countWholePerRank(ModuleOp module) {
  SmallVector<nn::ReshapeOp> squares = all<nn::ReshapeOp>(module, wholeName);
  Value term = squares.front().getResult();
  dist::AllReduceOp reduce;
  module.walk([&](dist::AllReduceOp op) {
    if (!reduce && op->isBeforeInBlock(*term.user_begin()) && nn::shapeOf(op.getResult()).empty() &&
        !dist::shardingOf(op.getOperand()).partial.empty())
      for (Operation *user : op->getUsers())
        if (isa<nn::AddOp>(user) && llvm::is_contained(user->getOperands(), term))
          reduce = op;
  });
  ASSERT_TRUE(reduce) << "the first whole parameter is added elsewhere";
  auto sum = cast<nn::AddOp>(*reduce->user_begin());
  claim(term, reduce.getBefore().getValue());
  claim(sum.getResult(), reduce.getBefore().getValue());
  sum->setOperand(0, reduce.getOperand());
  sum->moveBefore(reduce);
  sum.getResult().replaceAllUsesWith(reduce.getResult());
  reduce->setOperand(0, sum.getResult());
}
/// The rows of the vocabulary that only fill the last rank's box count too.
void countPadding(ModuleOp module) { drop(the<dist::FillTailOp>(module, tiedName)); }

// ---- states -------------------------------------------------------------------------------------

unsigned writing(func::FuncOp main, const std::string &name) { return nn::writtenBy(main).at(name); }
void swapWritten(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  unsigned m = writing(main, std::string("adam.m/") + weightName);
  unsigned v = writing(main, std::string("adam.v/") + weightName);
  Operation *end = main.getBody().front().getTerminator();
  Value kept = end->getOperand(m);
  end->setOperand(m, end->getOperand(v));
  end->setOperand(v, kept);
}
/// The state is as it was before the step.
void writeBack(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  unsigned m = writing(main, std::string("adam.m/") + weightName);
  main.getBody().front().getTerminator()->setOperand(m, updateProduct(module, firstDecayed)->getOperand(0));
}
/// v' = beta2 m' + ...: the new first moment where the old second one is meant.
void decayNewMoment(ModuleOp module) {
  nn::AddOp first = cast<nn::AddOp>(*updateProduct(module, firstAdded)->user_begin());
  updateProduct(module, secondDecayed)->setOperand(0, first.getResult());
}
/// The step goes along the moment before this gradient.
void stepByOldMoment(ModuleOp module) {
  nn::AddOp first = cast<nn::AddOp>(*updateProduct(module, firstAdded)->user_begin());
  Value old = updateProduct(module, firstDecayed)->getOperand(0);
  first.getResult().replaceUsesWithIf(old, [](OpOperand &use) { return isa<nn::DivOp>(use.getOwner()); });
}
/// The new weight is the old one and the step, not without it. A third of this gradient, that of keys' biases, is nothing but rounding errors, whose
/// sign is anybody's: what the whole step makes of them says nothing.
constexpr const char *keysName = "transformer.h.1.attn.c_attn.bias";
void stepUphill(ModuleOp module) {
  for (nn::SubOp step : all<nn::SubOp>(module, keysName))
    if (step.getLhs().getDefiningOp<nn::ParameterOp>()) {
      OpBuilder builder(step);
      auto sum = nn::AddOp::create(builder, step.getLoc(), step.getType(), step.getLhs(), step.getRhs());
      sum->setAttrs(step->getAttrs());
      step.getResult().replaceAllUsesWith(sum.getResult());
      step.erase();
      return;
    }
  ADD_FAILURE() << "no step of the parameter";
}
/// Columns 0..47 of [q|k|v] on one rank, where the parameter's are two heads of each.
void cutStatePlainly(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (BlockArgument argument : main.getArguments())
    if (nn::argumentPort(main, argument.getArgNumber()).state == "adam.m/transformer.h.1.attn.c_attn.weight")
      claim(argument, sharding("[32, 96@tp]"));
  main.setFunctionType(
      FunctionType::get(module.getContext(), main.getBody().front().getArgumentTypes(), main.getResultTypes()));
}

const FaultOfProgram programs[] = {
    {"GradientReduceDropped",
     oddTraining,
     "partition",
     dropGradientReduce,
     {product, "must carry the sharding [40, 72@tp] partial{dp}"},
     {product, "must carry the sharding [40, 72@tp] partial{dp}"}},
    {"GradientReduceDoubled",
     oddTraining,
     "partition",
     doubleGradientReduce,
     {product, "does not lead from [40, 72@tp] partial{dp} to [40, 72@tp] partial{dp}"},
     {"partitioned program differs", product}},
    {"GradientReduceOverWrongAxis",
     oddTraining,
     "partition",
     reduceGradientOverTensorParallel,
     {product, "sums over 'tp', but the operand is not partial over it"},
     {"partitioned program differs", product}},
    {"GradientReduceByMaximum",
     oddTraining,
     "partition",
     reduceGradientByMaximum,
     {product, "only a sum over ranks changes a sharding"},
     {"partitioned program differs", product}},
    {"AccumulateDropped",
     oddTraining,
     "partition",
     dropAccumulate,
     {product, "the op gives [40, 72@tp] partial{dp, mb}"},
     {product, "is no sum over micro-batches"}},
    {"ReduceOfCountDropped",
     oddTraining,
     "partition",
     dropReduceOfCount,
     {"dist.accumulate", "must carry the sharding [] partial{dp}", "at ONNX node 'loss'"},
     {"at ONNX node 'loss'"}},
    {"TiedGradientAddedOnce", oddTraining, "partition", addTiedOnce, {}, {"partitioned program differs", tiedTerm}},
    {"TiedGradientAddedTwice", oddTraining, "partition", addTiedTwice, {}, {"partitioned program differs", tiedTerm}},
    {"CountForgotten", oddTraining, "partition", forgetCount, {}, {"partitioned program differs", weightName}},
    {"ClipForgotten", oddTraining, "partition", forgetClip, {}, {"partitioned program differs", weightName}},
    {"ActivationOfOtherBlock",
     oddTraining,
     "partition",
     readOtherActivation,
     {},
     {"partitioned program differs", product}},
    {"NormCountsWholePerRank",
     oddTraining,
     "partition",
     countWholePerRank,
     {wholeName, "operand 0 is partial over {}, the op takes it partial over {tp}"},
     {wholeName}},
    {"NormCountsPadding",
     oddTraining,
     "partition",
     countPadding,
     {tiedName, "reduces over padding"},
     {tiedName, "nan"}},
    {"WrittenToWrongState",
     oddTraining,
     "partition",
     swapWritten,
     {},
     {"output of the partitioned program differs", weightName}},
    {"StateWrittenBack",
     oddTraining,
     "partition",
     writeBack,
     {},
     {"output of the partitioned program differs", weightName}},
    {"NewMomentForOld", oddTraining, "partition", decayNewMoment, {}, {"partitioned program differs", weightName}},
    {"OldMomentForNew", oddTraining, "partition", stepByOldMoment, {}, {"partitioned program differs", weightName}},
    {"StepUphill", oddTraining, "partition", stepUphill, {}, {"partitioned program differs", keysName}},
    {"StateCutPlainly",
     tinyTraining,
     "partition",
     cutStatePlainly,
     {"transformer.h.1.attn.c_attn.weight", "96@tp"},
     {"'adam.m/transformer.h.1.attn.c_attn.weight' after the step"}},
};
INSTANTIATE_TEST_SUITE_P(Training, ProgramFault, testing::ValuesIn(programs),
                         [](const auto &info) { return std::string(info.param.name); });

// ---- plans --------------------------------------------------------------------------------------

constexpr const char *weightGradient = "weight gradient";

size_t position(plan::Plan &plan, int stage, plan::ProgramKind kind, int32_t microBatch) {
  plan::Stage &where = plan.stages[stage];
  for (size_t i = 0; i < where.schedule.size(); ++i)
    if (where.programs[where.schedule[i].program].kind == kind && where.schedule[i].microBatch == microBatch)
      return i;
  ADD_FAILURE() << "not in the schedule; the test is out of date";
  std::exit(1);
}
plan::Gemm &gradientGemm(plan::Plan &plan) { return the<plan::Gemm>(plan, 0, weightGradient, product); }
/// The state of weightName.
plan::Binding &state(plan::Plan &plan, const std::string &prefix) {
  for (plan::Binding &binding : plan.stages[0].bindings)
    if (binding.saved == prefix + weightName)
      return binding;
  ADD_FAILURE() << "no state " << prefix;
  std::exit(1);
}
plan::Buffer &bufferOf(plan::Plan &plan, plan::Ref place) { return plan.stages[0].buffers[place.buffer]; }

/// W of the last micro-batch runs when the weights are already written.
void weightGradientAfterUpdate(plan::Plan &plan) {
  std::vector<plan::ScheduleStep> &schedule = plan.stages[0].schedule;
  size_t last = position(plan, 0, plan::ProgramKind::WeightGradient, 1);
  std::rotate(schedule.begin() + last, schedule.begin() + last + 1, schedule.end());
}
void forgetWeightGradient(plan::Plan &plan) {
  std::vector<plan::ScheduleStep> &schedule = plan.stages[0].schedule;
  schedule.erase(schedule.begin() + position(plan, 0, plan::ProgramKind::WeightGradient, 1));
}
void repeatWeightGradient(plan::Plan &plan) {
  plan.stages[0].schedule[position(plan, 0, plan::ProgramKind::WeightGradient, 1)].microBatch = 0;
}
void forgetUpdate(plan::Plan &plan) {
  std::vector<plan::ScheduleStep> &schedule = plan.stages[0].schedule;
  schedule.erase(schedule.begin() + position(plan, 0, plan::ProgramKind::Update, 0));
}
void backwardBeforeForward(plan::Plan &plan) {
  std::vector<plan::ScheduleStep> &schedule = plan.stages[1].schedule;
  std::swap(schedule[position(plan, 1, plan::ProgramKind::Forward, 1)],
            schedule[position(plan, 1, plan::ProgramKind::Backward, 1)]);
}
/// F of micro-batch 1 writes over what B of micro-batch 0 still reads.
void savedSlotTooFew(plan::Plan &plan) {
  bufferOf(plan, the<plan::Kernel>(plan, 0, "forward", "node_layer_norm_3").args.back().place).slots = 1;
}
/// The product reads what B left for another one, of the same shape.
void staleActivation(plan::Plan &plan) {
  plan::Gemm &other = the<plan::Gemm>(plan, 0, weightGradient, "node_addmm_2");
  gradientGemm(plan).a.place = other.a.place;
}
void packTemporary(plan::Plan &plan) { gradientGemm(plan).b.packed = true; } ///< the gradient of the product's result
void accumulatorForgets(plan::Plan &plan) { gradientGemm(plan).addToC = 0; }
void accumulatorOfLastStep(plan::Plan &plan) { gradientGemm(plan).addToC = 1; }
void accumulatorOfOneProgram(plan::Plan &plan) {
  bufferOf(plan, gradientGemm(plan).c.place).lifetime = plan::Lifetime::Program;
}
void accumulateForgets(plan::Plan &plan) { the<plan::Accumulate>(plan, 0, weightGradient, "node_layer_norm").add = 0; }
/// Where the bucket of the weight's gradient is posted: in the program that adds it up.
size_t bucketPosition(plan::Plan &plan) {
  const plan::Program &where = program(plan, 0, weightGradient);
  for (size_t i = 0; i < where.instructions.size(); ++i)
    if (const auto *collective = std::get_if<plan::Collective>(&where.instructions[i].action);
        collective && collective->request >= 0 && collective->axes == std::vector<std::string>{"dp"})
      return i;
  ADD_FAILURE() << "no bucket; the test is out of date";
  std::exit(1);
}
plan::Instruction &bucketPost(plan::Plan &plan) {
  return program(plan, 0, weightGradient).instructions[bucketPosition(plan)];
}
void bucketOverTensorParallel(plan::Plan &plan) {
  std::get<plan::Collective>(bucketPost(plan).action).axes = {"tp"};
}
void dropBucket(plan::Plan &plan) {
  std::vector<plan::Instruction> &where = program(plan, 0, weightGradient).instructions;
  where.erase(where.begin() + bucketPosition(plan));
}
void bucketOfFirstMicroBatch(plan::Plan &plan) {
  std::vector<int64_t> &when = bucketPost(plan).when.values;
  std::rotate(when.begin(), when.begin() + when.size() / 2, when.end());
}
void bucketWithoutLastTerms(plan::Plan &plan) {
  std::get<plan::Collective>(bucketPost(plan).action).count /= 2;
}
void readBucketBeforeWait(plan::Plan &plan) {
  plan::Program &update = program(plan, 0, "update");
  int32_t request = std::get<plan::Collective>(bucketPost(plan).action).request;
  for (size_t i = 0; i < update.instructions.size(); ++i)
    if (const auto *wait = std::get_if<plan::Wait>(&update.instructions[i].action); wait && wait->request == request)
      std::rotate(update.instructions.begin() + i, update.instructions.begin() + i + 1, update.instructions.end());
}
/// A sum over tp that goes beside the product of the weight's gradient is waited for behind its reader.
void readSumBeforeWait(plan::Plan &plan) {
  std::vector<plan::Instruction> &where = program(plan, 0, weightGradient).instructions;
  int32_t request = -1;
  for (size_t i = 0; i < where.size(); ++i) {
    const auto *collective = std::get_if<plan::Collective>(&where[i].action);
    const auto *wait = std::get_if<plan::Wait>(&where[i].action);
    if (request < 0 && collective && collective->axes == std::vector<std::string>{"tp"})
      request = collective->request;
    else if (wait && request >= 0 && wait->request == request)
      return std::swap(where[i], where[i + 1]);
  }
  ADD_FAILURE() << "no such sum; the test is out of date";
}
/// Stage 1 computes with the tied weights of the step before.
void keepOldTiedCopy(plan::Plan &plan) {
  plan::Program &update = program(plan, 1, "update");
  for (size_t i = 0; i < update.instructions.size(); ++i)
    if (update.instructions[i].node == tiedName &&
        !std::holds_alternative<plan::StoreOutput>(update.instructions[i].action))
      update.instructions.erase(update.instructions.begin() + i--);
}
/// Adam's first moment goes by the name of the second one, and the other way round.
void swapStates(plan::Plan &plan) {
  plan::Program &update = program(plan, 0, "update");
  int32_t first = state(plan, "adam.m/").buffer, second = state(plan, "adam.v/").buffer;
  for (plan::Instruction &instruction : update.instructions)
    if (auto *kernel = std::get_if<plan::Kernel>(&instruction.action))
      for (plan::KernelArg &arg : kernel->args)
        if (arg.place.buffer == first || arg.place.buffer == second)
          arg.place.buffer = arg.place.buffer == first ? second : first;
}
void startStateWithNothing(plan::Plan &plan) { state(plan, "adam.m/").start = plan::Nothing{}; }


// ---- the entry `evaluate` -----------------------------------------------------------------------

/// The program of the evaluation, a part of the step's of that kind, behind which it lies.
plan::Program &evaluation(plan::Plan &plan, int stage, plan::ProgramKind kind) {
  addEvaluation(plan, {"loss", "valid_tokens"});
  for (const plan::ScheduleStep &step : plan.entries[1].schedules[size_t(stage)])
    if (plan::Program &found = plan.stages[size_t(stage)].programs[size_t(step.program)]; found.kind == kind)
      return found;
  ADD_FAILURE() << "no such program; the test is out of date";
  std::exit(1);
}
template <typename ActionT> void erase(plan::Program &program) {
  program.instructions.erase(program.instructions.begin() + ptrdiff_t(find<ActionT>(program)));
}
void evaluationSendsNothing(plan::Plan &plan) { erase<plan::Send>(evaluation(plan, 0, plan::ProgramKind::Forward)); }
/// Its last stage reduces the number of tokens before it has added all of them up.
void evaluationAddsNothing(plan::Plan &plan) { erase<plan::Accumulate>(evaluation(plan, 1, plan::ProgramKind::Forward)); }
void evaluationStoresNothing(plan::Plan &plan) { erase<plan::StoreOutput>(evaluation(plan, 1, plan::ProgramKind::Update)); }
/// The update of the step, which reads gradients that nobody has computed.
void evaluationUpdates(plan::Plan &plan) {
  evaluation(plan, 0, plan::ProgramKind::Update).instructions.clear();
  for (const plan::ScheduleStep &step : plan.entries[0].schedules[0])
    if (plan.stages[0].programs[size_t(step.program)].kind == plan::ProgramKind::Update)
      plan.entries[1].schedules[0].back() = step;
}
/// A micro-batch in which its second stage has no data.
void evaluationLeavesOutAMicroBatch(plan::Plan &plan) {
  evaluation(plan, 0, plan::ProgramKind::Forward);
  std::vector<plan::ScheduleStep> &schedule = plan.entries[1].schedules[0];
  for (size_t i = schedule.size(); i-- > 0;)
    if (plan.stages[0].programs[size_t(schedule[i].program)].kind == plan::ProgramKind::Forward && schedule[i].microBatch == 1)
      schedule.erase(schedule.begin() + ptrdiff_t(i));
}

constexpr const char *differsAtProduct = "plan differs at ONNX node 'node_addmm_6'"; ///< where ranks add it up
constexpr const char *differsAtBucket = "(wait of node 'node_addmm_7'): plan differs"; ///< where its terms are whole
constexpr const char *differsAtWeight = "plan differs at ONNX node 'transformer.h.1.mlp.c_fc.weight'";

const FaultOfPlan plans[] = {
    {"WeightGradientAfterUpdate",
     weightGradientAfterUpdate,
     {"weight gradient, micro-batch 1", "runs after the update"},
     {},
     oddTraining},
    {"WeightGradientForgotten",
     forgetWeightGradient,
     {"program weight gradient: the schedule runs it 0 times for micro-batch 1"},
     {},
     oddTraining},
    {"WeightGradientTwice",
     repeatWeightGradient,
     {"program weight gradient: the schedule runs it 2 times for micro-batch 0"},
     {},
     oddTraining},
    {"UpdateForgotten", forgetUpdate, {"stage 0, program update: the schedule never runs it"}, {}, oddTraining},
    {"BackwardBeforeForward",
     backwardBeforeForward,
     {"backward, micro-batch 1", "holds data of micro-batch 0, for micro-batch 1"},
     {},
     oddTraining},
    {"SavedSlotTooFew",
     savedSlotTooFew,
     {product, "node_layer_norm_3", "holds data of micro-batch 1, for micro-batch 0"},
     {},
     oddTraining},
    {"TemporaryPacked", packTemporary, {"packed, but it does not live for the session"}, {}, oddTraining},
    {"StaleActivation", staleActivation, {}, {differsAtProduct}, oddTraining},
    {"AccumulatorForgets", accumulatorForgets, {}, {differsAtProduct}, oddTraining},
    {"AccumulatorOfLastStep", accumulatorOfLastStep, {product, "which holds nothing yet"}, {}, oddTraining},
    {"AccumulatorOfOneProgram",
     accumulatorOfOneProgram,
     {"bucket of 25 sums", "before any instruction of the program wrote to it"},
     {},
     oddTraining},
    {"AccumulateForgets", accumulateForgets, {}, {"plan differs at ONNX node 'node_layer_norm'"}, oddTraining},
    {"BucketOverWrongAxis", bucketOverTensorParallel, {}, {differsAtBucket}, oddTraining},
    {"BucketDropped", dropBucket, {}, {differsAtBucket}, oddTraining},
    {"BucketOfFirstMicroBatch",
     bucketOfFirstMicroBatch,
     {"weight gradient, micro-batch 1", "bucket of 25 sums", "while it is in flight"},
     {},
     oddTraining},
    {"BucketWithoutLastTerms", bucketWithoutLastTerms, {}, {differsAtBucket}, oddTraining},
    {"BucketReadBeforeWait", readBucketBeforeWait, {"bucket of 25 sums", "while it is in flight"}, {}, oddTraining},
    {"SumReadBeforeWait", readSumBeforeWait, {"while it is in flight"}, {}, oddTraining},
    {"TiedCopyNotUpdated", keepOldTiedCopy, {}, {tiedName}, oddTraining},
    {"StatesSwapped", swapStates, {}, {differsAtWeight}, oddTraining},
    {"EvaluationSendsNothing", evaluationSendsNothing, {"entry 'evaluate'", "deadlock", "waits for a send"}, {}, oddTraining},
    {"EvaluationAddsNothing", evaluationAddsNothing, {"entry 'evaluate'", "which holds nothing yet"}, {}, oddTraining},
    {"EvaluationStoresNothing", evaluationStoresNothing, {"entry 'evaluate'", "no owner stores any of it"}, {}, oddTraining},
    {"EvaluationUpdates", evaluationUpdates, {"entry 'evaluate'", "which is none of the entry's"}, {}, oddTraining},
    {"EvaluationLeavesOutAMicroBatch",
     evaluationLeavesOutAMicroBatch,
     {"entry 'evaluate'", "the schedule runs it 0 times for micro-batch 1"},
     {},
     oddTraining},
    {"StateOfNothing",
     startStateWithNothing,
     {"'adam.m/transformer.h.1.mlp.c_fc.weight', which holds nothing yet"},
     {},
     oddTraining},
};
INSTANTIATE_TEST_SUITE_P(Training, PlanFault, testing::ValuesIn(plans),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
