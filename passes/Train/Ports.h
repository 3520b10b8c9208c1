// Names of results of a training step that passes of this phase and the loop know each other by.
#pragma once

namespace hpc::train {

/// Of rank 0: the norm over all gradients before clipping. A step in which it is not finite changes nothing.
constexpr const char *gradientNormName = "gradient_norm";
/// Of rank 0: what hpc-append-optimizer multiplies every gradient with. It takes the result away.
constexpr const char *clipFactorName = "clip_factor";

} // namespace hpc::train
