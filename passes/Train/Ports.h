// The name of a result that only passes of this phase use; names of lasting results are in runtime/plan/StepPorts.h.
#pragma once

namespace hpc::train {

/// Rank 0: the factor by which hpc-append-optimizer multiplies every gradient. That pass removes the result.
constexpr const char *clipFactorName = "clip_factor";

} // namespace hpc::train
