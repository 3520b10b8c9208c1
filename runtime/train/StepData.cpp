// The first step of an epoch is found by halves, since an epoch need not be a whole number of steps.
#include "runtime/train/StepData.h"

#include <algorithm>

namespace hpc {

int64_t StepData::batchOf(int64_t step) const {
  const int64_t epoch = epochOf(step);
  int64_t first = std::max<int64_t>(step - count(), 0), last = step;
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (epochOf(middle) < epoch)
      first = middle + 1;
    else
      last = middle;
  }
  return step - first;
}

} // namespace hpc
