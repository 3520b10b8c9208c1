// The learning rate of every step: a warm-up, then a curve to the end of the run. Computed by the loop in double and given
// to the plan as a step scalar, so that it changes without a new plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hpc {

enum class LearningRateCurve : uint8_t { Constant, Linear, Cosine, Polynomial };

/// "constant", "linear", "cosine", "polynomial", and back.
const char *name(LearningRateCurve curve);
std::optional<LearningRateCurve> parseCurve(const std::string &name);

struct LearningRate {
  double peak = 0;
  LearningRateCurve curve = LearningRateCurve::Constant;
  int64_t warmup = 0; ///< steps; in step s < warmup the rate is peak * (s + 1) / warmup
  int64_t steps = 1;  ///< the number of steps at which the curve ends; warm-up included
  double power = 2;   ///< of Polynomial
  double least = 0;   ///< the rate at the end of the curve; of all but Constant
  bool byEpoch = false; ///< warm-up, curve and its end are in epochs, and the rate changes between epochs only: `step` is then an epoch

  /// The rate in step `step`, from 0. With t = (step - warmup) / (steps - warmup), at most 1, after the warm-up it is
  /// least + (peak - least) * f. Linear: f = 1 - t. Cosine: f = (1 + cos(pi t)) / 2. Polynomial: f = (1 - t)^power.
  double at(int64_t step) const;
};

} // namespace hpc
