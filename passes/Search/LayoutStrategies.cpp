// Digits along which a dim can be cut are those of some op's factor: they flow through the program until no dim gets a new one.
#include "passes/Search/LayoutStrategies.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::search {

using namespace dist;

static constexpr size_t mostPieces = 6; // of one dim

// ---- where dims can be cut ----------------------------------------------------------------------

/// Calls `visit` with each dim of an op's operands and results, and its factors.
static void eachDim(Operation *op, const ShardingRule &rule, llvm::function_ref<void(Value, size_t, ArrayRef<int>)> visit) {
  for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims))
      visit(value, dim, factors);
  for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule.results))
    for (auto [dim, factors] : llvm::enumerate(dims))
      visit(value, dim, factors);
}

std::vector<LayoutStrategies::Pieces> LayoutStrategies::piecesOf(Operation *op, const ShardingRule &rule) {
  std::vector<Pieces> found(rule.factors.size());
  eachDim(op, rule, [&](Value value, size_t dim, ArrayRef<int> factors) {
    std::vector<Pieces> &known = pieces[value];
    known.resize(nn::shapeOf(value).size());
    int64_t stride = 1;
    for (int factor : llvm::reverse(factors)) {
      int64_t size = rule.factors[factor].size;
      found[factor].insert({1, size});
      for (auto [inner, length] : known[dim])
        if (inner % stride == 0 && size % (inner / stride * length) == 0 && found[factor].size() < mostPieces)
          found[factor].insert({inner / stride, length});
      stride *= size;
    }
  });
  return found;
}

void LayoutStrategies::findPieces() {
  std::vector<std::pair<Operation *, ShardingRule>> rules;
  for (Operation &op : function.front())
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
      rules.push_back({&op, ruled.getShardingRule()});
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    auto visit = [&](Operation *op, const ShardingRule &rule) {
      std::vector<Pieces> found = piecesOf(op, rule);
      eachDim(op, rule, [&](Value value, size_t dim, ArrayRef<int> factors) {
        int64_t stride = 1;
        for (int factor : llvm::reverse(factors)) {
          for (auto [inner, length] : found[factor])
            if (length > 1 && pieces[value][dim].size() < mostPieces)
              isChanged |= pieces[value][dim].insert({inner * stride, length}).second;
          stride *= rule.factors[factor].size;
        }
      });
    };
    for (auto &[op, rule] : rules)
      visit(op, rule);
    for (auto &[op, rule] : llvm::reverse(rules))
      visit(op, rule);
  }
}

// ---- strategies ---------------------------------------------------------------------------------

/// A dim whose piece (inner, size) is cut over `axis` inside of all else that cuts it; nullopt where it is no one sub-dim, or too short.
static std::optional<DimSharding> cutFurther(const DimSharding &cut, int64_t size, std::pair<int64_t, int64_t> piece, const std::string &axis,
                                             const Mesh &mesh) {
  auto [inner, length] = piece;
  std::vector<int64_t> sizes;
  for (int64_t each : {size / (inner * length), length, inner})
    if (each > 1)
      sizes.push_back(each);
  size_t place = size / (inner * length) > 1;
  std::vector<DimSharding> groups = {cut};
  if (sizes.size() > 1 && !splitAt(cut, sizes, mesh, groups))
    return std::nullopt;
  DimSharding &group = groups[place];
  if (group.size() != 1)
    return std::nullopt;
  SubDim further = group.front();
  further.axes.push_back(axis);
  if (boxSize(group.front(), mesh) < mesh.size(axis))
    return std::nullopt;
  group = {further};
  DimSharding result;
  for (const DimSharding &each : groups)
    result.insert(result.end(), each.begin(), each.end());
  return normalize(result, mesh);
}

std::vector<OpSharding> LayoutStrategies::of(Operation *op) {
  OpSharding base{cast<ShardingRuleOpInterface>(op).getShardingRule(), *factorsOf(op), {}, -1};
  base.setPassing(op);
  std::vector<OpSharding> all = {base};
  // Values that come from constants alone are whole everywhere: its readers slice it.
  const bool isConstant = llvm::all_of(op->getOperands(), [&](Value operand) {
    nn::Dependence from = dependences.lookup(operand);
    return !from.fromInputs && !from.fromWeights;
  });
  if (isConstant)
    return all;
  std::vector<Pieces> found = piecesOf(op, base.rule);
  const LinearClause &linear = base.rule.linear;
  for (const std::string &axis : free) {
    std::vector<OpSharding> more = all; // the axis does nothing
    for (const OpSharding &each : all) {
      for (auto [number, factor] : llvm::enumerate(base.rule.factors))
        for (auto piece : found[number]) {
          std::optional<DimSharding> cut = factor.size > 1 ? cutFurther(each.factors[number], factor.size, piece, axis, mesh) : std::nullopt;
          if (!cut || !mayCut(factor, *cut))
            continue;
          more.push_back(each);
          more.back().factors[number] = *cut;
        }
      auto mayBePartial = [&](int operand) { return partial[op->getOperand(unsigned(operand))].count(axis) != 0; };
      if (linear.kind == LinearClause::Sum && !linear.operands.empty() && llvm::all_of(linear.operands, mayBePartial)) {
        more.push_back(each);
        more.back().passing = unite(each.passing, {axis});
      }
      if (linear.kind == LinearClause::Product)
        for (int operand : linear.operands)
          if (mayBePartial(operand) && (each.carrier < 0 || each.carrier == operand)) {
            more.push_back(each);
            more.back().passing = unite(each.passing, {axis});
            more.back().carrier = operand;
          }
    }
    all = std::move(more);
  }
  // Cuts that hold the same are one.
  std::set<std::string> known;
  llvm::erase_if(all, [&](const OpSharding &each) {
    std::string text = llvm::join(each.passing, ",") + std::to_string(each.carrier);
    for (const DimSharding &factor : each.factors)
      text += "|" + toString(normalize(factor, mesh));
    return !known.insert(text).second;
  });
  for (const OpSharding &each : all)
    for (OpResult result : op->getResults()) {
      AxisNames terms = each.result(result.getResultNumber(), mesh).partial;
      partial[result].insert(terms.begin(), terms.end());
    }
  return all;
}


} // namespace hpc::search
