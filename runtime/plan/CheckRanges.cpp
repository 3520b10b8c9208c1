// Ranges: accesses stay inside buffers, writes do not overlap reads of the same instruction, a gemm's result elements
// are distinct. With this and the offsets that checkStructure has seen, no instruction can touch memory outside its
// arena.
#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>

namespace hpc::plan {

namespace {

Status checkInside(const Plan &plan, const Stage &stage, const BufferAccess &access) {
  const Buffer &buffer = stage.buffers[access.ref.buffer];
  if (addSizes(access.ref.byteOffset, access.bytes) <= buffer.bytes)
    return Status::success();
  return fault(std::string(access.write ? "writes " : "reads ") + std::to_string(access.bytes) + " bytes at byte " +
               std::to_string(access.ref.byteOffset) + " of " + bufferText(stage, access.ref.buffer) + " (" +
               access.role + "), which has " + std::to_string(buffer.bytes) + "; first at " +
               coordinateText(plan, access.coordinate) + ", micro-batch " + std::to_string(access.microBatch));
}

/// In place means exactly the same bytes; an instruction that does not work element by element must not be in place at
/// all.
bool mayBeInPlace(const Action &action) {
  if (const auto *collective = std::get_if<Collective>(&action))
    return collective->kind != CollectiveKind::AllGather && collective->kind != CollectiveKind::ReduceScatter;
  return std::holds_alternative<Kernel>(action);
}

bool overlap(const BufferAccess &one, const BufferAccess &other) {
  int64_t a = one.ref.byteOffset, b = other.ref.byteOffset;
  return one.ref.buffer == other.ref.buffer && one.bytes > 0 && other.bytes > 0 && a < addSizes(b, other.bytes) &&
         b < addSizes(a, one.bytes);
}

std::string placeText(const BufferAccess &access) {
  return std::string(access.role) + " (" + std::to_string(access.bytes) + " bytes at " +
         std::to_string(access.ref.byteOffset) + ")";
}

/// The rule of README.md, "Aliasing": what is written overlaps no other operand, but for one that is read at the
/// identical place by an instruction that works element by element.
Status checkAliases(const Stage &stage, const Action &action, const std::vector<BufferAccess> &accesses) {
  for (const BufferAccess &written : accesses) {
    const BufferAccess *inPlace = nullptr;
    for (const BufferAccess &other : accesses) {
      if (!written.write || written.operand == other.operand || !overlap(written, other))
        continue;
      bool same = written.ref.byteOffset == other.ref.byteOffset && written.bytes == other.bytes &&
                  written.ref.microBatchStride == other.ref.microBatchStride;
      if (!same || other.write || !mayBeInPlace(action))
        return fault(placeText(other) + " and " + placeText(written) + " overlap in " +
                     bufferText(stage, written.ref.buffer));
      if (inPlace && inPlace->operand != other.operand)
        return fault(placeText(*inPlace) + ", " + placeText(other) + " and " + placeText(written) +
                     " are one place of " + bufferText(stage, written.ref.buffer) +
                     "; a result takes the place of one operand only");
      inPlace = &other;
    }
  }
  return Status::success();
}

/// C's elements must be distinct. Sorted by stride, each dim has to step over all that the smaller ones reach.
Status checkGemm(const Plan &plan, const Gemm &gemm) {
  int64_t ranks = plan.ranksPerStage();
  Status status;
  forEachEntry(plan, {&gemm.m, &gemm.n, &gemm.k}, [&](int64_t coordinate, int64_t microBatch) {
    int64_t m = gemm.m.at(coordinate, microBatch, ranks), n = gemm.n.at(coordinate, microBatch, ranks),
            k = gemm.k.at(coordinate, microBatch, ranks);
    auto shortLeading = [&](const char *what, const Operand &operand, int64_t rows, int64_t columns) {
      if (operand.transpose)
        std::swap(rows, columns);
      if (!status.ok() || rows <= 1 || operand.ld >= columns)
        return;
      status = fault(std::string("leading dim of ") + what + " is " + std::to_string(operand.ld) + " at " +
                     coordinateText(plan, coordinate) + ", the matrix has " + std::to_string(columns) + " columns");
    };
    shortLeading("a", gemm.a, m, k);
    if (!gemm.windows)
      shortLeading("b", gemm.b, k, n);
    shortLeading("c", gemm.c, m, n);
    std::vector<std::pair<int64_t, int64_t>> dims = {{1, n}, {gemm.c.ld, m}}; // stride, size
    for (size_t i = 0; i < gemm.batch.size(); ++i)
      dims.emplace_back(gemm.c.stride[i], gemm.batch[i]);
    for (const auto &dim : dims)
      if (dim.second == 0)
        return status.ok();
    std::sort(dims.begin(), dims.end());
    int64_t reach = 0;
    for (const auto &[stride, size] : dims) {
      if (status.ok() && size > 1 && stride <= reach)
        status = fault("elements of c share memory at " + coordinateText(plan, coordinate) + ": a dim of " +
                       std::to_string(size) + " with stride " + std::to_string(stride) + " steps inside " +
                       std::to_string(reach + 1) + " elements");
      if (size > 1)
        reach = addSizes(reach, multiplySizes(size - 1, stride));
    }
    return status.ok();
  });
  return status;
}

Status checkRangesOf(const Plan &plan, const Stage &stage, const Instruction &instruction) {
  std::vector<BufferAccess> accesses = accessesOf(plan, instruction);
  for (const BufferAccess &access : accesses)
    HPC_RETURN_IF_ERROR(checkInside(plan, stage, access));
  HPC_RETURN_IF_ERROR(checkAliases(stage, instruction.action, accesses));
  if (const auto *gemm = std::get_if<Gemm>(&instruction.action))
    return checkGemm(plan, *gemm);
  return Status::success();
}

} // namespace

Status checkRanges(const Plan &plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (size_t p = 0; p < plan.stages[s].programs.size(); ++p) {
      const std::vector<Instruction> &instructions = plan.stages[s].programs[p].instructions;
      for (size_t i = 0; i < instructions.size(); ++i)
        if (Status status = checkRangesOf(plan, plan.stages[s], instructions[i]); !status.ok())
          return status.at(instructionText(plan, int64_t(s), int64_t(p), int64_t(i)));
    }
  return Status::success();
}

} // namespace hpc::plan
