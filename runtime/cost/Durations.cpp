#include "runtime/cost/Durations.h"

#include "runtime/cost/CollectiveTime.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"

#include <algorithm>

namespace hpc::cost {

using namespace plan;

namespace {

double bytesOf(const InstructionRun &run, bool writes) {
  double bytes = 0;
  for (const BufferAccess &access : accessesOf(run.plan, run.instruction))
    if (access.write == writes && (!access.when || access.when->at(run.coordinate, run.microBatch, run.plan.ranksPerStage()) != 0))
      bytes += double(access.bytes);
  return bytes;
}

/// As many bytes as the instruction reads and writes there; accesses are the widest over all coordinates.
double bytesTouched(const InstructionRun &run) {
  const double read = bytesOf(run, false), written = bytesOf(run, true);
  if (std::holds_alternative<LoadInput>(run.instruction.action) || std::holds_alternative<StoreOutput>(run.instruction.action))
    return 2 * (read + written); // the other side is an array of the caller's
  const auto *kernel = std::get_if<Kernel>(&run.instruction.action);
  if (!kernel || kernel->operations == 0)
    return read + written;
  // Of a table only some rows are read: no more than two numbers of 4 bytes for each operation, or four for each that is written.
  return written + std::min(read, std::max(8 * double(kernel->operations), 4 * written));
}

double productSeconds(const Machine &machine, const InstructionRun &run, const Gemm &gemm) {
  auto at = [&](const ByCoord &factor) { return double(factor.at(run.coordinate, run.microBatch, run.plan.ranksPerStage())); };
  return double(productOf(gemm.batch)) * machine.productSeconds(gemm.a.dtype, at(gemm.m), at(gemm.n), at(gemm.k));
}

/// The operands of the products in a kernel: the type of its first argument.
DType typeOf(const InstructionRun &run, const Kernel &kernel) {
  return kernel.args.empty() ? DType::F32 : run.plan.stages[size_t(run.stage)].buffers[size_t(kernel.args.front().place.buffer)].dtype;
}

/// Vector code computes all of a kernel on a host; on a device the products in it run on its matrix units.
double operationSeconds(const Machine &machine, const InstructionRun &run, const Kernel &kernel) {
  const bool isHost = machine.cores > 0;
  if (kernel.flops > 0 && !isHost)
    return double(kernel.flops) / machine.flops(typeOf(run, kernel));
  return machine.elementsPerSecond > 0 ? double(kernel.operations) / machine.elementsPerSecond : double(kernel.flops) / machine.flops();
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
    if (std::holds_alternative<Wait>(action))
      return 0.0;
    double seconds = bytesTouched(run) / machine.bytesPerSecond;
    if (const auto *gemm = std::get_if<Gemm>(&action))
      seconds = std::max(seconds, productSeconds(machine, run, *gemm));
    if (const auto *kernel = std::get_if<Kernel>(&action))
      seconds = std::max(seconds, operationSeconds(machine, run, *kernel));
    return seconds + machine.launch;
  };
}

} // namespace hpc::cost
