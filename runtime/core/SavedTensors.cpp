// Pieces are told apart by their tables: slices of one tensor that start alike are equal.
#include "runtime/core/SavedTensors.h"

#include <algorithm>
#include <map>

namespace hpc {

/// Adds the ranks of one stage.
static void addPieces(const plan::Plan &plan, int64_t stage, const plan::Binding &binding, SavedTensor &tensor) {
  const int64_t ranksPerStage = plan.ranksPerStage();
  std::map<std::vector<int64_t>, size_t> seen; // pieces
  for (int64_t coordinate = 0; coordinate < ranksPerStage; ++coordinate) {
    Place place{coordinate, 0, ranksPerStage};
    std::vector<int64_t> held;
    bool isEmpty = false;
    for (size_t dim = 0; dim < binding.slice.view.size(); ++dim) {
      held.push_back(place(binding.slice.start[dim]));
      held.push_back(place(binding.slice.extent[dim]));
      isEmpty = isEmpty || held.back() == 0;
    }
    if (isEmpty)
      continue;
    auto [known, isNew] = seen.try_emplace(held, tensor.pieces.size());
    if (isNew)
      tensor.pieces.push_back({{}, binding.buffer, SliceCopy(binding.slice, byteSize(tensor.dtype), place)});
    tensor.pieces[known->second].holders.push_back(stage * ranksPerStage + coordinate);
  }
}

int64_t SavedTensor::Piece::sourceFor(int64_t rank) const {
  return *std::min_element(holders.begin(), holders.end(),
                           [&](int64_t a, int64_t b) { return std::abs(a - rank) < std::abs(b - rank); });
}

/// The largest tensor first, each to the holder with the fewest bytes until then. A few candidates are enough to spread the work, and keep the
/// number of pairs of ranks that talk small.
static void chooseOwners(std::vector<SavedTensor> &tensors) {
  constexpr size_t mostCandidates = 8;
  std::vector<std::pair<int64_t, size_t>> order; // -bytes, index
  for (size_t i = 0; i < tensors.size(); ++i)
    order.push_back({-checkedBytes(tensors[i].dtype, tensors[i].shape).value_or(0), i});
  std::sort(order.begin(), order.end());
  std::map<int64_t, int64_t> load; // bytes, by rank
  for (auto [bytes, index] : order) {
    SavedTensor &tensor = tensors[index];
    std::vector<int64_t> holders;
    for (const SavedTensor::Piece &piece : tensor.pieces)
      holders.insert(holders.end(), piece.holders.begin(), piece.holders.end());
    std::sort(holders.begin(), holders.end());
    const size_t stride = (holders.size() + mostCandidates - 1) / mostCandidates;
    for (size_t i = 0; i < holders.size(); i += stride)
      if (i == 0 || load[holders[i]] < load[tensor.owner])
        tensor.owner = holders[i];
    load[tensor.owner] -= bytes;
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
  chooseOwners(tensors);
  return tensors;
}

} // namespace hpc
