// What each stage computes once a step, in rounds: a stage's update stops where it waits for a number of another stage.
//
// A stage computes what becomes of the parameters and states that it holds, from the sums over micro-batches of its own
// programs; what another stage computes comes from that one's update. So a parameter that two stages hold is updated in
// both, and what both read of each other crosses between their rounds.
#pragma once

#include "passes/Stage/SumsOverParts.h"

#include "llvm/ADT/MapVector.h"

#include <map>
#include <set>

namespace hpc {

class StepUpdates {
public:
  /// A value as a stage knows it.
  using Known = std::pair<Value, unsigned>;

  /// `homes`: placeUpdates. `reads`: parameters and states by name, and the stages whose other programs read them.
  StepUpdates(func::FuncOp function, const StepParts &parts, llvm::DenseMap<Operation *, Homes> homes,
              const std::map<std::string, std::set<unsigned>> &reads);

  /// What programs that run once a micro-batch give to updates: of their own ops, and sums over micro-batches that are
  /// cheap, which forward of the stage's first part makes.
  SmallVector<Value> wantedOf(StepParts::Program program);
  /// Whether an update returns it.
  bool returns(OpOperand &returned) const { return returnedFrom.count(returned.getOperandNumber()); }

  /// Builds the updates, given what stages know of the values of `wantedOf`. Sets the operands of the function's return,
  /// to which it adds a result for each further stage that writes the same parameter or state.
  LogicalResult build(OpBuilder &builder, llvm::DenseMap<Known, Value> &known);

private:
  void need(Value value, unsigned stage);
  void hold(const std::string &name, unsigned stage);
  void findNeeds();
  void followNeeds();
  void findRounds();
  unsigned roundOf(Value value, unsigned stage) const;
  /// Whether another program, stage or round gives a value to the stage's updates.
  bool isGiven(Value value, unsigned stage) const;
  /// A gradient times a number, which every round that reads it computes from the gradient: kept from round to round it
  /// would be a second copy of all gradients.
  bool isRepeated(Operation *op) const;
  bool isReadAfter(Value value, unsigned round, unsigned stage) const;
  void buildRound(OpBuilder &builder, unsigned round, unsigned stage, llvm::DenseMap<Known, Value> &known);
  LogicalResult setReturned(llvm::DenseMap<Known, Value> &known);

  func::FuncOp function;
  const StepParts &parts;
  llvm::DenseMap<Operation *, Homes> homes;
  std::map<std::string, unsigned> resultOfName;      ///< parameters and states that are written: result of @main
  std::map<std::string, std::set<unsigned>> holders; ///< stages that hold a parameter or state
  std::map<unsigned, std::set<unsigned>> returnedFrom; ///< results of @main that updates return: from which stages

  llvm::DenseSet<Known> seen;
  SmallVector<Known> pending;
  llvm::DenseMap<Operation *, Homes> computedIn; ///< ops that run once a step: the stages
  llvm::MapVector<Known, unsigned> imports;               ///< from which stage another one gets a value
  llvm::DenseSet<Known> ofPrograms;                       ///< given by programs of the same stage
  llvm::DenseMap<std::pair<Operation *, unsigned>, unsigned> rounds; ///< of an op in a stage
  std::map<std::pair<unsigned, unsigned>, SmallVector<Operation *>> opsOf; ///< by round and stage, in program order
  unsigned lastRound = 0;
};

} // namespace hpc
