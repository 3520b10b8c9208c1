// DeepSpeed's Ulysses (Jacobs et al. 2023, arXiv 2309.14509): ranks that share a sequence exchange rows for heads round
// attention. Heads are dealt out inside of what tensor axes cut of them; where there are fewer groups of heads than ranks, within each group.
//
//   q, k, v [B, H@tp, S@cp, D] -- 3 all-to-alls --> [B, H@(tp, cp), S, D] -- attention --> [B, H@(tp, cp), S, D] -- all-to-all --> [B, H@tp, S@cp, D]
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Annotate/SequenceCut.h"

#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Location.h"
#include "runtime/base/CountText.h"

namespace hpc {
namespace {

class HeadExchange {
public:
  HeadExchange(func::FuncOp function, const SequenceDims &sequence, const dist::Mesh &mesh, ArrayRef<std::string> axes)
      : sequence(sequence), mesh(mesh), axes(axes), dependences(nn::findDependences(function)), facts(dependences) {}

  /// Whether the op's heads, where it mixes positions, are now cut, and its positions whole.
  bool visit(Operation *op) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op->getNumResults() == 0)
      return true;
    ShardingRule rule = ruled.getShardingRule();
    const auto &dims = rule.results[0];
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (factors.size() == 1 && rule.factors[factors[0]].isSequence && rule.factors[factors[0]].canCut) {
        bool hasHeads = dim > 0 && rule.operands[0].size() == dims.size() && rule.operands[0][dim - 1] == dims[dim - 1] && !dims[dim - 1].empty();
        if (hasHeads)
          seed(op, rule, unsigned(dim - 1), unsigned(dim));
        return hasHeads;
      }
    auto isSquare = [&](Value value) { return sequence.isSquare(value) || ofScores.contains(value); };
    std::optional<Access> access = accessOf(op);
    if ((access == Access::Elementwise || access == Access::Combine || access == Access::Composite) && llvm::any_of(op->getOperands(), isSquare))
      for (Value result : op->getResults())
        if (!sequence.isSquare(result) && sequence.of(result))
          ofScores.insert(result); // a number or more a row
    if (access != Access::Product || op->getNumOperands() != 2 ||
        !(isSquare(op->getResult(0)) || llvm::any_of(op->getOperands(), isSquare)))
      return true;
    // Attention that is written out: the last dim that both operands have, after that of samples.
    for (size_t dim = dims.size(); dim-- > 1;)
      if (dims[dim].size() == 1 && llvm::is_contained(rule.operands[0], dims[dim]) && llvm::is_contained(rule.operands[1], dims[dim])) {
        std::optional<SequenceDims::Place> place = sequence.of(op->getResult(0));
        seed(op, rule, unsigned(dim), place ? std::optional(place->dim) : std::nullopt);
        return true;
      }
    return false;
  }

  /// Values of rows of scores: their maxima and sums.
  llvm::DenseSet<Value> ofScores;

private:
  int64_t ranksOf(const dist::AxisNames &names) const {
    int64_t ranks = 1;
    for (const std::string &axis : names)
      ranks *= mesh.size(axis);
    return ranks;
  }

  /// The axes over which a layout cuts each digit of the queries' heads: those of the columns that they come from.
  std::vector<dist::AxisNames> axesOfHeads(Value query, unsigned dim, ArrayRef<int64_t> sizes) {
    std::vector<dist::AxisNames> cut(sizes.size());
    DimTrace trace(facts, sums);
    Piece heads{1, nn::shapeOf(query)[dim]};
    SmallVector<Piece> pieces = {heads};
    llvm::append_range(pieces, trace.back(query, dim, heads));
    for (Piece piece : pieces)
      for (auto &[product, columns] : trace.takeColumns(query, dim, piece)) {
        Value weight = nn::storedForm(product.op->getOperand(product.weight));
        for (auto [value, valueDim] : {std::pair(weight, product.weightN), std::pair(Value(product.op->getResult(0)), *product.resultN)})
          if (std::optional<dist::Seed> seed = dist::seedOf(value))
            addAxes(seed->sharding.dims[valueDim], columns.inner / piece.inner, sizes, cut);
      }
    return cut;
  }

  /// The dim's digits are `sizes`; each element of the last is `inner` wide.
  static void addAxes(const dist::DimSharding &dim, int64_t inner, ArrayRef<int64_t> sizes, std::vector<dist::AxisNames> &cut) {
    int64_t below = 1;
    for (const dist::SubDim &sub : llvm::reverse(dim)) {
      int64_t width = inner;
      for (size_t digit = sizes.size(); digit-- > 0; width *= sizes[digit])
        if (width == below && sizes[digit] == sub.size && cut[digit].empty())
          cut[digit] = sub.axes;
      below *= sub.size;
    }
  }

  void seed(Operation *op, const ShardingRule &rule, unsigned heads, std::optional<unsigned> positions) {
    Value value = op->getResult(0);
    std::vector<int64_t> shape = nn::shapeOf(value).vec();
    if (dist::seedOf(value)) { // the user's, or a layout's
      if (!std::exchange(hasKept, true))
        mlir::emitRemark(op->getLoc()) << "--cp-mode=ulysses: " << describeOp(op) << " is cut by the sidecar or the layout already, so its heads are not exchanged and its keys are gathered";
      return;
    }
    SmallVector<int64_t> sizes;
    for (int factor : rule.results[0][heads])
      sizes.push_back(rule.factors[factor].size);
    std::vector<dist::AxisNames> cut(sizes.size());
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      for (auto [dim, factors] : llvm::enumerate(dims))
        if (factors == rule.results[0][heads] && llvm::all_of(cut, [](auto &names) { return names.empty(); }))
          cut = axesOfHeads(operand, unsigned(dim), sizes);
    // Keys and values have the major digit, groups, alone: dealt out, nothing is gathered.
    const int64_t ranks = ranksOf(axes.vec());
    size_t digit = 0;
    for (size_t other = 1; other < sizes.size(); ++other)
      if (sizes[digit] < ranksOf(cut[digit]) * ranks && sizes[other] / ranksOf(cut[other]) > sizes[digit] / ranksOf(cut[digit]))
        digit = other;
    if (int64_t left = llvm::divideCeil(sizes[digit], ranksOf(cut[digit])); left < ranks && !std::exchange(hasRemarked, true))
      mlir::emitRemark(op->getLoc()) << "--cp-mode=ulysses: " << describeOp(op) << " has " << countText(left, "head") << " for the " << ranks
                                     << " ranks of " << llvm::join(axes, ", ") << ", so some compute no attention; gather gives every rank some";
    llvm::append_range(cut[digit], axes);
    dist::Seed seed{dist::replicated(shape), std::vector<bool>(shape.size(), true)};
    seed.sharding.dims[heads].clear();
    for (auto [size, names] : llvm::zip(sizes, cut))
      seed.sharding.dims[heads].push_back({size, names});
    seed.open[heads] = false;
    if (positions)
      seed.open[*positions] = false;
    if (auto keys = sequence.keysOf(value))
      seed.open[keys->dim] = false;
    dist::setSeed(value, seed);
  }

  const SequenceDims &sequence;
  const dist::Mesh &mesh;
  ArrayRef<std::string> axes;
  nn::Dependences dependences;
  OpFacts facts;
  llvm::DenseSet<Operation *> sums;
  bool hasRemarked = false, hasKept = false;
};
} // namespace

void exchangeHeads(func::FuncOp function, const SequenceDims &sequence, const dist::Mesh &mesh, ArrayRef<std::string> axes) {
  HeadExchange exchange(function, sequence, mesh, axes);
  bool areExchanged = true;
  for (Operation &op : function.front())
    areExchanged &= exchange.visit(&op);
  // Attention reads them for all positions and its own heads; some attention without heads, for its rows.
  for (const auto &[value, place] : sequence.all()) {
    std::optional<SequenceDims::Place> keys = sequence.keysOf(value);
    if (!areExchanged || dist::seedOf(value) || !(keys || exchange.ofScores.contains(value)))
      continue;
    std::vector<int64_t> shape = nn::shapeOf(value).vec();
    dist::Seed seed{dist::replicated(shape), std::vector<bool>(shape.size(), true)};
    seed.open[place.dim] = false;
    if (keys)
      seed.open[keys->dim] = false;
    dist::setSeed(value, seed);
  }
}

} // namespace hpc
