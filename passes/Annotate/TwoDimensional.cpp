// The layout 2d (Optimus, Xu et al. 2021), with operands gathered: x ranks cut rows, and weights are stored in pieces over
// them; y ranks cut the columns of every product, and so the hidden dim between products.
//
//   X [M@x, K@y] -- gather over y --> [M@x, K] --.
//                                                matmul --> Y [M@x, N@y]
//   W [K@x, N@y] -- gather over x --> [K, N@y] --'
//
// Norms in between stay in parts: their statistics, a number or two a row, are all-reduced over y. Attention has heads over y.
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Annotate/WeightLayout.h"

namespace hpc {
namespace {

struct TwoDimensional {
  const LayoutProgram &program;
  func::FuncOp function;
  llvm::DenseMap<Operation *, WeightCut> columns; ///< products whose columns are cut along a part: heads, whole matrices
  llvm::DenseSet<Value> tables;                   ///< of lookups
  std::vector<LayoutSeed> seeds;

  explicit TwoDimensional(const LayoutProgram &program) : program(program), function(program.function) {}

  static Piece allOf(Value value, unsigned dim) { return {1, nn::shapeOf(value)[dim]}; }

  /// Cuts a stored weight: `dim` over y, `rows` over x where each rank gets some.
  void seedWeight(Value weight, unsigned dim, Piece piece, unsigned rows) {
    if (!isa_and_present<nn::ParameterOp>(nn::storedForm(weight).getDefiningOp()))
      return; // computed from parameters: its cut follows from the result
    LayoutSeed seed{weight, {}};
    if (!program.axes.empty())
      seed.cuts.push_back({dim, piece, program.axes});
    if (rows != dim && !program.storageAxes.empty() && nn::shapeOf(weight)[rows] >= program.ranksOf(program.storageAxes))
      seed.cuts.push_back({rows, allOf(weight, rows), program.storageAxes});
    if (!seed.cuts.empty())
      seeds.push_back(seed);
  }

  /// A table that is also the weight of a head has one layout for both: the head sums over y.
  void seedTables() {
    for (Operation &op : function.front())
      if (std::optional<WeightLookup> lookup = matchWeightLookup(&op, program.dependences)) {
        unsigned width = unsigned(nn::shapeOf(lookup->table).size()) - 1;
        if (width == lookup->dim)
          continue;
        seedWeight(lookup->table, width, allOf(lookup->table, width), lookup->dim);
        tables.insert(lookup->table);
      }
  }

  /// Whether a weight is a table, or a view of one.
  bool isTable(Value weight) const {
    for (Operation *op = weight.getDefiningOp(); op && isView(op); op = weight.getDefiningOp())
      weight = op->getOperand(0);
    return tables.contains(weight);
  }

  /// Whether the user's rules leave a product's columns to the layout.
  bool isFree(const WeightMatmul &product, Piece piece) const {
    return program.mayCut(product.op->getOperand(product.weight), {product.weightN, piece, program.axes});
  }

  void seedProducts() {
    for (Operation &op : function.front()) {
      std::optional<WeightMatmul> product = matchWeightMatmul(&op, program.dependences);
      if (!product || !product->resultN || !nn::isProduct(&op) || isTable(op.getOperand(product->weight)))
        continue;
      Piece piece = allOf(op.getResult(0), *product->resultN);
      if (auto found = columns.find(&op); found != columns.end()) {
        product = found->second.product;
        piece = found->second.piece;
      }
      if (!isFree(*product, piece))
        continue;
      seedWeight(op.getOperand(product->weight), product->weightN, piece, product->weightK);
      if (!program.axes.empty())
        seeds.push_back({op.getResult(0), {{*product->resultN, piece, program.axes}}});
    }
  }

  /// Whether a value is rows of tables, or an elementwise result of such rows.
  bool isOfTables(Value value) const {
    llvm::SetVector<Value> open;
    open.insert(value);
    for (size_t next = 0; next < open.size(); ++next)
      if (Operation *op = open[next].getDefiningOp(); op && matchWeightLookup(op, program.dependences))
        return true;
      else if (op && accessOf(op) == Access::Elementwise)
        open.insert(op->operand_begin(), op->operand_end());
    return false;
  }

  /// A composite stays in parts if its whole row comes from columns of products or from tables.
  void seedRows() {
    llvm::DenseSet<Operation *> noSums;
    OpFacts facts(program.dependences);
    DimTrace trace(facts, noSums, /*crossesRows=*/true);
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
        Piece row = allOf(value, unsigned(dim));
        auto isAlongRow = [&](Operation *product) {
          std::optional<WeightMatmul> matched = matchWeightMatmul(product, program.dependences);
          return !columns.contains(product) && matched && nn::shapeOf(product->getResult(0))[*matched->resultN] == row.size;
        };
        if (!llvm::is_contained(trace.back(value, unsigned(dim), row), row))
          continue;
        llvm::SetVector<Operation *> products = trace.columnsOf(value, unsigned(dim), row);
        if (llvm::all_of(products, isAlongRow) && (!products.empty() || isOfTables(value)))
          seeds.push_back({op.getResult(0), {{unsigned(dim), row, program.axes}}});
      }
    }
  }

  void findColumns() {
    WeightLayout layout = chooseLayout(
        function, program.dependences, program.ranksOf(program.axes), [&](const WeightCut &cut) {
          return cut.isRow || isFree(cut.product, cut.piece);
        });
    for (const WeightCut &cut : layout.cuts)
      if (!cut.isRow && cut.product.resultN && !(cut.piece == allOf(cut.product.op->getResult(0), *cut.product.resultN)))
        columns.try_emplace(cut.product.op, cut);
  }

  std::vector<LayoutSeed> find() && {
    if (!program.axes.empty())
      findColumns();
    seedTables();
    seedProducts();
    if (!program.axes.empty())
      seedRows();
    return std::move(seeds);
  }
};
} // namespace

std::vector<LayoutSeed> twoDimensional(const LayoutProgram &program) { return TwoDimensional(program).find(); }

} // namespace hpc
