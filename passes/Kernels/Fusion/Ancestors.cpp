// The spans of a tree nest, so one comparison of numbers finds a path of any length.
#include "passes/Kernels/Fusion/Ancestors.h"

namespace hpc::kernels {

/// The first or last op of the block that makes an operand, sources without operands left out.
static Operation *producerOf(Operation *op, bool ofLast) {
  Operation *chosen = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (producer && producer->getBlock() == op->getBlock() && producer->getNumOperands() > 0 &&
        (!chosen || chosen->isBeforeInBlock(producer) == ofLast))
      chosen = producer;
  }
  return chosen;
}

Ancestors::Tree Ancestors::makeTree(Block &block, bool ofLast) {
  DenseMap<Operation *, SmallVector<Operation *>> under;
  SmallVector<Operation *> open;
  for (Operation &op : block) {
    Operation *parent = producerOf(&op, ofLast);
    (parent ? under[parent] : open).push_back(&op);
  }
  Tree tree;
  int number = 0;
  while (!open.empty()) {
    Operation *op = open.back();
    auto [found, isNew] = tree.try_emplace(op, Span{number, 0});
    if (isNew) {
      ++number;
      if (auto below = under.find(op); below != under.end())
        open.append(below->second);
    } else { // all under it are done
      found->second.end = number;
      open.pop_back();
    }
  }
  return tree;
}

Ancestors::Ancestors(Block &block) : trees{makeTree(block, true), makeTree(block, false)} {}

bool Ancestors::isKnownPath(Operation *before, Operation *after) const {
  return llvm::any_of(trees, [&](const Tree &tree) {
    auto first = tree.find(before), second = tree.find(after);
    return first != tree.end() && second != tree.end() && first->second.begin <= second->second.begin &&
           second->second.begin < first->second.end;
  });
}

} // namespace hpc::kernels
