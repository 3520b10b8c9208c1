#include "runtime/train/ReadAhead.h"

#include <utility>

namespace hpc {

Status ReadAhead::take(int64_t step, std::vector<Array> &inputs) {
  auto fill = [data = data, count = inputs.size()](int64_t step) {
    Filled filled{Status::success(), std::vector<Array>(count)};
    filled.status = data->fill(step, filled.inputs);
    return filled;
  };
  Filled filled = next.valid() && coming == step ? next.get() : fill(step);
  HPC_RETURN_IF_ERROR(filled.status);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!filled.inputs[i].data.empty())
      inputs[i] = std::move(filled.inputs[i]);
  coming = step + 1;
  next = std::async(std::launch::async, fill, coming);
  return Status::success();
}

} // namespace hpc
