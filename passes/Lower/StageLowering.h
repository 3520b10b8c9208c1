// Lowers the programs of one stage: values to buffers, ops to instructions. What a buffer or a posted transfer needs in
// slots follows from the stage's schedule, which is made before (phase stage); here it is only bound.
#pragma once

#include "compiler/Accumulations.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "passes/Lower/Lower.h"
#include "passes/Lower/PlanWeights.h"
#include "passes/Lower/Tables.h"
#include "runtime/plan/ScheduleSlots.h"

#include <set>

namespace hpc {

/// What a program takes from and gives to the outside. Each is one of: a graph port, a transfer, a program of the stage,
/// a state.
struct ProgramPort {
  int32_t graphPort = -1; ///< index of a graph input or output
  int32_t channel = -1;   ///< of a transfer, unique in the plan
  int64_t peerStage = -1;
  plan::Reason reason; ///< of a transfer
};

struct ProgramInput : ProgramPort {
  Value value;  ///< in the program's body
  Value source; ///< of another program of the stage: in that one's body
  nn::ArgumentPort port; ///< of an argument of @main; a state has no graph port
};
struct ProgramOutput : ProgramPort {
  Value value;
  std::optional<plan::StageProgram> reader; ///< another program of the stage
  std::string writes;                       ///< a parameter or state of the stage, or ""
  bool onRequest = false;                   ///< of a graph output
};

class StageLowering {
public:
  /// `written`: the parameters and states that the function writes.
  StageLowering(const Tables &tables, PlanWeights &weights, const std::map<std::string, unsigned> &written,
                int64_t index, plan::StageSchedule schedule)
      : tables(tables), weights(weights), written(written), index(index), schedule(std::move(schedule)) {}

  /// Lowers `body` (its terminator is not looked at); what it reads of other programs has been lowered before. Adds to
  /// `stage`, `noted` and `values`. An update may come in rounds, which are one program and the last of the stage; `isLast` says
  /// that no round follows.
  Status addProgram(plan::StageProgram program, Block &body, ArrayRef<ProgramInput> inputs,
                    ArrayRef<ProgramOutput> outputs, bool isLast);
  /// Once all programs are there.
  Status bindSchedule();

  plan::Stage stage;
  std::vector<NotedValue> noted; ///< `completedBy` is an index into the program: the instruction after which the value was seen
  std::vector<Value> values;     ///< of `noted`

private:
  Status lower(Operation *op);
  Status lowerParameter(nn::ParameterOp op);
  Status lowerConstant(nn::ConstantOp op);
  Status lowerMatmul(nn::MatmulOp op);
  Status lowerFused(nn::FusedOp op);
  Status lowerAccumulate(dist::AccumulateOp op);
  /// The buffer of its result, which lives for the step.
  Status lowerAccumulator(dist::AccumulateOp op);
  /// reshape, and fill_tail as the exact extent of a product.
  Status lowerAlias(Operation *op);
  Status lowerCollective(CollectiveOpInterface op);

  int32_t addBuffer(Value value, plan::Lifetime lifetime);
  /// A buffer with as many slots as the schedule asks for.
  int32_t addSpanBuffer(Value value, const plan::SlotSpan &span);
  int32_t addRequest(const plan::SlotSpan &span);
  /// A new buffer for a result: one with slots when something outside of this program reads it.
  int32_t addResult(Value value);
  void alias(Value value, Value of);
  plan::Ref place(Value value) const { return placeIn(buffers.lookup(value)); }
  plan::Ref placeIn(int32_t buffer) const { return {buffer, 0, microBatchStrides.lookup(buffer)}; }
  void emit(plan::Action action, const std::string &node);
  /// Of what a program does at its edges: loads, messages.
  plan::Part partOfProgram() const;
  /// Notes where the results of `op` lie after the instruction that was emitted last.
  void note(Operation *op);

  plan::StageProgram drainProgram() const { return {plan::drainOf(current.kind), current.chunk}; }
  Status findReaders(ArrayRef<ProgramOutput> outputs);
  void postReceives(ArrayRef<ProgramInput> inputs);
  void exchange(ArrayRef<ProgramInput> inputs);
  Status loadInputs(ArrayRef<ProgramInput> inputs);
  void copyOut(ArrayRef<ProgramInput> inputs, ArrayRef<ProgramOutput> outputs);
  /// States (LowerState.cpp): an argument's buffer, and at the program's end what is written to parameters and states.
  Status bindState(const ProgramInput &input);
  Status writeStates(ArrayRef<ProgramOutput> outputs);
  /// What `op` makes and is to be written: at once, where nobody reads the old value any more, so that the new one does
  /// not wait in memory of its own.
  void writeEarly(Operation *op, ArrayRef<ProgramInput> inputs, ArrayRef<ProgramOutput> outputs);
  /// 0 in the first micro-batch along `axes`, 1 in the others.
  plan::ByCoord laterMicroBatches(ArrayAttr axes) const;
  void store(const ProgramOutput &output);
  /// Of `op`'s results, what is stored on request: at once, so that it occupies memory no longer than it is needed.
  void storeRequested(Operation *op, ArrayRef<ProgramOutput> outputs);
  void storeAndSend(ArrayRef<ProgramInput> inputs, ArrayRef<ProgramOutput> outputs);
  plan::ByCoord ranksOf(int64_t otherStage) const;

  const Tables &tables;
  PlanWeights &weights;
  const std::map<std::string, unsigned> &written;
  const int64_t index;
  const plan::StageSchedule schedule;

  std::map<std::string, int32_t> weightBuffers; ///< by name and type; all programs of the stage share one
  std::map<std::string, int32_t> stateBuffers;  ///< of states and written parameters, by name
  llvm::DenseMap<Value, int32_t> buffers;       ///< by value; aliases share one
  llvm::DenseMap<int32_t, int64_t> microBatchStrides; ///< of states that have the rows of several micro-batches, by buffer
  llvm::DenseMap<Value, plan::ByCoord> exactK;  ///< results of fill_tail: the extent of their contracted dim
  struct BlockTable {
    plan::ByCoord start, extent; ///< of the dim, in elements
  };
  llvm::DenseMap<Value, BlockTable> blocks; ///< results of raw_block

  // Of the program that is being lowered.
  plan::StageProgram current;
  plan::Part part = plan::Part::Forward; ///< of what is emitted
  plan::Program receive, compute, drain;
  /// Behind the last round of the update: waits for what it sent, then what is written.
  std::vector<plan::Instruction> updateEnd;
  std::set<std::string> writtenEarly; ///< parameters and states
  llvm::DenseMap<Value, std::vector<plan::StageProgram>> readers; ///< outside of it, by value; aliases resolved
};

/// The DType of a tensor's elements; booleans take a byte.
DType elementDType(Value value);
/// Of the part that a rank has in a micro-batch.
int64_t bytesOf(Value value);

} // namespace hpc
