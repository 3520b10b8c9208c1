// A value that a product, convolution, recurrent op or lookup reads is a parameter, whatever holds it: an initializer,
// a Constant node, or views, casts, sums and products of one. Other ops on known values stay folded: their numbers are
// then a parameter that is cut like others and never trained (a dequantised weight, a table).
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/ElementType.h"
#include "compiler/Import/GraphBuilder.h"
#include "compiler/ValueNames.h"

namespace hpc::onnx {

/// Operands without a root are written out again with a kept op, so they are small: a scale, a shift.
constexpr int64_t maxHeldElements = 64 * 1024;

static bool isPlain(Operation *op) {
  return isa<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::BroadcastOp, nn::ConcatOp, nn::CastOp, nn::AddOp, nn::SubOp,
             nn::MulOp, nn::DivOp>(op);
}

/// A single number beside a tensor is a scale or a shift, not a parameter.
const StoredTensor *GraphBuilder::rootOf(Operation *op, Value operand) const {
  bool isTensor = op->getNumOperands() == 1 || nn::tensorType(operand).getNumElements() > 1;
  return isTensor ? entries.find(operand)->second.root : nullptr;
}

/// Whether the op on parameters can replace its result: operands and result are floats.
bool GraphBuilder::mayMake(Operation *op) const {
  if (!isPlain(op) || !isFloat(dtype(op->getResult(0))))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    const Entry &entry = entries.find(operand)->second;
    if (const StoredTensor *root = rootOf(op, operand))
      return isFloat(*root->dtype) && (entry.stored || entry.maker);
    return entry.tensor && entry.tensor->compact.size() <= maxHeldElements;
  });
}

bool GraphBuilder::noteMaker(Value result, Operation *op) {
  const StoredTensor *root = nullptr;
  for (Value operand : op->getOperands())
    if (const StoredTensor *other = rootOf(op, operand); other && (!root || other->bytes > root->bytes))
      root = other;
  auto found = entries.find(result);
  if (!root || found == entries.end())
    return false;
  found->second.root = root;
  if (op->getNumResults() != 1 || !mayMake(op))
    return false;
  for (Value operand : op->getOperands())
    found->second.held.push_back(rootOf(op, operand) ? nullptr : entries.find(operand)->second.tensor);
  found->second.maker = op;
  return true;
}

/// The op that made the value, on parameters.
Value GraphBuilder::madeAgain(Value value) {
  // 1. All makers of the value, the first of them last; without recursion, however many there are.
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Value next = open.back();
    Entry &entry = entries.find(next)->second;
    if (entry.parameter) {
      open.pop_back();
      continue;
    }
    size_t before = open.size();
    SmallVector<Value> operands;
    for (auto [operand, held] : llvm::zip_equal(entry.maker->getOperands(), entry.held)) {
      Entry &other = entries.find(operand)->second;
      bool isParameter = rootOf(entry.maker, operand);
      if (isParameter && !other.parameter && other.stored)
        other.parameter = weight(*other.stored);
      if (isParameter && !other.parameter) {
        open.push_back(operand);
        continue;
      }
      if (!other.tensor && held)
        other.tensor = held;
      operands.push_back(isParameter ? other.parameter : real(operand));
    }
    if (open.size() > before)
      continue;
    // 2. A maker whose operands exist.
    Operation *op = entry.maker->clone();
    op->setOperands(operands);
    if (!entry.name.empty())
      op->setLoc(withValueName(op->getLoc(), entry.name));
    builder.insert(op);
    entry.parameter = op->getResult(0);
    open.pop_back();
  }
  return entries.find(value)->second.parameter;
}

/// The folded numbers as a parameter that nothing trains. It has the value's name and, as alias, that of its root.
Value GraphBuilder::computedParameter(Value value) {
  Entry &entry = entries.find(value)->second;
  if (withoutWeights)
    return fail("weight '" + entry.root->name +
                    "' is scaled or computed when the model is compiled, so the plan would hold its numbers and no others "
                    "would fit; leave out --no-weights",
                ErrorKind::Unsupported);
  std::shared_ptr<const KnownTensor> known = find(value);
  Tensor full = broadcastTo(known->compact, known->shape);
  std::string wanted = entry.name.empty() ? entry.root->name + ".float" : entry.name, name = wanted;
  for (int64_t number = 2; !computedNames.insert(name).second; ++number)
    name = wanted + "_" + std::to_string(number);
  entry.parameter = weights.computed(full, entry.loc, name, entry.root->name);
  leftOut.insert(entry.root);
  return entry.parameter;
}

Value GraphBuilder::parameter(Value value) {
  auto found = entries.find(value);
  if (found == entries.end() || !found->second.root || !failure.ok())
    return value;
  Entry &entry = found->second;
  if (entry.parameter)
    return entry.parameter;
  if (entry.maker)
    return madeAgain(value);
  bool isCode = !isFloat(dtype(value));
  if (entry.stored) {
    if (isCode)
      leftOut.insert(entry.root);
    return entry.parameter = weight(*entry.stored);
  }
  return isCode || nn::tensorType(value).getNumElements() > maxFoldedElements ? value : computedParameter(value);
}

void GraphBuilder::noteName(Value value, StringRef name) {
  if (auto found = entries.find(value); found != entries.end() && found->second.root && found->second.name.empty())
    found->second.name = name.str();
}

Value GraphBuilder::settled(Value value) {
  std::shared_ptr<const KnownTensor> known = find(value);
  return known ? this->known(*known) : value;
}

/// Whether plain ops compute a value from a parameter alone.
static bool isOfParameter(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<nn::ParameterOp>(op))
      return true;
    if (!isPlain(op))
      return false;
    auto isNumber = [&](unsigned index) { return nn::tensorType(op->getOperand(index)).getNumElements() == 1; };
    if (op->getNumOperands() > 2 || (op->getNumOperands() == 2 && !isNumber(0) && !isNumber(1)))
      return false; // an activation with its bias
    value = op->getOperand(op->getNumOperands() == 2 && isNumber(0) ? 1 : 0);
  }
  return false;
}

/// Whether a product with a weight made the value: a tensor added to scores of attention is a mask.
static bool isOfProduct(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<nn::MatmulOp>(op))
      return isOfParameter(op->getOperand(0)) || isOfParameter(op->getOperand(1));
    if (!isa<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::CastOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

Value GraphBuilder::add(Value x, Value y) {
  for (auto [known, other] : {std::pair(&x, y), std::pair(&y, x)})
    if (isKnown(*known) && nn::tensorType(*known).getNumElements() > 1 && isOfProduct(other))
      *known = parameter(*known);
  return binary<nn::AddOp>(x, y);
}

} // namespace hpc::onnx
