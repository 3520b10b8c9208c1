// The first of the plan's checks: every index, size, table, slice and enum of a plan makes sense by itself. All other
// checks, the printer and the executor rely on it; the reader runs it on every file.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc::plan {

/// What a plan may be at most. They bound what a reader allocates, not what the project can do.
constexpr int64_t maxRanks = 65536;
constexpr int64_t maxMicroBatches = 65536;
constexpr int64_t maxSlots = 65536;
constexpr int64_t maxDims = 32;
constexpr int64_t maxBytes = int64_t(1) << 46; ///< of an arena, a buffer, a tensor
constexpr int64_t maxRequests = 1 << 20;
constexpr int64_t maxChannel = (1 << 20) - 1;
constexpr int64_t maxChunks = 65536;
constexpr int64_t maxEntries = 16;
constexpr int64_t maxThreads = 1024;        ///< of a block
constexpr int64_t maxSharedBytes = 1 << 20; ///< of a block
constexpr int64_t alignment = 64;           ///< of offsets and slot strides

/// An error of kind Plan that names the place, the value and what it should be.
Status checkStructure(const Plan &plan);

/// Parts of it, by subject. `elements` of the global tensor; the slice's tables may have 1 or R entries, and R*M where
/// `byMicroBatch`.
Status checkSlice(const Plan &plan, const Slice &slice, int64_t elements, bool byMicroBatch);
Status checkAttention(const Stage &stage, const Kernel &kernel); ///< the kernel has one, and its arguments passed
Status checkEpilogue(const Stage &stage, const Kernel &kernel);  ///< likewise
Status checkInstruction(const Plan &plan, const Stage &stage, const Instruction &instruction);
/// Whether it may still run when it has been issued, until a Wait completes it.
bool isPosted(const Action &action);
/// Of a table that may not vary by step, and of one that may: the bounds hold for every value of the step scalar.
Status checkTable(const Plan &plan, const ByCoord &table, const char *what, int64_t least, int64_t most);
Status checkVaryingTable(const Plan &plan, const ByCoord &table, const char *what, int64_t least, int64_t most);

} // namespace hpc::plan
