// The state of propagation: how the factors of every op and the dims of every source are cut so far, and who wanted it.
// Cuts are only ever added while seeds flow, so the flow ends; an op's results always have the sharding that its
// factors give.
#pragma once

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/Dist/FactorShardings.h"

namespace hpc {

/// Which seed brought an axis.
struct Origin {
  int priority = 1;    ///< 0 the user's sidecar, 1 a default layout
  std::string subject; ///< "wte.weight", "/h.0/attn/Softmax", "input ids"
  std::string text() const { return (priority == 0 ? "the sidecar's cut of " : "the layout's cut of ") + subject; }
};
using Origins = std::map<std::string, Origin>; // by axis

/// An op that computes.
struct OpState {
  Operation *op = nullptr;
  dist::OpSharding sharding;
  Origins origins;
  llvm::SmallBitVector anchored; ///< factors cut by a seed on a result: never given up
  llvm::SmallBitVector closed;   ///< factors that take no (further) cut
  bool dirty = false;
};

/// A value without a rule: argument, parameter, constant.
struct SourceState {
  enum Kind { Argument, Parameter, Constant } kind = Argument;
  Value value;
  dist::Sharding sharding;
  Origins origins;
  bool seeded = false;
  bool closed = false;
};

class Propagation {
public:
  Propagation(func::FuncOp function, const dist::Mesh &mesh);

  /// Applies the seeds of one priority.
  LogicalResult seed(int priority);
  /// Lets cuts flow along factors, forward and backward, until nothing changes.
  void flow();
  /// Gives up cuts of activations that cost more bytes than they save.
  void weighConflicts();
  /// Decides over which axes results stay partial.
  void flowPartials();
  /// Parameters that several users want differently stay whole: slicing a whole weight is free, gathering a part is
  /// not.
  void settleParameters();
  /// Errors for what no plan can do: a sum, gather or slice over micro-batches.
  LogicalResult check();
  /// Shardings into the types, factors, origins and ids into attributes; a returned partial sum is resolved; seeds
  /// removed.
  void write();

private:
  friend class ConflictCosts;
  dist::Sharding shardingOf(Value value) const;
  OpState *stateOf(Operation *op);
  OpState *producerOf(Value value) { return value.getDefiningOp() ? stateOf(value.getDefiningOp()) : nullptr; }
  const Origins &originsOf(Value value) const;
  LogicalResult seedValue(Value value, dist::ShardingAttr seed, int priority, const std::string &subject);
  void seedResult(OpState &state, unsigned result, const dist::Sharding &seed, const Origins &origins, bool closed);
  void touch(OpState &state);
  void touchUsers(Value value);
  void visit(OpState &state);
  bool takeFromOperands(OpState &state);
  void giveToOperands(OpState &state);
  bool offer(Value value, unsigned dim, const dist::DimSharding &wanted, const Origins &origins);
  bool offerToOp(OpState &state, unsigned result, unsigned dim, const dist::DimSharding &wanted,
                 const Origins &origins);
  void choosePassing(OpState &state);
  void writeOrigins(OpState &state);
  void remarkOnConflicts(OpState &state);

  func::FuncOp function;
  dist::Mesh mesh;
  std::vector<OpState> ops; ///< program order
  DenseMap<Operation *, int> opIndex;
  std::vector<SourceState> sources;
  DenseMap<Value, int> sourceIndex;
};

/// What of a value other than its own sharding its users want; each list once.
std::vector<dist::Sharding> distinct(std::vector<dist::Sharding> shardings);

} // namespace hpc
