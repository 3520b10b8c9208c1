// One walk forwards finds the trunk, one over the trunk counts the values that cross each position.
#include "passes/Stage/Trunk.h"

#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/StepPart.h"

namespace hpc {

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * elementBytes(type);
}

/// The weight of a product, if it has one.
static Value weightOf(Operation *op, const nn::Dependences &dependences) {
  if (nn::isProduct(op))
    for (Value operand : op->getOperands())
      if (dependences.lookup(operand).isWeight() && nn::tensorType(operand).getRank() >= 2)
        return operand;
  return nullptr;
}

/// Bytes of a typical weight of a product: the median; 0 where there is none.
static int64_t typicalWeight(func::FuncOp function, const nn::Dependences &dependences) {
  std::vector<int64_t> bytes;
  for (Operation &op : function.getBody().front())
    if (Value weight = weightOf(&op, dependences))
      bytes.push_back(bytesOf(weight));
  if (bytes.empty())
    return 0;
  std::nth_element(bytes.begin(), bytes.begin() + bytes.size() / 2, bytes.end());
  return bytes[bytes.size() / 2];
}

/// Ops of the trunk, in program order. A lookup is cheap as long as its table is no larger than its result or than a
/// typical weight: a copy of the table then costs a stage less than one more layer would. Ops that compute from a cheap
/// lookup's result alone are cheap too, however small the result is (the mean of a row).
static void findOps(func::FuncOp function, const nn::Dependences &dependences, Trunk &found) {
  int64_t typical = typicalWeight(function, dependences);
  llvm::DenseSet<Value> trunk, later;
  llvm::DenseMap<Value, int64_t> largestWeight; ///< among the parameters that a weight is computed from
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (op.getNumResults() == 0)
      continue;
    nn::Dependence dependence = dependences.lookup(op.getResult(0));
    int64_t largest = isa<nn::ParameterOp>(op) ? bytesOf(op.getResult(0)) : 0, made = 0;
    bool readsTrunk = false, isLater = stepPartOf(op.getLoc()) != StepPart::Forward;
    for (Value operand : op.getOperands()) {
      if (dependences.lookup(operand).isWeight())
        largest = std::max(largest, largestWeight.lookup(operand));
      readsTrunk |= trunk.contains(operand);
      isLater |= later.contains(operand);
    }
    for (Value result : op.getResults()) {
      made += bytesOf(result);
      largestWeight[result] = largest;
    }
    bool isLargeLookup = dependence.isTrunk() && largest > std::max(made, typical);
    if (dependence.isWeight() || !(readsTrunk || nn::isProduct(&op) || isLargeLookup))
      continue;
    (isLater ? found.later : found.ops).push_back(&op);
    trunk.insert(op.result_begin(), op.result_end());
    if (isLater)
      later.insert(op.result_begin(), op.result_end());
  }
}

bool isCopy(Operation *op) {
  if (isView(op))
    return true;
  return accessOf(op) == Access::Elementwise && op->getNumOperands() == 1 && *effortOf(op) <= Effort::Cheap &&
         nn::tensorType(op->getOperand(0)).getElementType() != nn::tensorType(op->getResult(0)).getElementType();
}

Trunk findTrunk(func::FuncOp function) {
  nn::Dependences dependences = nn::findDependences(function);
  Trunk trunk;
  findOps(function, dependences, trunk);
  llvm::DenseMap<Operation *, size_t> position;
  for (auto [index, op] : llvm::enumerate(trunk.ops)) {
    position[op] = index;
    if (weightOf(op, dependences))
      trunk.products.push_back(index);
  }
  // Differences first: +1 after the op that makes a value, -1 after the last that reads it.
  trunk.crossing.assign(trunk.ops.size() + 1, 0);
  trunk.crossingBytes.assign(trunk.ops.size() + 1, 0);
  llvm::DenseMap<Value, size_t> lastRead;
  for (auto [index, op] : llvm::enumerate(trunk.ops))
    for (Value result : op->getResults()) {
      size_t first = index, last = index;
      for (Operation *user : result.getUsers())
        if (auto found = position.find(user); found != position.end())
          last = std::max(last, found->second);
      lastRead[result] = last;
      // A copy is repeated from its source as long as the source crosses.
      if (isCopy(op))
        if (auto source = lastRead.find(op->getOperand(0)); source != lastRead.end())
          first = std::min(last, std::max(first, source->second));
      trunk.crossing[first + 1] += 1;
      trunk.crossing[last + 1] -= 1;
      trunk.crossingBytes[first + 1] += bytesOf(result);
      trunk.crossingBytes[last + 1] -= bytesOf(result);
    }
  for (size_t i = 1; i < trunk.crossing.size(); ++i) {
    trunk.crossing[i] += trunk.crossing[i - 1];
    trunk.crossingBytes[i] += trunk.crossingBytes[i - 1];
  }
  return trunk;
}

} // namespace hpc
