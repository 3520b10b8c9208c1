// Evaluates one nn op: by the table, or, for composites, by evaluating their decomposition op by op.
#include "compiler/Interpreter/Evaluators.h"
#include "compiler/Location.h"

#include <deque>

namespace hpc {

using namespace interpreter;

static const Evaluators &evaluators() {
  static const Evaluators table = [] {
    Evaluators table;
    addSources(table);
    addElementwise(table);
    addViews(table);
    addIndices(table);
    addContractions(table);
    addReductions(table);
    addOrders(table);
    addRandom(table);
    return table;
  }();
  return table;
}

namespace interpreter {
bool isEvaluated(OperationName name) {
  return evaluators().find(name.getStringRef()) || name.hasInterface<CompositeOpInterface>();
}
} // namespace interpreter

interpreter::Definition::Definition(Operation *composite) {
  SmallVector<Value> arguments;
  for (Value operand : composite->getOperands())
    arguments.push_back(block.addArgument(operand.getType(), composite->getLoc()));
  Operation *copy = composite->clone();
  copy->setOperands(arguments);
  block.push_back(copy);
  OpBuilder builder(copy);
  results = cast<CompositeOpInterface>(copy).decompose(builder);
  for (Operation &step : block)
    if (&step != copy)
      steps.push_back(&step);
}

static Results evaluateComposite(Operation *op, Operands operands, const EvalOptions &options) {
  Definition definition(op);
  DenseMap<Value, const Tensor *> values;
  for (auto [argument, tensor] : llvm::zip_equal(definition.block.getArguments(), operands))
    values[argument] = tensor;
  std::deque<Tensor> storage;
  for (Operation *step : definition.steps) {
    SmallVector<const Tensor *> inputs;
    for (Value operand : step->getOperands())
      inputs.push_back(values.lookup(operand));
    Results results = evaluateOp(step, inputs, options);
    if (!results.ok())
      return results.status().at(describeOp(op));
    for (auto [value, tensor] : llvm::zip_equal(step->getResults(), *results)) {
      storage.push_back(std::move(tensor));
      values[value] = &storage.back();
    }
  }
  std::vector<Tensor> results;
  for (Value value : definition.results)
    results.push_back(*values.lookup(value));
  return results;
}

Expected<std::vector<Tensor>> evaluateOp(Operation *op, ArrayRef<const Tensor *> operands, const EvalOptions &options) {
  for (const Tensor *operand : operands)
    if (!operand)
      return Status::error(ErrorKind::Internal, describeOp(op) + " reads a value that was not computed");
  for (Type type : op->getResultTypes())
    if (!findDType(type))
      return Status::error(ErrorKind::Unsupported, describeOp(op) + " has an element type that cannot be computed with");
  if (const Evaluators::Function *evaluate = evaluators().find(op->getName().getStringRef())) {
    Results results = (*evaluate)(op, operands, options);
    if (!results.ok())
      return results;
    for (Tensor &result : *results)
      if (!result.isFloat() || !options.doublePrecision)
        round(result);
    return results;
  }
  if (isa<CompositeOpInterface>(op))
    return evaluateComposite(op, operands, options);
  return Status::error(ErrorKind::Internal, describeOp(op) + " is not an op that computes on tensors alone");
}

} // namespace hpc
