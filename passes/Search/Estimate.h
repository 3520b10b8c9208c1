// Time and memory of a candidate from the profile of its blocks, and lower bounds of them from profiles of others.
#pragma once

#include "passes/Driver/BlockProfile.h"
#include "passes/Search/Bounds.h"
#include "passes/Search/Candidates.h"

namespace hpc::search {

struct Estimate {
  double seconds = 0;
  int64_t memory = 0; ///< bytes of the fullest rank
  double idle = 0;    ///< share of all ranks' time, in a pipeline
};

/// A profile with the candidate that it was made for. Candidates that differ in stages, chunks and schedule alone share it (one stage and
/// several apart, as zb-h1 and others).
struct Profiled {
  Candidate candidate;
  BlockProfile profile;
  BlockShare whole; ///< profile.whole()
};

/// The candidate that stands for all that share a profile.
Candidate profiledCandidate(Candidate candidate);
/// Whether `profiled`, such a candidate, stands for another one, recomputation apart.
bool standsFor(const Candidate &profiled, const Candidate &other);

/// Schedules by their closed forms (runtime/plan/ScheduleKinds.h), parts as even as blocks allow; nothing overlaps but what the profile's programs
/// hide themselves. --recompute=auto is not estimated by its own profile: see estimateAuto.
Estimate estimateOf(const Candidate &candidate, const BlockProfile &profile);

/// --recompute=auto between two others of the same degrees: what `all` (which keeps everything) takes too much of `limit` is computed
/// again, at the price that `none` (which keeps nothing) pays for it.
Estimate estimateAuto(const Estimate &all, const Estimate &none, int64_t limit);

/// Seconds and memory that `candidate` does not go below, by a profile of another one: more ranks make a block faster by no more than
/// their number, and smaller micro-batches make a row no faster. Zeros where the profile says nothing about the candidate.
Estimate boundBy(const Profiled &profiled, const Candidate &candidate, const Work &work, int64_t batch);

} // namespace hpc::search
