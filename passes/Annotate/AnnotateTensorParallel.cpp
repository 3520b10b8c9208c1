// Megatron's layout as seeds: products by columns and rows (WeightLayout), then vocabulary: embedding tables, where that
// pays, and heads. What the user says goes first, also about the parameters that a weight is made of.
#include "passes/Annotate/Passes.h"
#include "passes/Annotate/WeightLayout.h"

#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATETENSORPARALLEL
#include "passes/Annotate/Passes.h.inc"

namespace {
struct Annotator {
  func::FuncOp function;
  dist::Mesh mesh;
  std::vector<std::string> axes; ///< that cut weights, outermost first
  nn::Origins origins;

  Annotator(func::FuncOp function, dist::Mesh mesh, std::vector<std::string> axes)
      : function(function), mesh(std::move(mesh)), axes(std::move(axes)), origins(nn::findOrigins(function)) {}

  /// Seeds a weight: `piece` of dim `dim` cut over the axes. The first seed of a value stays, and so does a weight
  /// without elements, or one that is made of parameters that the user has cut.
  void seed(Value weight, unsigned dim, Piece piece) {
    if (!userSeeds(weight).empty())
      return;
    weight = nn::storedForm(weight); // where ZeRO looks for it
    Operation *op = weight.getDefiningOp();
    if (op->hasAttr(dist::seedAttrName) || nn::tensorType(weight).getNumElements() == 0)
      return;
    dist::Sharding sharding = dist::replicated(nn::shapeOf(weight).vec());
    sharding.dims[dim] = cutPiece(nn::shapeOf(weight)[dim], piece);
    dist::setSeed(weight, dist::layoutSeed(sharding));
  }

  /// Seeds the columns of a product: its weight's, or where that is made of parameters by an op that cannot cut them (an
  /// unequal part of one) its result's; a rank then takes its columns of the whole weight, which moves nothing.
  void seedColumns(const WeightMatmul &matmul, Piece piece) {
    Value weight = matmul.op->getOperand(matmul.weight);
    auto ruled = dyn_cast<ShardingRuleOpInterface>(weight.getDefiningOp());
    ShardingRule rule = ruled ? ruled.getShardingRule() : ShardingRule();
    if (!ruled || llvm::all_of(rule.results[cast<OpResult>(weight).getResultNumber()][matmul.weightN],
                               [&](int factor) { return rule.factors[factor].canCut; }))
      return seed(weight, matmul.weightN, piece);
    seed(matmul.op->getResult(0), *matmul.resultN, piece);
  }

  dist::DimSharding cutPiece(int64_t size, Piece piece) const {
    int64_t outer = size / piece.size / piece.inner;
    dist::DimSharding cut;
    if (outer != 1)
      cut.push_back({outer, {}});
    cut.push_back({piece.size, axes});
    if (piece.inner != 1)
      cut.push_back({piece.inner, {}});
    return cut;
  }

  /// The user's rules for the parameters that a weight is, or is made of (a reshaped kernel of a convolution).
  SmallVector<dist::Seed> userSeeds(Value weight) const {
    SmallVector<dist::Seed> seeds;
    llvm::SetVector<Value> open;
    open.insert(weight);
    for (size_t next = 0; next < open.size(); ++next)
      if (Operation *op = open[next].getDefiningOp(); op && origins.lookup(open[next]).isWeight()) {
        open.insert(op->operand_begin(), op->operand_end());
        if (std::optional<dist::Seed> seed = dist::seedOf(open[next]); seed && seed->isBinding())
          seeds.push_back(*seed);
      }
    return seeds;
  }

  /// Whether the user, who goes first, has nothing against such a seed. Of what is made of a parameter nobody knows how
  /// it is cut yet, only whether it is.
  bool isFree(Value weight, unsigned dim, Piece piece) const {
    if (std::optional<dist::Seed> seed = dist::seedOf(weight); seed && seed->isBinding())
      return dist::normalize(seed->sharding.dims[dim], mesh) ==
             dist::normalize(cutPiece(nn::shapeOf(weight)[dim], piece), mesh);
    return llvm::none_of(userSeeds(weight), [](const dist::Seed &seed) { return dist::isReplicated(seed.sharding); });
  }

  /// Whether the user wants a product's result whole, before or behind its bias.
  static bool isGathered(Operation *product) {
    for (Operation *op = product; op; op = op->hasOneUse() ? *op->user_begin() : nullptr) {
      if (op != product && accessOf(op) != Access::Elementwise)
        return false;
      if (!dist::wholeOutputDims(op).empty())
        return true;
    }
    return false;
  }

  /// Rows that a rank does not hold save memory once; the all-reduce that fetches them costs bytes in every
  /// micro-batch. A table that is a head's weight too is cut for the head. So vocabularies are cut, and tables of a few
  /// rows that are read many times (token types, T5's relative positions) are not.
  bool paysByRows(const WeightLookup &lookup) {
    for (Operation *user : lookup.table.getUsers())
      if (matchWeightMatmul(user, origins))
        return true;
    auto bytes = [](Value value) {
      return nn::tensorType(value).getNumElements() * elementBytes(nn::tensorType(value).getElementType());
    };
    int64_t batchCuts = mesh.sizeOf(dist::AxisRole::Time) * mesh.sizeOf(dist::AxisRole::Data);
    return bytes(lookup.table) >= 2 * bytes(lookup.op->getResult(0)) / batchCuts; // both times (k - 1) / k
  }

  /// Closes one dim of a value, which nobody has seeded, to cuts by others.
  static void keepWhole(Value value, unsigned dim) {
    if (value.getDefiningOp()->hasAttr(dist::seedAttrName))
      return;
    dist::Seed seed;
    seed.sharding = dist::replicated(nn::shapeOf(value).vec());
    seed.open.assign(nn::shapeOf(value).size(), true);
    seed.open[dim] = false;
    dist::setSeed(value, seed);
  }

  int64_t degree() const {
    int64_t degree = 1;
    for (const std::string &axis : axes)
      degree *= mesh.size(axis);
    return degree;
  }

  void run() {
    WeightLayout layout = chooseLayout(function, origins, degree(), [&](const WeightCut &cut) {
      const WeightMatmul &product = cut.product;
      return isFree(product.op->getOperand(product.weight), cut.isRow ? product.weightK : product.weightN, cut.piece) &&
             (cut.isRow || !isGathered(product.op));
    });
    for (const WeightCut &cut : layout.cuts)
      if (cut.isRecurrent)
        seed(cut.product.op->getResult(0), *cut.product.resultN, cut.piece);
      else if (cut.isRow)
        seed(cut.product.op->getOperand(cut.product.weight), cut.product.weightK, cut.piece);
      else
        seedColumns(cut.product, cut.piece);
    for (auto [value, dim] : layout.wholeDims)
      keepWhole(value, dim);
    for (Operation &op : function.getBody().front())
      if (std::optional<WeightLookup> lookup = matchWeightLookup(&op, origins); lookup && paysByRows(*lookup))
        seed(lookup->table, lookup->dim, {1, nn::shapeOf(lookup->table)[lookup->dim]});
    for (const WeightMatmul &head : layout.heads)
      seedColumns(head, {1, nn::shapeOf(head.op->getOperand(head.weight))[head.weightN]});
    for (const WeightMatmul &product : layout.whole)
      mlir::emitRemark(product.op->getLoc())
          << "[hpc-annotate-tensor-parallel] the weight of '" << nodeName(product.op->getLoc())
          << "' stays whole on every rank: its product pairs with no other";
  }
};

struct AnnotateTensorParallel : impl::AnnotateTensorParallelBase<AnnotateTensorParallel> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    dist::Mesh mesh = dist::meshOf(getOperation());
    std::vector<std::string> axes;
    llvm::copy_if(mesh.axesOf(dist::AxisRole::Tensor), std::back_inserter(axes),
                  [&](const std::string &axis) { return mesh.size(axis) > 1; });
    if (function && !axes.empty())
      Annotator(function, mesh, axes).run();
  }
};
} // namespace

} // namespace hpc
