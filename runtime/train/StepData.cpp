// The first step of an epoch is found by halves, since an epoch need not be a whole number of steps.
#include "runtime/train/StepData.h"

#include <algorithm>

namespace hpc {

/// The first of the steps `first` to `last` that is of `epoch` or a later one; `last` is.
static int64_t firstStepOf(const StepData &data, int64_t epoch, int64_t first, int64_t last) {
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (data.epochOf(middle) < epoch)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

int64_t StepData::batchOf(int64_t step) const {
  return step - firstStepOf(*this, epochOf(step), std::max<int64_t>(step - count(), 0), step);
}

int64_t StepData::stepsOf(int64_t epochs) const {
  int64_t last = epochs * count();
  while (epochOf(last) < epochs) // steps before a checkpoint may have had fewer rows
    last += count();
  return firstStepOf(*this, epochs, 0, last);
}

} // namespace hpc
