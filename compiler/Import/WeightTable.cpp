// Parameters by reference: hashed once, found again by content.
// Hashes only propose a tie; the bytes decide.
#include "compiler/Import/WeightTable.h"

#include "compiler/ElementType.h"
#include "compiler/Interpreter/Tensor.h"
#include "compiler/Location.h"
#include "runtime/base/Hash.h"

#include <cstring>
#include <set>

namespace hpc::onnx {

/// Exactly two values, of which one is below -1000: zero and "minus infinity".
static bool isMask(const StoredTensor &tensor) {
  int64_t width = byteSize(*tensor.dtype), count = tensor.elements();
  int64_t other = -1;
  for (int64_t i = 1; i < count; ++i) {
    if (!std::memcmp(tensor.data, tensor.data + i * width, size_t(width)))
      continue;
    if (other >= 0 && std::memcmp(tensor.data + other * width, tensor.data + i * width, size_t(width)))
      return false;
    other = i;
  }
  if (other < 0)
    return false;
  double first = tensorFromBytes(*tensor.dtype, {}, tensor.data).floats[0];
  double second = tensorFromBytes(*tensor.dtype, {}, tensor.data + other * width).floats[0];
  return std::min(first, second) < -1000 && std::max(first, second) >= 0;
}

bool isWeight(const StoredTensor &tensor) {
  return tensor.dtype && isFloat(*tensor.dtype) && tensor.elements() > 1 && !isMask(tensor);
}

static bool isFilled(const StoredTensor &tensor) {
  int64_t width = byteSize(*tensor.dtype);
  return tensor.bytes <= width || !std::memcmp(tensor.data, tensor.data + width, size_t(tensor.bytes - width));
}

nn::ParameterOp WeightTable::create(const StoredTensor &tensor, ArrayRef<int64_t> hashes) {
  OpBuilder builder(context);
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(entry);
  auto type = RankedTensorType::get(tensor.shape, typeOf(*tensor.dtype, context));
  Location loc = NameLoc::get(builder.getStringAttr(tensor.name));
  nn::ParameterOp op;
  if (tensor.file.empty()) {
    ElementsAttr value = tensorToAttr(tensorFromBytes(*tensor.dtype, tensor.shape, tensor.data), context);
    op = nn::ParameterOp::create(builder, loc, type, builder.getStringAttr(tensor.name), StringAttr(), IntegerAttr(),
                                 IntegerAttr(), DenseI64ArrayAttr(), value, ArrayAttr());
  } else {
    op = nn::ParameterOp::create(builder, loc, type, builder.getStringAttr(tensor.name),
                                 builder.getStringAttr(tensor.file), builder.getI64IntegerAttr(tensor.offset),
                                 builder.getI64IntegerAttr(tensor.bytes), builder.getDenseI64ArrayAttr(hashes),
                                 ElementsAttr(), ArrayAttr());
  }
  last = op;
  return op;
}

Value WeightTable::get(const StoredTensor &tensor) {
  if (auto found = byName.find(tensor.name); found != byName.end())
    return found->second.getResult();
  std::vector<uint64_t> chunks = hashChunks(tensor.data, tensor.bytes);
  std::vector<int64_t> hashes(chunks.begin(), chunks.end());
  std::vector<int64_t> key = {int64_t(*tensor.dtype), int64_t(tensor.shape.size())};
  key.insert(key.end(), tensor.shape.begin(), tensor.shape.end());
  key.insert(key.end(), hashes.begin(), hashes.end());
  std::vector<std::string> &equal = byContent[key];
  if (!isFilled(tensor))
    for (const std::string &name : equal)
      if (!std::memcmp(tensors[name].front()->data, tensor.data, size_t(tensor.bytes))) {
        tensors[name].push_back(&tensor);
        return (byName[tensor.name] = byName[name]).getResult();
      }
  equal.push_back(tensor.name);
  tensors[tensor.name].push_back(&tensor);
  return (byName[tensor.name] = create(tensor, hashes)).getResult();
}

void WeightTable::setAliases() {
  Builder builder(context);
  for (auto &[name, same] : tensors) {
    nn::ParameterOp op = byName[name];
    std::set<std::string> known = {name};
    SmallVector<StringRef> aliases;
    for (const StoredTensor *tensor : same)
      if (known.insert(tensor->name).second)
        aliases.push_back(tensor->name);
    std::set<std::string> paths;
    for (Operation *user : op->getUsers())
      if (std::string path = modulePath(user->getLoc()); !path.empty() && !known.count(path))
        paths.insert(path);
    aliases.append(paths.begin(), paths.end());
    if (!aliases.empty())
      op.setAliasesAttr(builder.getStrArrayAttr(aliases));
  }
}

} // namespace hpc::onnx
