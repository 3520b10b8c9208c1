// The formulas.
#include "runtime/train/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hpc {

static constexpr std::pair<const char *, LearningRateCurve> curves[] = {{"constant", LearningRateCurve::Constant},
                                                                        {"linear", LearningRateCurve::Linear},
                                                                        {"cosine", LearningRateCurve::Cosine},
                                                                        {"polynomial", LearningRateCurve::Polynomial}};

const char *name(LearningRateCurve curve) {
  for (auto [name, known] : curves)
    if (known == curve)
      return name;
  return "?";
}

std::optional<LearningRateCurve> parseCurve(const std::string &name) {
  for (auto [known, curve] : curves)
    if (name == known)
      return curve;
  return std::nullopt;
}

double LearningRate::at(int64_t step) const {
  if (step < warmup)
    return peak * double(step + 1) / double(warmup);
  const double span = double(std::max<int64_t>(steps - warmup, 1));
  const double t = std::min(double(step - warmup) / span, 1.0);
  switch (curve) {
  case LearningRateCurve::Constant:
    return peak;
  case LearningRateCurve::Linear:
    return least + (peak - least) * (1 - t);
  case LearningRateCurve::Cosine:
    return least + (peak - least) * 0.5 * (1 + std::cos(3.14159265358979323846 * t));
  case LearningRateCurve::Polynomial:
    return least + (peak - least) * std::pow(1 - t, power);
  }
  return peak;
}

} // namespace hpc
