// The tensors of a checkpoint: parameters under their names in the model, frozen ones and those that the loss does not reach too, and
// states. The list follows from the plan alone, so all processes have the same.
#pragma once

#include "runtime/core/Session.h"

#include <optional>

namespace hpc {

struct CheckpointTensor {
  std::vector<std::string> names; ///< in files; a tied tensor is written under each of its names
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  int64_t rank = 0;            ///< its process writes the tensor
  std::optional<size_t> saved; ///< in Session::saved()
  int32_t weight = -1;         ///< else of the plan, which only reads it
};

struct CheckpointContent {
  std::vector<CheckpointTensor> model;  ///< trained ones by name, then those that are only read
  std::vector<CheckpointTensor> states; ///< by name
};

CheckpointContent checkpointContent(const plan::Plan &plan, const Session &session);

} // namespace hpc
