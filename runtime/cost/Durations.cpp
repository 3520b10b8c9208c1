#include "runtime/cost/Durations.h"

#include "runtime/cost/CollectiveTime.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"

#include <algorithm>

namespace hpc::cost {

using namespace plan;

namespace {

/// Bytes by where they come from.
struct Bytes {
  double memory = 0, cache = 0;
  double all() const { return memory + cache; }
};

/// A buffer that outlives a program was last used long ago, so it is in the cache where everything of the rank is; what does not is there where the
/// instruction alone does not overfill it.
bool isCached(const Machine &machine, const Stage &stage, const Buffer &buffer, double ofProgram) {
  if (buffer.lifetime != Lifetime::Program)
    return stage.sessionBytes + stage.workBytes <= machine.cacheBytes;
  return ofProgram <= double(machine.cacheBytes);
}

Bytes bytesOf(const Machine &machine, const InstructionRun &run, bool writes) {
  const Stage &stage = run.plan.stages[size_t(run.stage)];
  std::vector<BufferAccess> accesses = accessesOf(run.plan, run.instruction);
  double ofProgram = 0;
  for (const BufferAccess &access : accesses)
    if (stage.buffers[size_t(access.ref.buffer)].lifetime == Lifetime::Program)
      ofProgram += double(access.bytes);
  Bytes bytes;
  for (const BufferAccess &access : accesses)
    if (access.write == writes && (!access.when || access.when->at(run.coordinate, run.microBatch, run.plan.ranksPerStage()) != 0))
      (isCached(machine, stage, stage.buffers[size_t(access.ref.buffer)], ofProgram) ? bytes.cache : bytes.memory) += double(access.bytes);
  return bytes;
}

/// As many bytes as the instruction reads and writes there; accesses are the widest over all coordinates.
Bytes bytesTouched(const Machine &machine, const InstructionRun &run) {
  const Bytes read = bytesOf(machine, run, false), written = bytesOf(machine, run, true);
  Bytes bytes = {read.memory + written.memory, read.cache + written.cache};
  if (std::holds_alternative<LoadInput>(run.instruction.action) || std::holds_alternative<StoreOutput>(run.instruction.action))
    bytes.memory += bytes.all(); // the other side is an array of the caller's
  const auto *kernel = std::get_if<Kernel>(&run.instruction.action);
  if (!kernel || kernel->operations == 0)
    return bytes;
  // Only some rows of a table are read: no more than two numbers of 4 bytes for each operation, or four for each that is written.
  const double most = std::max(8 * double(kernel->operations), 4 * written.all()), share = read.all() > most ? most / read.all() : 1;
  return {share * read.memory + written.memory, share * read.cache + written.cache};
}

double transferSeconds(const Machine &machine, const Bytes &bytes) {
  return bytes.memory / machine.bytesPerSecond + (machine.cacheBytes > 0 ? bytes.cache / machine.cacheBytesPerSecond : 0);
}

double productSeconds(const Machine &machine, const InstructionRun &run, const Gemm &gemm) {
  auto at = [&](const ByCoord &factor) {
    constexpr int64_t line = 16; // of a tile or vector of a processor, which computes it whole where there are more than a few
    const int64_t extent = factor.at(run.coordinate, run.microBatch, run.plan.ranksPerStage());
    return double(machine.cores > 0 && extent > line / 2 ? (extent + line - 1) / line * line : extent);
  };
  return double(productOf(gemm.batch)) * machine.productSeconds(gemm.a.dtype, at(gemm.m), at(gemm.n), at(gemm.k));
}

/// The operands of the products in a kernel: the type of its first argument.
DType typeOf(const InstructionRun &run, const Kernel &kernel) {
  return kernel.args.empty() ? DType::F32 : run.plan.stages[size_t(run.stage)].buffers[size_t(kernel.args.front().place.buffer)].dtype;
}

/// Vector code computes all of a kernel on a host; on a device the products in it run on its matrix units.
double operationSeconds(const Machine &machine, const InstructionRun &run, const Kernel &kernel) {
  const bool isHost = machine.cores > 0;
  if (kernel.flops > 0 && !isHost) {
    // As products whose smallest size is the channels of a head, which hosts' plans do not state: 128 is the most usual.
    const double head = kernel.attention ? double(kernel.attention->depth) : 128;
    return double(kernel.flops) / (2 * head * head * head) * machine.productSeconds(typeOf(run, kernel), head, head, head);
  }
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
    const Bytes bytes = bytesTouched(machine, run);
    double seconds = transferSeconds(machine, bytes);
    if (const auto *gemm = std::get_if<Gemm>(&action)) {
      const double operations = productSeconds(machine, run, *gemm);
      // A processor fetches panels and multiplies them in turns.
      seconds = machine.cores > 0 && machine.cacheBytes > 0 ? operations + bytes.memory / machine.bytesPerSecond : std::max(seconds, operations);
    }
    if (const auto *kernel = std::get_if<Kernel>(&action))
      seconds = std::max(seconds, operationSeconds(machine, run, *kernel));
    return seconds + machine.launch;
  };
}

} // namespace hpc::cost
