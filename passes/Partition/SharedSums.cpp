// Values get numbers, equal ones for equal ops on operands with equal numbers.
#include "passes/Partition/SharedSums.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// The attributes that decide what an op computes.
static DictionaryAttr computingAttributes(Operation *op) {
  NamedAttrList attributes(op->getAttrs());
  for (StringRef name : {StringRef(valueIdAttrName), StringRef(movedIdAttrName), StringRef(factorsAttrName), StringRef(originAttrName)})
    attributes.erase(name);
  return attributes.getDictionary(op->getContext());
}

void shareSums(func::FuncOp function) {
  using Key = std::tuple<const void *, const void *, const void *, std::vector<unsigned>>;
  std::map<Key, Value> first;
  DenseMap<Value, unsigned> numbers;
  auto numberOf = [&](Value value) { return numbers.try_emplace(value, unsigned(numbers.size())).first->second; };
  llvm::SetVector<Operation *> merged;
  for (Operation &op : function.front()) {
    if (op.getNumResults() != 1 || isa<nn::ParameterOp>(op) || op.getNumRegions() != 0)
      continue;
    Key key{op.getName().getAsOpaquePointer(), computingAttributes(&op).getAsOpaquePointer(), op.getResult(0).getType().getAsOpaquePointer(), {}};
    for (Value operand : op.getOperands())
      std::get<3>(key).push_back(numberOf(operand));
    Value result = op.getResult(0);
    auto [entry, isFirst] = first.try_emplace(std::move(key), result);
    if (isFirst)
      continue;
    numbers[result] = numberOf(entry->second);
    bool isSum = accessOf(&op) == Access::Combine || accessOf(&op) == Access::Elementwise || isView(&op);
    if (!isSum || dist::shardingOf(result).partial.empty())
      continue; // elementwise: a mean, which divides the sum before it is complete
    // The value has one id: the one under which readers' program knows it.
    Operation *earlier = entry->second.getDefiningOp();
    if (!valueIdsOf(earlier).made)
      setValueIds(earlier, valueIdsOf(&op));
    result.replaceAllUsesWith(entry->second);
    merged.insert(&op);
  }
  // Erase what nobody reads any more, back to the operands that others read.
  for (size_t next = 0; next < merged.size(); ++next)
    for (Value operand : merged[next]->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && !isa<nn::ParameterOp>(producer) &&
          llvm::all_of(producer->getUsers(), [&](Operation *user) { return merged.contains(user); }))
        merged.insert(producer);
  SmallVector<Operation *> dead;
  for (Operation &op : llvm::reverse(function.front()))
    if (merged.contains(&op))
      dead.push_back(&op);
  for (Operation *op : dead)
    op->erase();
}

} // namespace hpc
