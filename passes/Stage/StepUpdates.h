// The ops that each stage runs once a step, in rounds: a round ends where a stage waits for a number of another one.
//
// A stage computes the next values of the parameters and states that it holds, from the sums over micro-batches of its
// own programs; values that another stage computes come from that stage's update. So a parameter that two stages hold
// is updated in both, and the values that each reads from the other cross between their rounds.
#pragma once

#include "passes/Stage/SumsOverParts.h"

#include "llvm/ADT/MapVector.h"

#include <map>
#include <set>

namespace hpc {

class StepUpdates {
public:
  /// A value, and the stage in which it is known.
  using Known = std::pair<Value, unsigned>;

  /// `homes`: placeUpdates. `reads`: parameters and states by name, and the stages whose other programs read them.
  StepUpdates(func::FuncOp function, const StepParts &parts, llvm::DenseMap<Operation *, Homes> homes,
              const std::map<std::string, std::set<unsigned>> &reads);

  /// The values that a program that runs once a micro-batch gives to updates: those of its own ops, and cheap sums over
  /// micro-batches, which forward of the stage's first part makes.
  SmallVector<Value> wantedOf(StepParts::Program program);
  /// Whether an update returns this operand of the function's return.
  bool returns(OpOperand &returned) const { return returnedFrom.count(returned.getOperandNumber()); }

  /// Builds the updates; `known` has the values of `wantedOf` in each stage. Sets the operands of the function's return,
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
  /// A gradient times a number: every round that reads it computes it again, since a copy kept from round to round
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
