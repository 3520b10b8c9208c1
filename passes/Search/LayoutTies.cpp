// A block of one product would tie a layer to the next one, and no layout by columns and rows could follow; so two is the least.
#include "passes/Search/LayoutTies.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interfaces/ShardingRule.h"
#include "compiler/Interfaces/Structure.h"

namespace hpc::search {

static constexpr size_t leastProducts = 2;

static bool isSource(Value value) { return !value.getDefiningOp() || isa<nn::ParameterOp>(value.getDefiningOp()); }

LayoutTies::LayoutTies(func::FuncOp function) : function(function) {
  using Key = std::tuple<const void *, const void *, const void *, std::vector<const void *>>;
  std::map<Key, int> known;
  for (Operation &op : function.front()) {
    if (!isa<ShardingRuleOpInterface>(op))
      continue;
    order.push_back(&op);
    ops[&op] = &op;
    std::vector<const void *> types;
    for (Type type : op.getOperandTypes())
      types.push_back(type.getAsOpaquePointer());
    for (Type type : op.getResultTypes())
      types.push_back(type.getAsOpaquePointer());
    Attribute properties = op.getPropertiesAsAttribute();
    Attribute factors = op.getDiscardableAttr(factorsAttrName);
    Key key{op.getName().getAsOpaquePointer(), properties ? properties.getAsOpaquePointer() : nullptr,
            factors ? factors.getAsOpaquePointer() : nullptr, types};
    signatures.push_back(known.try_emplace(key, int(known.size())).first->second);
  }
  tieBlocks();
  tieSources();
  tieEqual();
}

/// The longest run of equal units from the first place at which there is one; then on from its end.
void LayoutTies::tieBlocks() {
  const size_t number = signatures.size();
  SmallVector<size_t> products = {0}; // before each op
  for (Operation *op : order)
    products.push_back(products.back() + (effortOf(op) == Effort::Product));
  for (size_t from = 0; from < number;) {
    size_t unit = 0, repeats = 0;
    for (size_t length = 1; from + 2 * length <= number && !unit; ++length) {
      if (products[from + length] - products[from] < leastProducts)
        continue;
      size_t equal = 0; // ops that are equal to those a unit later
      while (from + equal + length < number && signatures[from + equal] == signatures[from + equal + length])
        ++equal;
      if (equal >= length) {
        unit = length;
        repeats = 1 + equal / length;
      }
    }
    for (size_t place = unit; place < unit * repeats; ++place)
      ops[order[from + place]] = order[from + place % unit];
    from += unit ? unit * repeats : 1;
  }
}

Value LayoutTies::root(Value source) const {
  for (auto found = sources.find(source); found != sources.end(); found = sources.find(source))
    source = found->second;
  return source;
}

Value LayoutTies::first(Value source) const { return root(source); }

void LayoutTies::tieSources() {
  auto tie = [&](Value a, Value b) {
    a = root(a);
    b = root(b);
    if (a != b && a.getType() == b.getType())
      sources[b] = a;
  };
  for (Operation *op : order)
    if (Operation *equal = ops[op]; equal != op)
      for (auto [a, b] : llvm::zip_equal(equal->getOperands(), op->getOperands()))
        if (isSource(a) && isSource(b))
          tie(a, b);
  std::map<std::string, Value> parameters;
  for (nn::ParameterOp parameter : function.getOps<nn::ParameterOp>())
    parameters[parameter.getName().str()] = parameter.getResult();
  // A state of equal parameters: "adam.m/h.0.w" and "adam.m/h.1.w".
  std::map<std::pair<std::string, const void *>, Value> states;
  for (BlockArgument argument : function.getArguments()) {
    const std::string state = nn::argumentPort(function, argument.getArgNumber()).state;
    auto [kind, of] = StringRef(state).split('/');
    auto parameter = parameters.find(of.str());
    if (parameter == parameters.end())
      continue;
    auto [entry, isNew] = states.try_emplace({kind.str(), root(parameter->second).getAsOpaquePointer()}, argument);
    if (!isNew)
      tie(entry->second, argument);
  }
}

void LayoutTies::tieEqual() {
  std::map<std::pair<int, std::vector<std::pair<const void *, size_t>>>, Operation *> known;
  for (auto [op, signature] : llvm::zip_equal(order, signatures)) {
    std::vector<std::pair<const void *, size_t>> operands;
    for (Value operand : op->getOperands()) {
      if (isSource(operand))
        operands.push_back({root(operand).getAsOpaquePointer(), 0});
      else if (Operation *made = operand.getDefiningOp(); ops.count(made))
        operands.push_back({ops[made], cast<OpResult>(operand).getResultNumber()});
      else if (auto constant = dyn_cast<nn::ConstantOp>(made))
        operands.push_back({constant->getPropertiesAsAttribute().getAsOpaquePointer(), 0});
      else
        operands.push_back({made, 0});
    }
    auto [entry, isNew] = known.try_emplace({signature, std::move(operands)}, ops[op]);
    if (!isNew && ops[op] == op)
      ops[op] = entry->second;
  }
}

} // namespace hpc::search
