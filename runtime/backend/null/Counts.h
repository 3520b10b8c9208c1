// What the ranks of a plan do in one step (without outputs on request), counted without doing it: the executor's own loop over a device and a
// communicator that move nothing. No weights, no inputs, no memory, no threads, so the world may be of any size.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace hpc::null {

struct Traffic {
  int64_t calls = 0;
  int64_t bytes = 0; ///< payload: of a collective the whole array, before a scatter or after a gather
  bool operator==(const Traffic &other) const { return calls == other.calls && bytes == other.bytes; }
};

/// One rank in one step.
struct Counts {
  int64_t flops = 0; ///< of matrix products: 2*m*n*k each, and of those inside kernels (attention)
  int64_t gemms = 0, kernels = 0, copies = 0, loads = 0, stores = 0, waits = 0;
  int64_t copiedBytes = 0;
  /// By kind and axes: {"all_reduce", "dp,tp"}. Sends and receives under {"send", ""} and {"recv", ""}.
  std::map<std::pair<std::string, std::string>, Traffic> traffic;

  bool operator==(const Counts &other) const;
};

/// By rank. The plan must have passed plan::checkPlan; of one with entries, give the plan of one (plan::planOf).
Expected<std::vector<Counts>> countRanks(const plan::Plan &plan);

} // namespace hpc::null
