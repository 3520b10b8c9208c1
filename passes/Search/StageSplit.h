// The stages of a pipeline from the profile of a model's blocks: seconds and bytes as the machine and the compiler have them.
#pragma once

#include "passes/Driver/BlockProfile.h"
#include "passes/Search/StageProblem.h"

namespace hpc::search {

/// Blocks of the profile of a pipeline, the first with what is before all, the last with what is after; copies as the schedule of `options` keeps them; memory
/// `options.memory`. Errors: usage, where the schedule is a user's file or does not have that many stages and chunks.
Expected<StageProblem> stageProblemOf(const BlockProfile &profile, const Options &options);

/// A solution as --pp-split has it: "3,3,2".
std::string splitText(const StageProblem::Solution &solution);

} // namespace hpc::search
