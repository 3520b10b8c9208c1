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

std::string differenceText(const Difference &difference) {
  char text[160];
  std::snprintf(text, sizeof(text), "is %.9g, should be %.9g (off by %.3g, bound %.3g)", printed(difference.found),
                printed(difference.expected), std::abs(difference.found - difference.expected), printed(difference.bound));
  return text;
}

bool Comparison::agree(DType dtype, double found, double expected, double bound) {
  if (found == expected || std::isinf(bound) || (std::isnan(found) && std::isnan(expected)))
    return true;
  if (std::isnan(found) || std::isnan(expected))
    return false;
  if (std::isinf(found) || std::isinf(expected)) { // a number at the end of its type
    double finite = std::isinf(found) ? expected : found, infinite = std::isinf(found) ? found : expected;
    return std::isfinite(finite) && std::isinf(roundTo(dtype, finite + std::copysign(bound, infinite)));
  }
  double by = std::abs(found - expected);
  if (!(by <= bound))
    return false;
  worst = std::max(worst, by / bound);
  return true;
}

std::optional<Difference> Comparison::first(const Tensor &found, const Tensor &expected, const Tensor *bound, double least,
                                            const std::vector<bool> &counts) {
  for (int64_t i = 0; i < expected.size(); ++i) {
    double is = found.number(i), should = expected.number(i), most = bound ? bound->floats[size_t(i)] : least;
    if (!bound && least > 0 && std::abs(should) >= maskMagnitude)
      most = std::max(most, 8 * epsilonOf(DType::F32) * std::abs(should));
    if (is != should && (counts.empty() || counts[size_t(i)]) && !agree(found.dtype, is, should, most))
      return Difference{is, should, most, i};
  }
  return std::nullopt;
}

} // namespace hpc
