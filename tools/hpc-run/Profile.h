// hpc-run --profile: where the time of the last run went, by kind of instruction, against what the machine can do at best.
#pragma once

#include "runtime/backend/host/MachineSpeed.h"
#include "runtime/core/Trace.h"
#include "runtime/plan/Plan.h"

#include <string>

namespace hpc {

/// Milliseconds are a mean over the ranks of this process. The floor of an instruction is the longer of its flops and its
/// bytes over the machine's speed; of a collective its payload, once; waiting has none.
std::string describeProfile(const plan::Plan &plan, const Trace &trace, const host::MachineSpeed &speed);

} // namespace hpc
