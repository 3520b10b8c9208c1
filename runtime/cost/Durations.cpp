#include "runtime/cost/Durations.h"

#include "runtime/cost/CollectiveTime.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"

#include <algorithm>

namespace hpc::cost {

using namespace plan;

namespace {

/// As many bytes as the instruction reads and writes there; accesses are the widest over all coordinates.
double bytesTouched(const InstructionRun &run) {
  double bytes = 0;
  for (const BufferAccess &access : accessesOf(run.plan, run.instruction))
    bytes += double(access.bytes);
  return bytes;
}

double flopsOf(const InstructionRun &run) {
  if (const auto *kernel = std::get_if<Kernel>(&run.instruction.action))
    return double(kernel->flops);
  const auto *gemm = std::get_if<Gemm>(&run.instruction.action);
  if (!gemm)
    return 0;
  double flops = 2 * double(productOf(gemm->batch));
  for (const ByCoord *factor : {&gemm->m, &gemm->n, &gemm->k})
    flops *= double(factor->at(run.coordinate, run.microBatch, run.plan.ranksPerStage()));
  return flops;
}

} // namespace

plan::Durations durationsOf(const Machine &machine) {
  return [machine, clock = std::make_shared<CollectiveClock>(machine)](const InstructionRun &run) {
    const Action &action = run.instruction.action;
    if (const auto *collective = std::get_if<Collective>(&action))
      return clock->seconds(run, *collective);
    if (const auto *send = std::get_if<Send>(&action))
      return clock->seconds(run, *send);
    if (std::holds_alternative<Recv>(action))
      return 0.0;
    return std::max(flopsOf(run) / machine.flops(), bytesTouched(run) / machine.bytesPerSecond);
  };
}

} // namespace hpc::cost
