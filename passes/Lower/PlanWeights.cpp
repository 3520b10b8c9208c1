// Files and tensors, each once.
#include "passes/Lower/PlanWeights.h"

#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/ElementType.h"
#include "compiler/Interpreter/Tensor.h"
#include "runtime/base/Hash.h"

#include <filesystem>

namespace hpc {

/// Below the plan's folder a path is relative to it, so that both can be moved together; elsewhere it is absolute. A file
/// that is a link keeps its own name: the model's, not that of a hub's blob.
static std::string pathInPlan(StringRef path, const std::string &planFolder) {
  std::error_code error;
  const std::filesystem::path given = std::filesystem::absolute(path.str(), error);
  std::filesystem::path absolute = std::filesystem::weakly_canonical(given.parent_path(), error) / given.filename();
  std::filesystem::path folder = std::filesystem::weakly_canonical(planFolder, error);
  std::filesystem::path relative = absolute.lexically_relative(folder);
  bool isBelow = !relative.empty() && *relative.begin() != "..";
  return (isBelow ? relative : absolute).string();
}

int32_t PlanWeights::file(StringRef path) {
  auto [entry, isNew] = fileIndex.try_emplace(path.str(), int32_t(plan.files.size()));
  if (isNew)
    plan.files.push_back({pathInPlan(path, planFolder)});
  return entry->second;
}

/// The names that the framework's state has for it.
static void takeNames(nn::ParameterOp op, plan::Weight &weight) {
  weight.stateNames = nn::namesIn(op.getStateNames());
  weight.isMade = op.getIsMade();
  weight.isConstant = op.getIsExporters();
}

int32_t PlanWeights::inlineWeight(const std::string &name, ElementsAttr value) {
  Tensor content = *tensorFromAttr(value);
  std::vector<std::byte> bytes = tensorToBytes(content);
  plan::Weight weight;
  weight.name = name;
  weight.dtype = content.dtype;
  weight.shape = content.shape;
  weight.inlineData.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  weight.bytes = int64_t(bytes.size());
  weight.hashes = hashChunks(bytes.data(), int64_t(bytes.size()));
  plan.weights.push_back(std::move(weight));
  return int32_t(plan.weights.size()) - 1;
}

int32_t PlanWeights::weight(nn::ParameterOp op) {
  std::string name = op.getName().str();
  auto [entry, isNew] = weightIndex.try_emplace(name, int32_t(plan.weights.size()));
  if (!isNew)
    return entry->second;
  if (std::optional<ElementsAttr> value = op.getValue()) {
    entry->second = inlineWeight(name, *value);
    plan::Weight &weight = plan.weights[size_t(entry->second)];
    takeNames(op, weight);
    if (weight.stateNames.empty() && !weight.isConstant)
      weight.stateNames = {name}; // constants have none
    return entry->second;
  }
  plan::Weight weight;
  weight.name = name;
  weight.dtype = dtypeOf(op.storedElementType());
  SmallVector<int64_t> shape = nn::storedShapeOf(op);
  weight.shape.assign(shape.begin(), shape.end());
  weight.file = file(op.getFile());
  weight.offset = int64_t(op.getOffset());
  weight.bytes = int64_t(op.getBytes());
  for (int64_t hash : op.getHashes())
    weight.hashes.push_back(uint64_t(hash));
  takeNames(op, weight);
  plan.weights.push_back(std::move(weight));
  return entry->second;
}

int32_t PlanWeights::constant(nn::ConstantOp op) {
  return inlineWeight("constant" + std::to_string(plan.weights.size()), op.getValue());
}

} // namespace hpc
