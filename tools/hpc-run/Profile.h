// hpc-run --profile: the time of the last run by kind of instruction, against the least that the machine can need.
#pragma once

#include "runtime/backend/host/MachineSpeed.h"
#include "runtime/core/Trace.h"
#include "runtime/plan/Plan.h"

#include <string>

namespace hpc {

/// Milliseconds are a mean over the ranks of this process. The floor of an instruction is the longer of its flops and
/// its bytes over the machine's speed; for a collective its payload, once; waiting has none.
std::string describeProfile(const plan::Plan &plan, const Trace &trace, const host::MachineSpeed &speed);

} // namespace hpc
