// The choice for each layer of what it keeps in memory and what it computes or gathers again: recompute policies and levels of ZeRO by layer, a multiple-choice knapsack.
// Plain C++ in the form of a scheduling problem.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace hpc::search {

class KeepProblem {
public:
  struct Option {
    std::string name; ///< for people: "recompute=full zero=1"
    double seconds = 0;
    int64_t bytes = 0;
  };
  /// Layers with the same options; each chooses for itself.
  struct Layers {
    std::vector<Option> options;
    int64_t count = 1;
  };
  struct Solution {
    std::vector<std::vector<int64_t>> chosen; ///< by entry of `layers` and by option: how many layers take it
    double seconds = 0;
    int64_t bytes = 0;
    /// The certificate: with each byte at this price the layers together take no less than `bound` seconds, whatever they choose within the memory
    /// (Lagrange; Everett 1963). `seconds` is the optimum itself.
    double price = 0, bound = 0; ///< seconds a byte; seconds
  };

  std::vector<Layers> layers;
  int64_t memory = std::numeric_limits<int64_t>::max(); ///< bytes of all layers together

  /// Errors (internal): layers without options, a count below 1, seconds or bytes that are negative or no number.
  Status check() const;
  /// The bound at a price: the sum of the least seconds + price * bytes, less price * memory.
  double boundAt(double price) const;
  /// Errors (internal): choices that are not of all layers, more bytes than the memory, sums that are not those of the choices, a bound that is not that of
  /// its price or above the seconds.
  Status verify(const Solution &solution) const;
};

/// Exact: lists of choices none of which is beaten in both seconds and bytes, layers of one kind together, cut by the Lagrange bound. Errors: capacity,
/// where the least bytes of all layers are more than the memory (the message has them); those of check.
Expected<KeepProblem::Solution> chooseWhatIsKept(const KeepProblem &problem);

} // namespace hpc::search
