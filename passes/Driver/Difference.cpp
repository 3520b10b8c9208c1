// Comparisons of elements and tensors.
#include "passes/Driver/Difference.h"

#include "runtime/base/NumberText.h"

#include <cmath>

namespace hpc {

double largestMagnitude(const Tensor &tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (double magnitude = std::abs(tensor.number(i)); std::isfinite(magnitude) && magnitude < maskMagnitude)
      largest = std::max(largest, magnitude);
  return largest;
}

std::string indexText(const std::vector<int64_t> &shape, int64_t flat) {
  std::vector<std::string> digits(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; flat /= shape[dim])
    digits[dim] = std::to_string(flat % shape[dim]);
  return llvm::join(digits, ", ");
}

std::string differenceText(double found, double expected, double bound) {
  char text[160];
  std::snprintf(text, sizeof(text), "is %.9g, should be %.9g (off by %.3g, bound %.3g)", printed(found),
                printed(expected), std::abs(found - expected), printed(bound));
  return text;
}

bool agree(double found, double expected, double bound) {
  if (std::isinf(bound))
    return true;
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found))
    return found == expected;
  if (std::abs(expected) >= maskMagnitude)
    bound = 8 * epsilonOf(DType::F32) * std::abs(expected);
  return std::abs(found - expected) <= bound;
}

std::optional<Difference> firstDifference(const Tensor &found, const Tensor &expected, double bound, double &worst) {
  double furthest = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    double is = found.number(i), should = expected.number(i);
    if (is == should)
      continue;
    if (!agree(is, should, bound))
      return Difference{indexText(expected.shape, i), "", is, should, bound, i};
    if (std::isfinite(is) && std::isfinite(should) && std::abs(should) < maskMagnitude)
      furthest = std::max(furthest, std::abs(is - should));
  }
  if (furthest > 0)
    worst = std::max(worst, furthest / std::max(largestMagnitude(expected), 1e-300));
  return std::nullopt;
}

} // namespace hpc
