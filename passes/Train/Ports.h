// The name of a result that passes of this phase know each other by; those that stay are in runtime/plan/StepPorts.h.
#pragma once

namespace hpc::train {

/// Of rank 0: what hpc-append-optimizer multiplies every gradient with. It takes the result away.
constexpr const char *clipFactorName = "clip_factor";

} // namespace hpc::train
