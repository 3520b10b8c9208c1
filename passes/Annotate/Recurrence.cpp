// A weight whose products follow each other along the contracted dim is recurrent. Backward's products follow from the cut
// of forward's.
#include "passes/Annotate/Recurrence.h"

#include "compiler/ElementType.h"
#include "compiler/StepPart.h"

#include "llvm/ADT/MapVector.h"

namespace hpc {
namespace {

/// The first parameter of two dims or more from which a weight is computed.
Operation *parameterOf(Value weight) {
  llvm::SetVector<Value> open;
  open.insert(weight);
  for (size_t next = 0; next < open.size(); ++next)
    if (Operation *op = open[next].getDefiningOp()) {
      if (isa<nn::ParameterOp>(op) && nn::shapeOf(open[next]).size() > 1)
        return op;
      open.insert(op->operand_begin(), op->operand_end());
    }
  return nullptr;
}

int64_t bytesOf(Value value) {
  return nn::tensorType(value).getNumElements() * elementBytes(nn::tensorType(value).getElementType());
}

/// The products whose columns are sources of a product's contracted dim.
llvm::SetVector<Operation *> columnsBefore(DimTrace &trace, const WeightMatmul &product) {
  if (!product.activationK)
    return {};
  Value activation = product.op->getOperand(product.activation);
  return trace.columnsOf(activation, *product.activationK, {1, nn::shapeOf(activation)[*product.activationK]});
}

/// Whether a cut saves more than the gathers of the states that products read; both in bytes of memory traffic.
bool paysOff(ArrayRef<WeightMatmul> steps, int64_t degree, const Prices &prices) {
  int64_t work = 0, gathers = 0;
  llvm::DenseSet<Value> states;
  for (const WeightMatmul &product : steps) {
    Value state = product.op->getOperand(product.activation);
    work += std::max(bytesOf(product.op->getOperand(product.weight)),
                     int64_t(cast<CostOpInterface>(product.op).getFlops()) / int64_t(prices.operationsPerByte));
    if (states.insert(state).second)
      gathers += prices.bytesOfLatency + bytesOf(state);
  }
  return work - work / degree > gathers;
}

/// The layer of `steps`, if it is recurrent.
std::optional<Recurrence> findRecurrence(DimTrace &trace, ArrayRef<WeightMatmul> steps, int64_t degree, const Prices &prices) {
  constexpr size_t mostAsked = 8; // a step has up to four products, and the second follows from the first
  llvm::DenseSet<Operation *> own;
  for (const WeightMatmul &product : steps)
    own.insert(product.op);
  bool follows = llvm::any_of(steps.take_front(mostAsked), [&](const WeightMatmul &product) {
    return llvm::any_of(columnsBefore(trace, product), [&](Operation *column) { return own.contains(column); });
  });
  if (!follows)
    return std::nullopt;
  // The columns of all earlier steps are sources of a state, so the walk goes from the last step back, in each
  // direction; the last step's own columns are cut like the others.
  Recurrence layer;
  std::map<int64_t, Piece> pieces; // by number of columns
  llvm::DenseSet<Operation *> found;
  auto columnsOf = [](const WeightMatmul &product) { return nn::shapeOf(product.op->getResult(0))[*product.resultN]; };
  for (const WeightMatmul &step : llvm::reverse(steps)) {
    if (found.contains(step.op) || !step.activationK)
      continue;
    Value state = step.op->getOperand(step.activation);
    for (auto &[product, piece] : trace.takeColumns(state, *step.activationK, {1, nn::shapeOf(state)[*step.activationK]}))
      if (product.resultN && found.insert(product.op).second) {
        pieces[columnsOf(product)] = piece;
        layer.products.push_back({product, piece});
      }
  }
  for (const WeightMatmul &product : steps)
    if (product.resultN && !found.contains(product.op))
      if (auto piece = pieces.find(columnsOf(product)); piece != pieces.end())
        layer.products.push_back({product, piece->second});
  layer.pays = paysOff(steps, degree, prices);
  return layer;
}

} // namespace

std::vector<Recurrence> findRecurrences(func::FuncOp function, OpFacts &facts, int64_t degree, const Prices &prices) {
  llvm::MapVector<Operation *, SmallVector<WeightMatmul>> byWeight;
  for (Operation &op : function.getBody().front())
    if (stepPartOf(op.getLoc()) == StepPart::Forward)
      if (const std::optional<WeightMatmul> &product = facts.of(&op).product)
        if (Operation *parameter = parameterOf(op.getOperand(product->weight)))
          byWeight[parameter].push_back(*product);
  const llvm::DenseSet<Operation *> noSums;
  std::vector<Recurrence> layers;
  for (auto &[parameter, steps] : byWeight)
    if (steps.size() > 1) {
      DimTrace trace(facts, noSums); // each layer takes its own columns
      if (std::optional<Recurrence> layer = findRecurrence(trace, steps, degree, prices))
        layers.push_back(std::move(*layer));
    }
  return layers;
}

} // namespace hpc
