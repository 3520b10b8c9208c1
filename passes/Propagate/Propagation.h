// The state of propagation: the cuts so far of the factors of every op and the dims of every source, and their origins.
// Cuts are only ever added while seeds flow, so the flow ends; an op's results always have the sharding that its
// factors give.
#pragma once

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/Dist/FactorShardings.h"

namespace hpc {

/// An op that computes.
struct OpState {
  Operation *op = nullptr;
  dist::OpSharding sharding;
  CutOrigins origins;
  llvm::SmallBitVector anchored; ///< factors cut by a seed on a result: never given up
  llvm::SmallBitVector closed;   ///< factors that take no (further) cut
  llvm::SmallBitVector whole;    ///< factors that are whole on every rank: only time may cut them
  bool dirty = false;
};

/// A value without a rule: input, parameter or state, constant.
struct SourceState {
  enum Kind { Input, Kept, Constant } kind = Input;
  Value value;
  dist::Sharding sharding; ///< a parameter's or state's storage; see Propagation::usedSharding
  CutOrigins origins;
  bool seeded = false;
  llvm::SmallBitVector closed; ///< dims that nobody else may cut
};

class Propagation {
public:
  Propagation(func::FuncOp function, const dist::Mesh &mesh);

  /// Readers of a value that is to be whole (compiler/Dialect/Dist/WholeOutput.h) take no cut of it but time's: all
  /// ranks hold the same part of the batch in a micro-batch. Before all seeds.
  void closeWholeOutputs();
  /// The priorities of all seeds, lowest first.
  std::set<int64_t> priorities() const;
  /// Applies the seeds of one priority.
  LogicalResult seed(int64_t priority);
  /// A written value is wanted in the sharding of its storage. After all other seeds, so that only ops without any
  /// other cut follow a storage's cut over data.
  void seedWritten();
  /// Lets cuts flow along factors, forward and backward, until nothing changes.
  void flow();
  /// An op that has an axis of a cut elsewhere takes the part of the cut outside of this axis: every op computes a micro-batch from its part of
  /// the batch, and a product whose columns are cut over an axis of rows has the rows of the others. After all flow, so that ops which can take the whole cut do.
  void flowRest();
  /// Gives up cuts of activations that cost more bytes than they save.
  void weighConflicts();
  /// A sum over ranks that readers take in pieces is scattered: a reduction (a gradient of a norm's weight) takes the
  /// pieces too, and only its own small sum is all-reduced. After conflicts, which decide what readers take.
  void takePieces();
  /// Decides over which axes results stay partial.
  void flowPartials();
  /// Parameters that several users want differently stay whole: slicing a whole weight is free, gathering a part is
  /// not.
  void settleParameters();
  /// Errors for programs that no plan can run: a reduction over micro-batches that is no sum, and an op that reads such
  /// a sum in every micro-batch.
  LogicalResult check();
  /// Shardings into the types, factors, origins and ids into attributes; a returned partial sum is resolved; seeds
  /// removed.
  void write();

private:
  friend class ConflictCosts;
  dist::Sharding shardingOf(Value value) const;
  /// The sharding that a value offers its users: parameters and states are whole over data, however they are stored.
  dist::Sharding usedSharding(Value value) const;
  OpState *stateOf(Operation *op);
  OpState *producerOf(Value value) { return value.getDefiningOp() ? stateOf(value.getDefiningOp()) : nullptr; }
  const CutOrigins &originsOf(Value value) const;
  LogicalResult forEachSeeded(llvm::function_ref<LogicalResult(Value, const dist::Seed &)> visit) const;
  LogicalResult seedValue(Value value, const dist::Seed &seed);
  LogicalResult seedResult(OpState &state, unsigned result, const dist::Seed &seed, const CutOrigins &origins);
  void seedReaders(Value value, const dist::Seed &seed);
  LogicalResult checkOp(const OpState &state, DenseSet<Value> &isTotal) const;
  dist::Sharding returnedSharding(unsigned result) const;
  bool mayTake(const OpState &state, int factor, const dist::DimSharding &cut) const;
  void touch(OpState &state);
  void touchUsers(Value value);
  void visit(OpState &state);
  bool takeFromOperands(OpState &state);
  bool takeRestFromOperands(OpState &state);
  void giveToOperands(OpState &state);
  bool offer(Value value, unsigned dim, const dist::DimSharding &wanted, const CutOrigins &origins);
  bool offerToOp(OpState &state, unsigned result, unsigned dim, const dist::DimSharding &wanted,
                 const CutOrigins &origins);
  bool cutsFurther(const OpState &state, int factor, const dist::DimSharding &cut) const;
  std::optional<dist::Sharding> takenAs(Value value);
  void choosePassing(OpState &state);
  void choosePassing(OpState &state, ArrayRef<dist::AxisNames> partials);
  dist::AxisNames uncutTerms(OpState &state, ArrayRef<dist::AxisNames> partials) const;
  void writeOrigins(OpState &state);
  void writeOrigins(const SourceState &source);
  void remarkOnConflicts(OpState &state);
  /// Collected until emitRemarks: equal texts at several places are one remark at the first.
  void remark(Operation *op, const std::string &text) { remarks[text].push_back(op->getLoc()); }
  void emitRemarks();
  void reshardReturned();

  func::FuncOp function;
  dist::Mesh mesh;
  bool followsStorage = false; ///< an op may cut further what it has in parts, as a written value is stored
  std::vector<OpState> ops; ///< program order
  DenseMap<Operation *, int> opIndex;
  std::vector<SourceState> sources;
  DenseMap<Value, int> sourceIndex;
  DenseMap<unsigned, int> written; ///< result of the function -> the source that it writes
  llvm::MapVector<std::string, SmallVector<Location>, std::map<std::string, unsigned>> remarks; ///< places by text
};

/// Whether a dim of some result has the factor.
bool isInResults(const ShardingRule &rule, int factor);

} // namespace hpc
