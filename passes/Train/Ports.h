// Names of results of a training step that passes of this phase and the loop know each other by.
#pragma once

namespace hpc::train {

/// Of rank 0: the loss, a mean over all that counts in the step.
constexpr const char *lossName = "loss";
/// Of rank 0: how many labels count.
constexpr const char *validTokensName = "valid_tokens";
/// The input that a loss compares with.
constexpr const char *labelsName = "labels";
/// Of rank 0: the norm over all gradients before clipping. A step in which it is not finite changes nothing.
constexpr const char *gradientNormName = "gradient_norm";
/// Of rank 0: what hpc-append-optimizer multiplies every gradient with. It takes the result away.
constexpr const char *clipFactorName = "clip_factor";

} // namespace hpc::train
