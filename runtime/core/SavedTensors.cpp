// Pieces are told apart by their tables: slices of one tensor that start alike are equal.
#include "runtime/core/SavedTensors.h"

#include <map>
#include <set>

namespace hpc {

/// Adds the ranks of one stage, of several with the same elements the first.
static void addPieces(const plan::Plan &plan, int64_t stage, const plan::Binding &binding, SavedTensor &tensor) {
  const int64_t ranksPerStage = plan.ranksPerStage();
  std::set<std::vector<int64_t>> seen;
  for (int64_t coordinate = 0; coordinate < ranksPerStage; ++coordinate) {
    Place place{coordinate, 0, ranksPerStage};
    std::vector<int64_t> held;
    bool isEmpty = false;
    for (size_t dim = 0; dim < binding.slice.view.size(); ++dim) {
      held.push_back(place(binding.slice.start[dim]));
      held.push_back(place(binding.slice.extent[dim]));
      isEmpty = isEmpty || held.back() == 0;
    }
    if (!isEmpty && seen.insert(held).second)
      tensor.pieces.push_back({stage * ranksPerStage + coordinate, binding.buffer,
                               SliceCopy(binding.slice, byteSize(tensor.dtype), place)});
  }
}

std::vector<SavedTensor> savedTensors(const plan::Plan &plan) {
  std::map<std::string, SavedTensor> byName;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage)
    for (const plan::Binding &binding : plan.stages[stage].bindings) {
      if (binding.saved.empty() || byName.count(binding.saved))
        continue;
      SavedTensor &tensor = byName[binding.saved];
      tensor.name = binding.saved;
      tensor.dtype = plan.stages[stage].buffers[size_t(binding.buffer)].dtype;
      tensor.shape = binding.shape;
      addPieces(plan, int64_t(stage), binding, tensor);
    }
  std::vector<SavedTensor> tensors;
  for (auto &[name, tensor] : byName)
    tensors.push_back(std::move(tensor));
  return tensors;
}

} // namespace hpc
