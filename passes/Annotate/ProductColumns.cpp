// A row is whole if every product along it has as many columns: a sum of several rows, and not a part of one.
#include "passes/Annotate/ProductColumns.h"

#include "compiler/ElementType.h"

namespace hpc {

/// Whether a value is rows of tables, or an elementwise result of such rows.
static bool isOfTables(Value value, const LayoutProgram &program) {
  llvm::SetVector<Value> open;
  open.insert(value);
  for (size_t next = 0; next < open.size(); ++next)
    if (Operation *op = open[next].getDefiningOp(); op && matchWeightLookup(op, program.dependences))
      return true;
    else if (op && accessOf(op) == Access::Elementwise)
      open.insert(op->operand_begin(), op->operand_end());
  return false;
}

std::vector<RowInParts> rowsInParts(const LayoutProgram &program, llvm::function_ref<bool(Operation *)> hasParts) {
  std::vector<RowInParts> rows;
  llvm::DenseSet<Operation *> noSums;
  OpFacts facts(program.dependences);
  DimTrace trace(facts, noSums, /*crossesRows=*/true);
  func::FuncOp function = program.function;
  for (Operation &op : function.front()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || accessOf(&op) != Access::Composite || !program.dependences.lookup(op.getOperand(0)).isTrunk())
      continue;
    ShardingRule rule = ruled.getShardingRule();
    Value value = op.getOperand(0);
    for (auto [dim, factors] : llvm::enumerate(rule.results[0])) {
      if (factors.size() != 1 || !rule.factors[factors[0]].isInternal || !rule.factors[factors[0]].canCut ||
          dim >= rule.operands[0].size() || rule.operands[0][dim] != factors)
        continue;
      Piece row{1, nn::shapeOf(value)[dim]};
      auto isAlongRow = [&](Operation *product) {
        std::optional<WeightMatmul> matched = matchWeightMatmul(product, program.dependences);
        return !hasParts(product) && matched && nn::shapeOf(product->getResult(0))[*matched->resultN] == row.size;
      };
      if (!llvm::is_contained(trace.back(value, unsigned(dim), row), row))
        continue;
      llvm::SetVector<Operation *> products = trace.columnsOf(value, unsigned(dim), row);
      if (llvm::all_of(products, isAlongRow) && (!products.empty() || isOfTables(value, program)))
        rows.push_back({op.getResult(0), unsigned(dim)});
    }
  }
  return rows;
}

/// Rows that a rank does not hold save memory once; the all-reduce that fetches them costs bytes in every
/// micro-batch. A table that is a head's weight too is cut for the head. So vocabularies are cut, and tables of a few
/// rows that are read many times (token types, T5's relative positions) are not.
bool paysByRows(const WeightLookup &lookup, const LayoutProgram &program) {
  for (Operation *user : lookup.table.getUsers())
    if (matchWeightMatmul(user, program.dependences))
      return true;
  auto bytes = [](Value value) {
    return nn::tensorType(value).getNumElements() * elementBytes(nn::tensorType(value).getElementType());
  };
  int64_t batchCuts = program.mesh.sizeOf(dist::AxisRole::Time) * program.mesh.rowRanks();
  return bytes(lookup.table) >= 2 * bytes(lookup.op->getResult(0)) / batchCuts; // both times (k - 1) / k
}

Value tableOf(Value weight) {
  weight = nn::storedForm(weight);
  for (Operation *op = weight.getDefiningOp(); op && isView(op); op = weight.getDefiningOp())
    weight = nn::storedForm(op->getOperand(0));
  return weight;
}

bool sumsLessByRows(const WeightLookup &lookup, const LayoutProgram &program) {
  auto elements = [](Value value) { return nn::tensorType(value).getNumElements(); };
  std::optional<WeightMatmul> head;
  int64_t ofLookups = 0;
  for (Operation &op : func::FuncOp(program.function).front()) {
    std::optional<WeightMatmul> product = matchWeightMatmul(&op, program.dependences);
    if (!head && product && product->resultN && nn::isProduct(&op) && tableOf(op.getOperand(product->weight)) == nn::storedForm(lookup.table))
      head = product;
    if (std::optional<WeightLookup> other = matchWeightLookup(&op, program.dependences); other && other->table == lookup.table)
      ofLookups += elements(op.getResult(0));
  }
  return head && ofLookups + elements(head->op->getOperand(head->activation)) < elements(head->op->getResult(0));
}

SmallVector<OpResult> rowSumsOf(const WeightLookup &lookup, func::FuncOp function) {
  SmallVector<OpResult> sums;
  for (Operation &op : function.front())
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
      for (OpResult result : op.getResults())
        if (nn::shapeOf(result) == nn::shapeOf(lookup.table)) {
          ShardingRule rule = ruled.getShardingRule();
          const auto &factors = rule.results[result.getResultNumber()][lookup.dim];
          if (factors.size() == 1 && rule.factors[factors[0]].isIndex)
            sums.push_back(result);
        }
  return sums;
}

} // namespace hpc
