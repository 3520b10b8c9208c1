// Tensors that are only read are in every process, so their writing is spread over all ranks.
#include "runtime/core/CheckpointContent.h"

#include <algorithm>
#include <map>

namespace hpc {

/// A tensor that an exporter derived cannot be turned back, so it keeps the exporter's name.
static std::vector<std::string> namesInFiles(const plan::Weight &weight) {
  return weight.stateNames.empty() || weight.isMade ? std::vector<std::string>{weight.name} : weight.stateNames;
}

CheckpointContent checkpointContent(const plan::Plan &plan, const Session &session) {
  std::map<std::string, const plan::Weight *> weights;
  for (const plan::Weight &weight : plan.weights)
    weights.emplace(weight.name, &weight);
  CheckpointContent content;
  std::vector<int64_t> load(size_t(plan.worldSize())); // bytes, by rank
  for (size_t i = 0; i < session.saved().size(); ++i) {
    const SavedTensor &tensor = session.saved()[i];
    auto weight = weights.find(tensor.name);
    const bool isState = weight == weights.end();
    CheckpointTensor entry{isState ? std::vector<std::string>{tensor.name} : namesInFiles(*weight->second), tensor.dtype, tensor.shape,
                           checkedBytes(tensor.dtype, tensor.shape).value_or(0), session.ownerOf(i), i, -1};
    load[size_t(entry.rank)] += entry.bytes;
    (isState ? content.states : content.model).push_back(std::move(entry));
  }
  for (int32_t index : session.stored().onlyRead()) {
    const plan::Weight &weight = plan.weights[size_t(index)];
    const int64_t rank = std::min_element(load.begin(), load.end()) - load.begin();
    load[size_t(rank)] += weight.bytes;
    content.model.push_back({namesInFiles(weight), weight.dtype, weight.shape, weight.bytes, rank, std::nullopt, index});
  }
  return content;
}

} // namespace hpc
