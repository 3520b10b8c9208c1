// The entries of a plan (Plan.h), one by one. Checks, executor, printer and counting know plans of one entry alone: each of
// them takes what planOf returns.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc::plan {

/// How the entries of a training plan are called.
inline const std::string trainEntry = "train", evaluateEntry = "evaluate";

/// The plan that one entry is: its ports, micro-batches, programs and schedules, in the order in which the whole plan has them,
/// with all buffers, weights and code. Buffers that only other entries touch have no bytes, but for those of the session. Entry 0 of a plan without entries is the plan. Needs checkEntries.
Plan planOf(const Plan &plan, size_t entry);

/// Gives the ports that an instruction loads, stores or varies with other numbers: those of the lists, by the numbers they have. -1
/// where they have none.
void renumberPorts(Instruction &instruction, const std::vector<int32_t> &inputs, const std::vector<int32_t> &outputs);

/// The number of the entry of that name; "" is the first. Errors: Usage, with the names that there are.
Expected<size_t> findEntry(const Plan &plan, const std::string &name);

/// "train, evaluate"; "" where there are none.
std::string entryNames(const Plan &plan);

/// Whether ports, programs and schedules of each entry exist, and each port and program is part of an entry.
Status checkEntries(const Plan &plan);

/// Whether readers of the plan's version read it right: without entries it has nothing that those of 2.8 would pass over.
Status checkVersion(const Plan &plan);

/// The version that a file of the plan has: the oldest whose readers read it right.
Version versionOf(const Plan &plan);

} // namespace hpc::plan
