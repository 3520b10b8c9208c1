// What would fit where a plan does not: a few other ways to cut and to recompute, tried, the cheapest first.
#pragma once

#include "passes/Driver/BlockProfile.h"

namespace hpc {

/// Most ops of a program whose proposals are compiled.
constexpr int64_t compiledProposals = 10000;

/// "--recompute=auto (7.81 GiB); ...": up to three ways in which a rank takes no more than `options.memory`, with what
/// it takes, cheapest first; those that need more ranks say how many. "" where none of those that are tried fits.
/// `trials` are of a program that has not been through phase annotate; `given` is the try with `options` themselves, which
/// does not fit. `blocks`: of the same program, where it is large and repeats; what is proposed then follows from profiles (ProfileEstimate.h), with a
/// hundredth of the memory to spare, and says "about". Null: each proposal was compiled.
std::string cheapestThatFit(Trials &trials, BlockProfiler *blocks, const Options &options, const Trial &given);

} // namespace hpc
