// Which program of the pipeline runs each op of a step: the part, and forward, backward, weight gradient or update.
//
// An op of the graph is in the part that has its block. A gradient is in the part of the op that it differentiates,
// unless it reads gradients of an earlier part: gradients only go backwards. A program of weight gradients, if there is
// one, has the ops, products included, that no gradient of an earlier part needs and no product follows. Ops that
// depend on a sum over micro-batches run once a step, as do ops marked as update that do not differ by micro-batch. An
// op cheap to repeat has no program: every program that reads it computes it.
#pragma once

#include "compiler/Dialect/Pipe/Pipe.h"
#include "passes/Stage/Blocks.h"

namespace hpc {

/// Which programs a schedule runs beside forward and update.
enum class BackwardPrograms : uint8_t {
  None,   ///< gradients are part of forward: one stage, and a schedule that needs no backward
  Joined, ///< backward has all of them
  Apart,  ///< weight gradients have a program of their own
};

class StepParts {
public:
  /// Programs that run once a micro-batch, numbered in the order in which one micro-batch runs them: forward of parts
  /// 0, 1, ..., then backward and weight gradient of the last part, of the one before, ...
  using Program = unsigned;

  /// Part k is chunk k / stages of stage k % stages.
  StepParts(func::FuncOp function, const Blocks &blocks, ArrayRef<size_t> blocksOfPart, size_t stages,
            BackwardPrograms backward);

  size_t numStages() const { return stages; }
  size_t numParts() const { return parts; }
  unsigned numPrograms() const { return unsigned(3 * parts); }
  Program forward(size_t part) const { return Program(part); }
  Program backward(size_t part) const { return Program(parts + 2 * (parts - 1 - part)); }
  Program weightGradient(size_t part) const { return backward(part) + 1; }
  size_t partOf(Program program) const { return program < parts ? program : parts - 1 - (program - parts) / 2; }
  size_t stageOf(Program program) const { return partOf(program) % stages; }
  pipe::ProgramKind kindOf(Program program) const;

  /// The program of a trunk op that runs once a micro-batch; none for an op that is cheap or runs once a step.
  std::optional<Program> programOf(Operation *op) const;
  std::optional<Program> programOf(Value value) const;
  bool isOnceAStep(Operation *op) const { return onceAStep.contains(op); }
  /// For ops that are made or erased afterwards.
  void runOnceAStep(Operation *op) { onceAStep.insert(op); }
  void forget(Operation *op) { onceAStep.erase(op); }
  /// Whether ops that run once a step have programs of their own. One stage and one micro-batch have forward alone,
  /// unless the schedule needs more.
  bool hasUpdates() const { return updates; }
  /// A sum over micro-batches: made by a program that runs once a micro-batch, known once a step.
  bool isTotal(Value value) const;

private:
  void findOnceAStep(const Blocks &blocks);
  void findGradientTails(const llvm::DenseSet<Operation *> &trunk);
  bool isGradientTail(Operation *op) const;
  void placeForward(const Blocks &blocks, ArrayRef<size_t> blocksOfPart);
  void placeLater(const Blocks &blocks);
  void splitBackward(const Blocks &blocks);

  func::FuncOp function;
  size_t stages, parts;
  BackwardPrograms backwardPrograms;
  bool updates;
  int64_t microBatches;
  llvm::DenseSet<Operation *> onceAStep;
  llvm::DenseMap<Operation *, size_t> partOfOp; ///< trunk ops that run once a micro-batch
  llvm::DenseMap<Operation *, Program> programs;
};

} // namespace hpc
