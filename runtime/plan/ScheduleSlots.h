// How many copies a buffer needs under a schedule. A buffer that lasts from one program of a micro-batch to another has
// slots, micro-batch m lies in slot m % slots, and a slot must be free when the next micro-batch takes it.
#pragma once

#include "runtime/plan/Schedule.h"

namespace hpc::plan {

/// A program of a stage.
struct StageProgram {
  ProgramKind kind = ProgramKind::Forward;
  int32_t chunk = 0;
};

/// A buffer, or a posted transfer: begun by one program of a micro-batch and over when the last of others has run.
struct SlotSpan {
  StageProgram first;
  std::vector<StageProgram> last;
};

/// The least number of slots such that no two micro-batches are in one at once; at least 1.
int64_t slotsNeeded(const StageSchedule &schedule, const SlotSpan &span);

/// Ok where `slots` are enough, else an error that names the two micro-batches that meet in a slot.
Status checkSlots(const StageSchedule &schedule, const SlotSpan &span, int64_t slots);

/// The most micro-batches, counted once a chunk, that are between `first` and `last` at once.
int64_t peakInFlight(const StageSchedule &schedule, ProgramKind first, ProgramKind last);

/// By part (chunk k / stages of stage k mod stages): the copies of what forward leaves to backward and weight gradient; 1 where nothing does.
std::vector<int64_t> keptCopies(const PipelineSchedule &schedule, int64_t chunks);

} // namespace hpc::plan
