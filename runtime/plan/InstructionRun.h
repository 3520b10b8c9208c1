// One run of an instruction, and how long it takes: by the machine (runtime/cost), or as a test says.
#pragma once

#include "runtime/plan/Plan.h"

#include <functional>

namespace hpc::plan {

/// One run of an instruction.
struct InstructionRun {
  InstructionRun(const Plan &plan, int64_t stage, const Instruction &instruction, int64_t coordinate, int64_t microBatch)
      : plan(plan), instruction(instruction), coordinate(coordinate), microBatch(microBatch), stage(stage) {}
  const Plan &plan;
  const Instruction &instruction;
  const int64_t coordinate, microBatch, stage;
};

/// In seconds. Of a collective or a Send: alone on its links, from when all of its ranks have come to it and what is before it in its
/// queue is done, until it is done. Recv and Wait take nothing of their own. Of what stays on a rank it depends on the coordinate and the
/// micro-batch only by the tables of the action, those of kernels apart.
using Durations = std::function<double(const InstructionRun &)>;

} // namespace hpc::plan
