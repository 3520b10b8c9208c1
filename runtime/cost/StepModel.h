// A plan as its simulation with a clock needs it: of each program its communication and the stretches of computation in between, of
// each simulated rank what these take.
#pragma once

#include "runtime/cost/RankClasses.h"

#include <string>
#include <vector>

namespace hpc::cost {

/// Classes of what a step spends its time with; those from `Part::Collectives` on are kinds of collectives over axes.
enum Part : int32_t { Products, Kernels, Copies, Messages, Sharing, Collectives };

/// The work of a rank in a stretch.
struct Work {
  double seconds[3] = {0, 0, 0}; ///< products, kernels, all else
  double flops = 0;              ///< of products
  double repeatedFlops = 0;      ///< of these, computed again for gradients
  double ideal = 0;              ///< seconds of the others at the peak of their types
  double total() const { return seconds[Products] + seconds[Kernels] + seconds[Copies]; }
  Work &operator+=(const Work &other);
};

enum class TimedKind : uint8_t { Work, Collective, Send, Recv, Wait };

struct TimedOp {
  TimedKind kind = TimedKind::Work;
  int32_t instruction = 0, end = 0;          ///< `end`: of a stretch
  const plan::ByCoord *when = nullptr;       ///< null: always
  const plan::Instruction *action = nullptr; ///< of communication
  int32_t grouping = -1;                     ///< of a collective
  int32_t part = 0;                          ///< of a collective or message
  double bytes = 0;                          ///< that a rank receives of a collective by a ring, the mean; or that a Send sends
  std::vector<int32_t> varying;              ///< instructions of a stretch that differ between micro-batches
};

/// A rank that is simulated, for all of its class.
struct SimulatedRank {
  int32_t rank = 0;
  int64_t stage = 0, coordinate = 0;
  double weight = 1;       ///< ranks of its class
  double weightOnHost = 1; ///< of these on its host
  int64_t host = 0;
  double speed = 1;
  std::vector<int32_t> groups;          ///< by grouping: a number of its group among all, -1 where the stage does not have it
  std::vector<std::vector<Work>> fixed; ///< by program and op: of a stretch what every micro-batch has
};

class StepModel {
public:
  /// `durations` must outlive it. `everyRank`: none stands for others.
  StepModel(const plan::Plan &plan, const Machine &machine, const plan::Durations &durations, bool everyRank);

  const plan::Plan &plan;
  const Machine &machine;
  int64_t ranksPerStage;
  std::vector<std::string> parts;                         ///< names by Part
  std::vector<std::vector<std::vector<TimedOp>>> programs; ///< by stage and program
  std::vector<SimulatedRank> simulated;
  std::vector<int32_t> simulatedBy; ///< by rank
  std::vector<int32_t> groupSizes;  ///< by number of a group: its simulated members

  /// The work of a rank's stretch in a micro-batch.
  Work workOf(const SimulatedRank &rank, int32_t program, int32_t op, int64_t microBatch) const;
  Work workOfInstruction(const SimulatedRank &rank, int32_t program, int32_t instruction, int64_t microBatch) const;
  double secondsOf(const SimulatedRank &rank, int32_t program, int32_t instruction, int64_t microBatch) const {
    return times.of(rank.stage, program, instruction).at(rank.coordinate, microBatch, ranksPerStage);
  }
  /// The link of a collective, which joins the group of the rank.
  int32_t levelOf(const SimulatedRank &rank, int32_t grouping) const;
  bool isOn(const plan::ByCoord *when, const SimulatedRank &rank, int64_t microBatch) const {
    return !when || when->at(rank.coordinate, microBatch, ranksPerStage) != 0;
  }

private:
  void buildPrograms();
  void buildRanks(bool everyRank);
  void addGroups();
  int32_t partOf(const plan::Collective &collective);

  InstructionTimes times;
};

/// A part of a computation is of products, of kernels or of all else.
Part partOf(const plan::Action &action);
/// Operations of a product, or of the products inside a kernel, in one run.
double productFlops(const plan::InstructionRun &run);
/// The type of the operands of these products.
DType productType(const plan::Plan &plan, int64_t stage, const plan::Action &action);

} // namespace hpc::cost
