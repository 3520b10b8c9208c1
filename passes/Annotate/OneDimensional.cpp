// The layout 1d, Megatron's (Shoeybi et al. 2019): products by columns and rows (WeightLayout), then vocabulary: embedding
// tables, where that pays, and heads. All tensor axes cut the same dim.
//
//   x [M, K] --- W1 [K, N@tp] --- gelu [M, N@tp] --- W2 [N@tp, K] --- partial{tp}: one all-reduce a pair
#include "passes/Annotate/ProductColumns.h"

#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Location.h"

namespace hpc {

/// Whether the user wants a product's result whole, before or after its bias.
static bool isGathered(Operation *product) {
  for (Operation *op = product; op; op = op->hasOneUse() ? *op->user_begin() : nullptr) {
    if (op != product && accessOf(op) != Access::Elementwise)
      return false;
    if (!dist::wholeOutputDims(op).empty())
      return true;
  }
  return false;
}

/// The columns of a product: its weight's, or its result's where an op that cannot cut them computes the weight from
/// parameters (an unequal part of one); a rank then slices its columns of the whole weight, which moves nothing.
static std::pair<Value, unsigned> columnsOf(const WeightMatmul &product) {
  Value weight = product.op->getOperand(product.weight);
  if (auto ruled = dyn_cast<ShardingRuleOpInterface>(weight.getDefiningOp())) {
    ShardingRule rule = ruled.getShardingRule();
    for (int factor : rule.results[cast<OpResult>(weight).getResultNumber()][product.weightN])
      if (!rule.factors[factor].canCut)
        return {product.op->getResult(0), *product.resultN};
  }
  return {weight, product.weightN};
}

std::vector<LayoutSeed> oneDimensional(const LayoutProgram &program) {
  std::vector<LayoutSeed> seeds;
  if (program.axes.empty())
    return seeds;
  auto seed = [&](std::pair<Value, unsigned> place, Piece piece) {
    seeds.push_back({place.first, {{place.second, piece, program.axes}}});
  };
  WeightLayout layout = chooseLayout(program.function, program.dependences, program.ranksOf(program.axes), [&](const WeightCut &cut) {
    const WeightMatmul &product = cut.product;
    DimCut wanted{cut.isRow ? product.weightK : product.weightN, cut.piece, program.axes};
    return program.mayCut(product.op->getOperand(product.weight), wanted) && (cut.isRow || !isGathered(product.op));
  });
  for (const WeightCut &cut : layout.cuts) {
    const WeightMatmul &product = cut.product;
    if (cut.isRecurrent)
      seed({product.op->getResult(0), *product.resultN}, cut.piece);
    else if (cut.isRow)
      seed({product.op->getOperand(product.weight), product.weightK}, cut.piece);
    else
      seed(columnsOf(product), cut.piece);
  }
  for (auto [value, dim] : layout.wholeDims)
    seeds.push_back({value, {{dim}}});
  for (Operation &op : func::FuncOp(program.function).front())
    if (std::optional<WeightLookup> lookup = matchWeightLookup(&op, program.dependences); lookup && paysByRows(*lookup, program))
      seed({lookup->table, lookup->dim}, {1, nn::shapeOf(lookup->table)[lookup->dim]});
  for (const WeightMatmul &head : layout.heads)
    seed(columnsOf(head), {1, nn::shapeOf(head.op->getOperand(head.weight))[head.weightN]});
  for (const WeightMatmul &product : layout.whole)
    mlir::emitRemark(product.op->getLoc())
        << "[hpc-annotate-tensor-parallel] the weight of '" << nodeName(product.op->getLoc())
        << "' stays whole on every rank: its product pairs with no other";
  return seeds;
}

} // namespace hpc
