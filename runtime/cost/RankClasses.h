// Which ranks of a plan do the same at the same times, so that one of them is simulated for all: the coarsest division of the ranks that
// durations, skipped instructions, groups and peers do not tell apart.
#pragma once

#include "runtime/cost/InstructionTimes.h"
#include "runtime/cost/Machine.h"

namespace hpc::cost {

/// By rank: the first one of its class. Two ranks of a class have the same program, the same seconds and speed, groups with as many members
/// of each class, peers of the same class and, where ranks share processors, hosts with as many ranks of each class.
std::vector<int32_t> classesOf(const plan::Plan &plan, const Machine &machine, InstructionTimes &times);

/// The host of a rank.
inline int64_t hostOf(const Machine &machine, int64_t rank) { return machine.ranksPerHost > 0 ? rank / machine.ranksPerHost : 0; }
/// The speed of computation, as a multiple of the others'.
double speedOf(const Machine &machine, int64_t rank);
/// The index of the innermost link that joins ranks first..last.
int32_t linkLevel(const Machine &machine, int64_t first, int64_t last);

} // namespace hpc::cost
