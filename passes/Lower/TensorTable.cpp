// Files and tensors, each once.
#include "passes/Lower/TensorTable.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/ElementType.h"
#include "compiler/Interpreter/Tensor.h"
#include "runtime/base/Hash.h"

#include <filesystem>

namespace hpc {

/// Below the plan's folder a path is relative to it, so that both can be moved together; elsewhere it is absolute.
static std::string pathInPlan(StringRef path, const std::string &planFolder) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::weakly_canonical(path.str(), error);
  std::filesystem::path folder = std::filesystem::weakly_canonical(planFolder, error);
  std::filesystem::path relative = absolute.lexically_relative(folder);
  bool isBelow = !relative.empty() && *relative.begin() != "..";
  return (isBelow ? relative : absolute).string();
}

int32_t TensorTable::file(StringRef path) {
  auto [entry, isNew] = files.try_emplace(path.str(), int32_t(plan.files.size()));
  if (isNew)
    plan.files.push_back({pathInPlan(path, planFolder)});
  return entry->second;
}

int32_t TensorTable::inlineTensor(const std::string &name, ElementsAttr value) {
  Tensor content = *tensorFromAttr(value);
  std::vector<std::byte> bytes = tensorToBytes(content);
  plan::Tensor tensor;
  tensor.name = name;
  tensor.dtype = content.dtype;
  tensor.shape = content.shape;
  tensor.inlineData.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  tensor.bytes = int64_t(bytes.size());
  tensor.hashes = hashChunks(bytes.data(), int64_t(bytes.size()));
  plan.tensors.push_back(std::move(tensor));
  return int32_t(plan.tensors.size()) - 1;
}

int32_t TensorTable::tensor(nn::ParameterOp op) {
  std::string name = op.getName().str();
  auto [entry, isNew] = tensors.try_emplace(name, int32_t(plan.tensors.size()));
  if (!isNew)
    return entry->second;
  if (std::optional<ElementsAttr> value = op.getValue())
    return entry->second = inlineTensor(name, *value);
  plan::Tensor tensor;
  tensor.name = name;
  tensor.dtype = dtypeOf(op.getResult().getType());
  tensor.shape = dist::globalType(nn::tensorType(op.getResult())).getShape().vec();
  tensor.file = file(op.getFile());
  tensor.offset = int64_t(op.getOffset());
  tensor.bytes = int64_t(op.getBytes());
  for (int64_t hash : op.getHashes())
    tensor.hashes.push_back(uint64_t(hash));
  plan.tensors.push_back(std::move(tensor));
  return entry->second;
}

int32_t TensorTable::constant(nn::ConstantOp op) {
  return inlineTensor("constant" + std::to_string(plan.tensors.size()), op.getValue());
}

} // namespace hpc
