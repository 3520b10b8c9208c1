// Where two tensors first differ by more than a bound, and how that is said.
// NaN agrees with NaN, an infinity with itself; masks (beyond maskMagnitude) agree relative to themselves.
#pragma once

#include "compiler/Interpreter/RunningError.h"

namespace hpc {

struct Difference {
  std::string index; ///< "0, 3, 17"
  std::string rank;  ///< "tp=1", "" when it is nobody's
  double found = 0, expected = 0, bound = 0;
  int64_t flatIndex = 0;
};

/// Of the finite elements that are no masks.
double largestMagnitude(const Tensor &tensor);
std::string indexText(const std::vector<int64_t> &shape, int64_t flat);

/// "is 1.5, should be 1.25 (off by 0.25, bound 1e-06)"
std::string differenceText(double found, double expected, double bound);

/// Whether two numbers agree within a bound. An infinite bound allows everything.
bool agree(double found, double expected, double bound);
/// The first element that differs by more than `bound` (of integers too: theirs is 0 as a rule). `worst` grows to the largest difference
/// relative to the largest magnitude.
std::optional<Difference> firstDifference(const Tensor &found, const Tensor &expected, double bound, double &worst);

} // namespace hpc
