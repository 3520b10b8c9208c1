// What an instruction touches: the one place that knows, per instruction, which bytes are read and written. All checks
// of memory (ranges, liveness, transfers in flight) read this list and never look into instructions themselves.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace hpc::plan {

/// Bytes ref.byteOffset .. ref.byteOffset+bytes-1 of a buffer, the widest over all coordinates and micro-batches: with a stride
/// (Ref::microBatchStride) from the place of the first micro-batch to the end of that of the last.
/// `bytes` is `saturated` (CheckedMath.h) where it would overflow.
struct BufferAccess {
  Ref ref;
  int64_t bytes = 0;
  bool write = false;
  const char *role = "";                  ///< "a", "dst", "arg", ...
  int64_t coordinate = 0, microBatch = 0; ///< where it is the widest
  int32_t operand = 0;                    ///< which of the instruction's operands; one that is read and written has two
  const ByCoord *when = nullptr;          ///< only where it is not 0 (of the instruction; its own `when` apart)
};

constexpr int32_t operandB = 1; ///< BufferAccess::operand of a product's B

/// Reads come before writes. Needs a plan that passed checkStructure, or, for one instruction, whose extents are >= 0.
std::vector<BufferAccess> accessesOf(const Plan &plan, const Instruction &instruction);

/// All places that an action names, by BufferAccess::operand.
std::vector<Ref *> placesOf(Action &action);
std::vector<const Ref *> placesOf(const Action &action);

/// The request that an instruction posts, or -1.
int32_t postedRequest(const Action &action);

/// Calls visit(coordinate, microBatch) once for every entry in which the tables may differ; it stops when visit is
/// false.
template <typename Visit>
bool forEachEntry(const Plan &plan, std::initializer_list<const ByCoord *> tables, Visit visit) {
  size_t entries = 1;
  for (const ByCoord *table : tables)
    entries = table->values.size() > entries ? table->values.size() : entries;
  int64_t ranks = plan.ranksPerStage();
  for (size_t i = 0; i < entries; ++i)
    if (!visit(int64_t(i) % ranks, int64_t(i) / ranks))
      return false;
  return true;
}

} // namespace hpc::plan
