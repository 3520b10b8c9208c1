// The names of a training step's ports: phase train of the compiler gives them, the loop fills and reads them. A plan that
// lacks one that the loop needs is refused.
#pragma once

#include <string>

namespace hpc::plan {

// Inputs that the loop fills before each step (Port::isStepScalar).
constexpr const char *learningRateName = "lr", *stepName = "step"; ///< steps count from 1
constexpr const char *updateName = "update";                       ///< as steps, without those that changed nothing
constexpr const char *seedName = "seed", *lossScaleName = "loss_scale";

/// The input that a loss compares with.
constexpr const char *labelsName = "labels";

// Outputs of rank 0.
constexpr const char *lossName = "loss";                ///< a mean over all that counts in the step
constexpr const char *validTokensName = "valid_tokens"; ///< how many labels count
/// The norm over all gradients before clipping. A step in which it is not finite changes nothing.
constexpr const char *gradientNormName = "gradient_norm";
/// An output on request is named so where it is the gradient of a parameter: "gradient/transformer.wte.weight".
inline const std::string gradientPrefix = "gradient/";

} // namespace hpc::plan
