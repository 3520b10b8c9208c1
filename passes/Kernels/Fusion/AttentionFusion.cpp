// An attention reads the buffers of which its operands are views, and writes the buffer that its result's readers view.
// Each region has clones of its views; ops without other readers are dead afterwards.
#include "passes/Kernels/Fusion/AttentionFusion.h"

#include "compiler/Interfaces/Structure.h"
#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Fusion/FusionRoles.h"
#include "passes/Kernels/Regions/AttentionRegion.h"
#include "passes/Kernels/Regions/KeyConcat.h"
#include "passes/Kernels/Regions/StridedView.h"

namespace hpc::kernels {

namespace {
constexpr size_t maxBiasOps = 24; // each is computed again for every head that shares the bias
constexpr int64_t maxKeyParts = 8; // each has loops of its own

bool isView(Operation *op) { return (isAlias(op) || isMove(op)) && op->getNumOperands() == 1; }

/// Whether the views, nearest first, and then `concat`, if there is one, turn a buffer into a strided view.
bool hasStrides(ArrayRef<Operation *> views, Value operand, const KeyConcat *concat) {
  StridedView view(nn::shapeOf(views.empty() ? operand : views.back()->getOperand(0)));
  auto apply = [&](Operation *op) { return isFloatCast(op) || applyView(op, view); };
  return llvm::all_of(llvm::reverse(views), apply) &&
         (!concat || concat->apply(view, operand)) && view.strides();
}

/// The buffer of which an operand, or the result of `concat`, is a strided view: the farthest such value.
Value sourceOf(Value operand, const KeyConcat *concat = nullptr) {
  SmallVector<Operation *> views; // nearest first
  for (Operation *op = operand.getDefiningOp(); op && isView(op); op = op->getOperand(0).getDefiningOp())
    views.push_back(op);
  for (; !views.empty(); views.pop_back())
    if (hasStrides(views, operand, concat))
      return views.back()->getOperand(0);
  return operand;
}

/// Whether nothing reads a value but `reader`; an attention as keys or values.
bool isOnlyReadBy(Value value, Operation *reader) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    unsigned number = use.getOperandNumber();
    return use.getOwner() == reader && (!isAttention(reader) || number == 1 || number == 2);
  });
}

/// As sourceOf, for keys or values that `reader` reads: also through casts without other readers, if their operand is
/// in memory anyway. A cast of a value that a region computes stays there: it reduces the bytes to write.
Value sourceOfKeys(Value operand, Operation *reader, const KeyConcat *concat = nullptr) {
  SmallVector<Operation *> steps; // nearest first
  bool isOurs = true;
  for (Operation *op = operand.getDefiningOp(); op && (isView(op) || isFloatCast(op));
       op = op->getOperand(0).getDefiningOp()) {
    isOurs &= isOnlyReadBy(op->getResult(0), steps.empty() ? reader : steps.back());
    if (isFloatCast(op) && !isOurs)
      break;
    steps.push_back(op);
  }
  for (; !steps.empty(); steps.pop_back()) {
    Value source = steps.back()->getOperand(0);
    const bool isInMemory = !source.getDefiningOp() || !hasElementEmitter(source.getDefiningOp()->getName());
    if (hasStrides(steps, operand, concat) && (isInMemory || llvm::none_of(steps, isFloatCast)))
      return source;
  }
  return operand;
}

/// The concatenation that a key or value comes from, if its result has no other reader and each part can be read alone.
std::optional<KeyConcat> findOwnConcat(Value operand, Operation *attention) {
  std::optional<KeyConcat> concat = findKeyConcat(operand);
  if (!concat || concat->op.getNumOperands() > maxKeyParts || nn::tensorType(operand).getNumElements() == 0)
    return std::nullopt;
  Operation *maker = concat->op;
  for (Operation *step : concat->behind) {
    if (!isOnlyReadBy(maker->getResult(0), step))
      return std::nullopt;
    maker = step;
  }
  auto hasPart = [&](Value part) { return hasStrides({}, part, &*concat); };
  const bool isOwn = isOnlyReadBy(maker->getResult(0), attention);
  return isOwn && llvm::all_of(concat->op.getOperands(), hasPart) ? concat : std::nullopt;
}

/// The last value that the result is written as: through its only readers.
Value targetOf(Value result) {
  SmallVector<Operation *> views;
  Value end = result;
  while (end.hasOneUse() && isInvertibleView(*end.user_begin())) {
    views.push_back(*end.user_begin());
    end = views.back()->getResult(0);
  }
  // A reshape at the end is an alias outside.
  while (!views.empty() && isAlias(views.back()))
    views.pop_back();
  for (; !views.empty(); views.pop_back()) {
    StridedView view(nn::shapeOf(views.back()->getResult(0)));
    if (llvm::all_of(llvm::reverse(views), [&](Operation *op) { return applyInverse(op, view); }) && view.strides())
      return views.back()->getResult(0);
  }
  return result;
}

/// Ops that make a bias or a mask as large as the scores of a head from less: the region computes its elements where it needs
/// them, so that nothing of the size lies in memory.
void collectBias(Value bias, int64_t scores, llvm::SetVector<Operation *> &ops) {
  Operation *op = bias.getDefiningOp();
  if (!op || ops.contains(op) || !hasElementEmitter(op->getName()) || isExpensive(op))
    return;
  bool isFree = op->getNumOperands() == 0;
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
    isFree = value && value.isSplat();
  }
  if (op->getNumOperands() == 0 ? !isFree : nn::tensorType(bias).getNumElements() < scores)
    return;
  Access access = *accessOf(op);
  if (!llvm::is_contained({Access::Source, Access::Elementwise, Access::Alias, Access::Move, Access::Repeat}, access))
    return;
  for (Value operand : op->getOperands())
    collectBias(operand, scores, ops);
  ops.insert(op); // after its operands
}

class AttentionRegionBuilder {
public:
  explicit AttentionRegionBuilder(Operation *attention) : attention(attention) {}

  nn::FusedOp build() {
    OpBuilder builder(attention->getContext());
    // 1. Operands up to their buffers.
    for (OpOperand &operand : attention->getOpOperands())
      if (llvm::is_contained(masksOf(attention), operand.get()))
        addMask(operand.get());
      else if (nn::tensorType(operand.get()).getRank() == 0)
        addNumber(operand.get());
      else if (hasFewQueries(attention) && operand.getOperandNumber() > 0)
        addKeys(operand.get());
      else
        add(operand.get(), sourceOf(operand.get()));
    Operation *copy = clone(attention);
    // 2. Results down to theirs.
    SmallVector<Value> replaced, yielded;
    for (auto [old, result] : llvm::zip_equal(attention->getResults(), copy->getResults())) {
      Value end = targetOf(old);
      for (Value at = old; at != end; at = (*at.user_begin())->getResult(0))
        clone(*at.user_begin());
      replaced.push_back(end);
      yielded.push_back(mapping.lookup(end));
    }
    // 3. The op around it, where the attention stood.
    builder.setInsertionPoint(attention);
    auto region = nn::FusedOp::create(builder, attention->getLoc(), ValueRange(yielded).getTypes(), "", operands);
    region.getBody().push_back(body.release());
    builder.setInsertionPointToEnd(&region.getBody().front());
    nn::YieldOp::create(builder, region.getLoc(), yielded);
    for (auto [old, result] : llvm::zip_equal(replaced, region.getResults())) {
      old.replaceAllUsesWith(result);
      if (old.getDefiningOp() != attention)
        dead.push_back(old.getDefiningOp());
    }
    dead.push_back(attention);
    return region;
  }
  /// Erases ops that build() has left without readers.
  const SmallVector<Operation *> &replacedOps() const { return dead; }

private:
  void addArgument(Value value) {
    if (mapping.contains(value))
      return;
    operands.push_back(value);
    mapping.map(value, body->addArgument(value.getType(), value.getLoc()));
  }
  void add(Value operand, Value source) {
    SmallVector<Operation *> views;
    for (Value value = operand; value != source; value = views.back()->getOperand(0))
      views.push_back(value.getDefiningOp());
    addArgument(source);
    for (Operation *view : llvm::reverse(views))
      clone(view);
  }
  void addKeys(Value operand) {
    std::optional<KeyConcat> concat = findOwnConcat(operand, attention);
    if (!concat)
      return add(operand, sourceOfKeys(operand, attention));
    for (Value part : concat->op.getOperands())
      add(part, sourceOfKeys(part, concat->op, &*concat));
    clone(concat->op);
    for (Operation *op : concat->behind)
      clone(op);
  }
  void addMask(Value mask) {
    llvm::SetVector<Operation *> ops;
    int64_t scores = nn::shapeOf(attention->getOperand(0))[2] * nn::shapeOf(attention->getOperand(1))[2];
    collectBias(mask, scores, ops);
    if (ops.size() > maxBiasOps)
      ops.clear();
    for (Operation *op : ops) {
      for (Value operand : op->getOperands())
        addArgument(operand);
      clone(op);
    }
    addArgument(mask);
  }
  /// Step, seed or offset of a dropout.
  void addNumber(Value number) {
    Operation *op = number.getDefiningOp();
    if (op && op->getNumOperands() == 0 && hasElementEmitter(op->getName()))
      clone(op);
    else
      addArgument(number);
  }
  Operation *clone(Operation *op) {
    if (op->getNumResults() && mapping.contains(op->getResult(0)))
      return mapping.lookup(op->getResult(0)).getDefiningOp();
    Operation *copy = op->clone(mapping);
    body->push_back(copy);
    return copy;
  }

  Operation *attention;
  std::unique_ptr<Block> body = std::make_unique<Block>();
  IRMapping mapping;
  SmallVector<Value> operands;
  SmallVector<Operation *> dead;
};
} // namespace

/// Pure ops without readers, from the given ones up: a dead reader would still count as one.
static void eraseDead(SmallVector<Operation *> open) {
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!op->use_empty() || !isPure(op) || isa<nn::FusedOp>(op))
      continue;
    llvm::SmallSetVector<Operation *, 4> next;
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp())
        next.insert(operand.getDefiningOp());
    llvm::erase(open, op);
    op->erase();
    for (Operation *producer : next)
      if (!llvm::is_contained(open, producer))
        open.push_back(producer);
  }
}

void fuseAttention(Block &block, function_ref<void(nn::FusedOp, const std::string &)> name) {
  SmallVector<Operation *> found;
  for (Operation &op : block)
    if (isAttention(&op))
      found.push_back(&op);
  for (Operation *op : found) {
    std::string base = op->getName().stripDialect().str();
    for (int64_t size : nn::shapeOf(op->getResult(0)))
      base += (base.back() >= 'a' && base.back() <= 'z' ? "_" : "x") + std::to_string(size);
    AttentionRegionBuilder builder(op);
    name(builder.build(), base);
    eraseDead(builder.replacedOps());
  }
}

} // namespace hpc::kernels
