// One walk over each forward program finds its ops, one over the readers of its results the values that gradients read.
#include "passes/Recompute/ForwardPart.h"

#include "compiler/BlockMark.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/Pipe/Schedule.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/Panels.h"
#include "compiler/StepPart.h"
#include "runtime/plan/ScheduleSlots.h"

namespace hpc {

/// The gather that a product's operand comes from, and the views and casts after it.
static void findActivationGather(Value operand, const ForwardPart &part, llvm::DenseSet<Operation *> &gathers) {
  SmallVector<Operation *> chain;
  for (Operation *op = operand.getDefiningOp(); part.has(op); op = op->getOperand(0).getDefiningOp()) {
    chain.push_back(op);
    if (isa<dist::AllGatherOp>(op)) {
      gathers.insert(chain.begin(), chain.end());
      return;
    }
    if (op->getNumOperands() != 1 || !(isView(op) || isa<nn::CastOp>(op)))
      return;
  }
}

static void findOps(ForwardPart &part, bool panels) {
  llvm::DenseSet<Value> ofGradients, gathered;
  for (Operation &op : part.forward.getBody().front().without_terminator()) {
    auto isIn = [&](const llvm::DenseSet<Value> &values) {
      return llvm::any_of(op.getOperands(), [&](Value value) { return values.contains(value); });
    };
    if (stepPartOf(op.getLoc()) != StepPart::Forward || isIn(ofGradients)) {
      ofGradients.insert(op.result_begin(), op.result_end());
      continue;
    }
    part.ops.push_back(&op);
    part.members.insert(&op);
    part.lastBlock = std::max(part.lastBlock, blockMark(&op).value_or(-1));
    if (auto gather = dyn_cast<dist::AllGatherOp>(op); gather && panels && isForPanels(gather))
      part.gathers.insert(&op);
    if (!llvm::all_of(op.getOperands(), [&](Value value) { return part.sameAlways.contains(value); }))
      continue;
    part.sameAlways.insert(op.result_begin(), op.result_end());
    if (crossesRanks(&op) || isIn(gathered)) {
      gathered.insert(op.result_begin(), op.result_end());
      part.gathers.insert(&op);
    }
  }
  for (Operation *op : part.ops)
    if (accessOf(op) == Access::Product)
      for (unsigned weight : {0u, 1u})
        if (part.sameAlways.contains(op->getOperand(weight)) && !part.sameAlways.contains(op->getOperand(1 - weight)))
          findActivationGather(op->getOperand(1 - weight), part,
                               gathered.contains(op->getOperand(weight)) ? part.activationGathers : part.rowGathers);
  // Ops whose results only gathers read, as the cast of a weight's own part to 16 bits, run again with the gathers.
  for (Operation *op : llvm::reverse(part.ops))
    if (op->getNumOperands() > 0 && !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
          return part.gathers.contains(user);
        }) && llvm::all_of(op->getResults(), [&](Value value) { return part.sameAlways.contains(value); }))
      part.gathers.insert(op);
}

static void findReads(ForwardPart &part) {
  llvm::DenseSet<Value> read;
  if (part.readers.empty()) // else gradients that lie in forward read its values at once, and nothing is kept for them
    for (Operation *op : part.ops)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !isa<pipe::YieldOp>(user) && !part.has(user); }))
          read.insert(result);
  Operation *yield = part.forward.getBody().front().getTerminator();
  for (pipe::StageOp reader : part.readers)
    for (Value operand : reader.getOperands())
      if (auto result = dyn_cast<OpResult>(operand); result && result.getOwner() == part.forward)
        read.insert(yield->getOperand(result.getResultNumber()));
  for (Operation *op : part.ops)
    for (Value result : op->getResults())
      if (read.contains(result) && op->getNumOperands() > 0) // parameters and constants are everywhere
        part.read.insert(result);
}

static int64_t slotsOf(const ForwardPart &part, const plan::PipelineSchedule &schedule) {
  int32_t chunk = int32_t(part.forward.getChunk());
  plan::SlotSpan span{{plan::ProgramKind::Forward, chunk}, {}};
  for (pipe::StageOp reader : part.readers)
    span.last.push_back({pipe::planKind(reader.getProgram()), chunk});
  return span.last.empty() ? 1 : plan::slotsNeeded(schedule[size_t(part.stage())], span);
}

std::vector<ForwardPart> findForwardParts(func::FuncOp function, const plan::PipelineSchedule &schedule, bool panels) {
  std::vector<ForwardPart> parts;
  auto programs = function.getBody().front().getOps<pipe::StageOp>();
  for (pipe::StageOp forward : programs) {
    if (forward.getProgram() != pipe::ProgramKind::forward)
      continue;
    ForwardPart &part = parts.emplace_back();
    part.forward = forward;
    for (pipe::StageOp other : programs)
      if (other.getIndex() == forward.getIndex() && other.getChunk() == forward.getChunk() &&
          (other.getProgram() == pipe::ProgramKind::backward ||
           other.getProgram() == pipe::ProgramKind::weight_gradient))
        part.readers.push_back(other);
    findOps(part, panels);
    findReads(part);
    part.slots = slotsOf(part, schedule);
  }
  return parts;
}

} // namespace hpc
