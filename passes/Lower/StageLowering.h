// Lowers the ops of one stage: values to buffers, ops to instructions.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "passes/Lower/Lower.h"
#include "passes/Lower/Tables.h"
#include "passes/Lower/TensorTable.h"

namespace hpc {

/// What a stage takes from and gives to the outside. Each is one of the two.
struct StagePort {
  int32_t graphPort = -1; ///< index of a graph input or output
  int32_t channel = -1;   ///< of a transfer, unique in the plan
  int64_t peerStage = -1;
  plan::Reason reason; ///< of a transfer
};

struct StageInput : StagePort {
  Value value; ///< in the stage's body
};
struct StageOutput : StagePort {
  Value value;
};

class StageLowering {
public:
  StageLowering(const Tables &tables, TensorTable &weights, int64_t index, int64_t stages)
      : tables(tables), weights(weights), index(index), stages(stages) {}

  /// Lowers `body` (its terminator is not looked at). Fills `stage` and `values`.
  Status run(Block &body, ArrayRef<StageInput> inputs, ArrayRef<StageOutput> outputs);

  plan::Stage stage;
  std::vector<LoweredValue> values;

private:
  Status lower(Operation *op);
  Status lowerParameter(nn::ParameterOp op);
  Status lowerConstant(nn::ConstantOp op);
  Status lowerMatmul(nn::MatmulOp op);
  Status lowerFused(nn::FusedOp op);
  Status lowerAllReduce(dist::AllReduceOp op);
  Status lowerPermute(dist::PermuteOp op);
  /// raw_all_gather, raw_reduce_scatter, raw_all_to_all.
  Status lowerRaw(Operation *op, plan::CollectiveKind kind, int64_t count);

  int32_t addBuffer(Value value, plan::Lifetime lifetime);
  int32_t addRequest();
  /// A new buffer for a result: a MicroBatch buffer when it is sent to another stage.
  int32_t addResult(Value value);
  void alias(Value value, Value of);
  plan::Ref place(Value value) const { return {buffers.lookup(value), 0}; }
  void emit(plan::Action action, const std::string &node);
  /// Notes where the results of `op` lie after the instruction that was emitted last.
  void note(Operation *op);

  void postReceives(ArrayRef<StageInput> inputs);
  void loadInputs(ArrayRef<StageInput> inputs);
  void prepareSends(ArrayRef<StageOutput> outputs);
  void storeAndSend(ArrayRef<StageOutput> outputs);
  Status bindSchedule();

  const Tables &tables;
  TensorTable &weights;
  const int64_t index, stages;

  plan::Program receive{plan::ProgramKind::Receive, 0, {}}, forward{plan::ProgramKind::Forward, 0, {}},
      drain{plan::ProgramKind::Drain, 0, {}};
  llvm::DenseMap<Value, int32_t> buffers;      ///< by value; aliases share one
  llvm::DenseMap<Value, plan::ByCoord> exactK; ///< results of fill_tail: the extent of their contracted dim
  llvm::DenseSet<Value> sent;                  ///< values whose buffer a send reads; aliases resolved
};

/// The DType of a tensor's elements; booleans take a byte.
DType elementDType(Value value);

} // namespace hpc
