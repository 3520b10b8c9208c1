// How long each instruction of a plan takes on each rank. A duration is computed once for all runs that do not differ, never once a
// micro-batch.
#pragma once

#include "runtime/plan/InstructionRun.h"

namespace hpc::cost {

/// Ranks of a stage in groups over some axes.
struct Grouping {
  std::vector<std::string> axes;
  std::vector<int32_t> groupOf;     ///< by coordinate
  std::vector<int64_t> first, last; ///< by group: its least and greatest coordinate
};

/// Times of one instruction.
struct InstructionTime {
  std::vector<double> seconds = {0};   ///< the different ones
  std::vector<int32_t> variants = {0}; ///< which of them: one for all, by coordinate, or by [micro-batch][coordinate]
  double at(int64_t coordinate, int64_t microBatch, int64_t ranksPerStage) const {
    return seconds[size_t(variantAt(coordinate, microBatch, ranksPerStage))];
  }
  int32_t variantAt(int64_t coordinate, int64_t microBatch, int64_t ranksPerStage) const {
    const size_t size = variants.size();
    return variants[size == 1 ? 0 : size == size_t(ranksPerStage) ? size_t(coordinate) : size_t(microBatch * ranksPerStage + coordinate)];
  }
};

class InstructionTimes {
public:
  InstructionTimes(const plan::Plan &plan, const plan::Durations &durations);
  const InstructionTime &of(int64_t stage, int64_t program, int64_t instruction) const {
    return times[size_t(stage)][size_t(program)][size_t(instruction)];
  }
  /// The index of the grouping over these axes.
  int32_t groupingOf(const std::vector<std::string> &axes);
  const std::vector<Grouping> &groupings() const { return groups; }

private:
  InstructionTime timeOf(int64_t stage, const plan::Instruction &instruction);

  const plan::Plan &plan;
  const plan::Durations &durations;
  std::vector<Grouping> groups;
  std::vector<std::vector<std::vector<InstructionTime>>> times; ///< by stage, program and instruction
};

} // namespace hpc::cost
