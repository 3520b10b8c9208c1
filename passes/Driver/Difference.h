// Whether numbers agree within a bound, and how a difference is said.
// NaN agrees with NaN, an infinity with itself and with what its type holds only just.
#pragma once

#include "compiler/Interpreter/LocalBounds.h"

namespace hpc {

struct Difference {
  double found = 0, expected = 0, bound = 0;
  int64_t flatIndex = 0;
};

/// Of the finite elements that are no masks.
double largestMagnitude(const Tensor &tensor);
std::string indexText(const std::vector<int64_t> &shape, int64_t flat);

/// "is 1.5, should be 1.25 (off by 0.25, bound 1e-06)"
std::string differenceText(const Difference &difference);

/// Finds the first element that is off by more than its bound, and how much of their bounds others take.
class Comparison {
public:
  /// Of elements of type `dtype`; true: within the bound.
  bool agree(DType dtype, double found, double expected, double bound);
  /// Of all elements that `counts` holds for (empty: of all). `bound`: by element; null: `least` for each, but masks agree relative to themselves.
  std::optional<Difference> first(const Tensor &found, const Tensor &expected, const Tensor *bound, double least = 0,
                                  const std::vector<bool> &counts = {});

  double worst = 0; ///< the largest difference as a part of its bound
};

} // namespace hpc
