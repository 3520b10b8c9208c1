// What a schedule must run: the computing programs of all stages and what each reads of another. Plain data: whoever
// has a program (the stage phase) writes it down, and for the usual pipelines there are two builders.
//
// A pipeline of p stages with v chunks has p*v parts, and part k is chunk k / p of stage k % p: stage s owns the chunks
// s, s + p, ... So what leaves the last stage goes on in the next chunk of the first.
#pragma once

#include "runtime/plan/Schedule.h"

namespace hpc::plan {

/// A program of the pipeline: which one, and where.
struct ProgramPlace {
  ProgramKind kind = ProgramKind::Forward;
  int32_t stage = 0, chunk = 0;

  bool operator==(const ProgramPlace &other) const {
    return kind == other.kind && stage == other.stage && chunk == other.chunk;
  }
};

/// `after` reads what `before` makes: for each micro-batch its own, or all of them where one of the two runs once a
/// step. Where the stages differ it is a message a micro-batch. What runs once a step reads sums that micro-batch 0
/// begins and the others add to.
struct Dependency {
  ProgramPlace before, after;
  bool crosses() const { return before.stage != after.stage; }
};

struct Pipeline {
  int64_t stages = 1, chunks = 1, microBatches = 1;
  std::vector<ProgramPlace> programs; ///< that compute; receives and drains follow from the dependencies
  std::vector<Dependency> dependencies;

  int64_t parts() const { return stages * chunks; }
  int64_t partOf(const ProgramPlace &place) const { return place.chunk * stages + place.stage; }
  ProgramPlace placeOf(ProgramKind kind, int64_t part) const {
    return {kind, int32_t(part % stages), int32_t(part / stages)};
  }
};

/// F(part k) feeds F(part k + 1).
Pipeline inferencePipeline(int64_t stages, int64_t chunks, int64_t microBatches);

/// As above; F feeds B of its part, B(part k + 1) feeds B(part k), and U of a stage follows all else of it.
/// `splitsBackward`: weight gradients are programs of their own, W, which follow their B; else B has them.
Pipeline trainingPipeline(int64_t stages, int64_t chunks, int64_t microBatches, bool splitsBackward);

} // namespace hpc::plan
