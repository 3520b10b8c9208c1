// Megatron's layout from structure. Every weight matmul is asked, in program order, where its contracted dim comes
// from; the answer makes it a row matmul and its sources column matmuls. Before that, matrices that are stacked and
// summed over (experts) are dealt out whole; what remains is vocabulary: embedding tables, where that pays, and heads.
#include "passes/Annotate/DimTrace.h"
#include "passes/Annotate/Passes.h"

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
  llvm::DenseSet<Operation *> sums, columns; ///< over what is cut (products by rows among them); products by columns
  std::optional<DimTrace> trace;

  Annotator(func::FuncOp function, dist::Mesh mesh, std::vector<std::string> axes)
      : function(function), mesh(std::move(mesh)), axes(std::move(axes)), origins(nn::findOrigins(function)) {}

  /// Seeds a weight: `piece` of dim `dim` cut over the axes. The first seed of a value stays, and so does a weight
  /// without elements, or one that is made of parameters that the user has cut.
  void seed(Value weight, unsigned dim, Piece piece) {
    Operation *op = weight.getDefiningOp();
    if (op->hasAttr(dist::seedAttrName) || nn::tensorType(weight).getNumElements() == 0 || !userSeeds(weight).empty())
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

  /// What the user says about the parameters that a weight is, or is made of (a reshaped kernel of a convolution).
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

  using Sources = std::vector<std::pair<WeightMatmul, Piece>>;

  /// Columns that the user has elsewhere would have to be gathered, and cut again for the sum.
  bool areFree(const Sources &sources) const {
    return llvm::all_of(sources, [&](auto &source) {
      const WeightMatmul &product = source.first;
      return isFree(product.op->getOperand(product.weight), product.weightN, source.second) && !isGathered(product.op);
    });
  }

  void seedColumns(const Sources &sources) {
    for (auto &[source, piece] : sources)
      if (columns.insert(source.op).second)
        seedColumns(source, piece);
  }

  /// The first piece of an operand's dim that comes from columns which may be cut, if any does.
  std::optional<Piece> pieceOfColumns(Value value, unsigned dim) {
    for (Piece piece : trace->back(value, dim, {1, nn::shapeOf(value)[dim]}))
      if (trace->reachesColumns(value, dim, piece))
        return trace->tearsColumns(value, dim, piece) ? std::nullopt : std::optional(piece);
    return std::nullopt;
  }

  /// Deals out whole matrices, if the op sums over the results of a stack of them and there is one for every rank. Cut
  /// by columns and rows instead, each matrix' sum would have to be whole before its bias.
  void dealOut(Operation *op) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || matchWeightMatmul(op, origins) || (accessOf(op) != Access::Combine && accessOf(op) != Access::Product))
      return;
    ShardingRule rule = ruled.getShardingRule();
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      for (auto [dim, factors] : llvm::enumerate(dims)) {
        if (factors.size() != 1 || rule.factors[factors[0]].reduction != ReduceKind::Sum)
          continue;
        std::optional<Piece> piece = pieceOfColumns(operand, dim);
        if (!piece || piece->size < degree())
          continue;
        Sources sources = trace->takeColumns(operand, dim, *piece);
        bool isStack = llvm::any_of(sources, [](auto &source) {
          return llvm::is_contained(llvm::make_first_range(source.first.stacked), source.first.weightN);
        });
        if (!isStack || !areFree(sources))
          continue;
        sums.insert(op);
        seedColumns(sources);
      }
  }

  int64_t degree() const {
    int64_t degree = 1;
    for (const std::string &axis : axes)
      degree *= mesh.size(axis);
    return degree;
  }

  /// Cuts a matmul by rows and its sources by columns, if its contracted dim has a piece that comes from columns alone.
  bool pair(WeightMatmul matmul) {
    if (columns.contains(matmul.op)) // its stack is dealt out
      return true;
    if (!matmul.activationK)
      return false;
    Value activation = matmul.op->getOperand(matmul.activation);
    std::optional<Piece> piece = pieceOfColumns(activation, *matmul.activationK);
    if (!piece || !isFree(matmul.op->getOperand(matmul.weight), matmul.weightK, *piece))
      return false;
    Sources sources = trace->takeColumns(activation, *matmul.activationK, *piece); // before it is one of the sums
    if (!areFree(sources))
      return false;
    sums.insert(matmul.op);
    seed(matmul.op->getOperand(matmul.weight), matmul.weightK, *piece);
    seedColumns(sources);
    return true;
  }

  /// Dims of results that a use's dim becomes, as long as the op leaves it cuttable; nothing when it does not.
  static std::optional<SmallVector<std::pair<Value, unsigned>>> follow(OpOperand &use, unsigned dim) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
    if (!ruled)
      return std::nullopt;
    ShardingRule rule = ruled.getShardingRule();
    const auto &factors = rule.operands[use.getOperandNumber()][dim];
    if (factors.size() != 1 || !rule.factors[factors[0]].canCut || rule.factors[factors[0]].isInternal ||
        rule.factors[factors[0]].reduction)
      return std::nullopt;
    SmallVector<std::pair<Value, unsigned>> next;
    for (auto [result, dims] : llvm::zip(use.getOwner()->getResults(), rule.results))
      for (auto [resultDim, resultFactors] : llvm::enumerate(dims))
        if (llvm::is_contained(resultFactors, factors[0])) {
          if (resultFactors.size() != 1)
            return std::nullopt;
          next.push_back({result, unsigned(resultDim)});
        }
    return next.empty() ? std::nullopt : std::optional(next);
  }

  /// Whether dim `dim` of a value reaches only function results, through ops that leave it cuttable.
  bool leadsToOutputs(Value value, unsigned dim) {
    SmallVector<std::pair<Value, unsigned>> pending = {{value, dim}};
    llvm::DenseSet<std::pair<Value, unsigned>> seen;
    while (!pending.empty()) {
      auto [at, atDim] = pending.pop_back_val();
      if (!seen.insert({at, atDim}).second)
        continue;
      for (OpOperand &use : at.getUses()) {
        if (isa<func::ReturnOp>(use.getOwner()))
          continue;
        auto next = follow(use, atDim);
        if (!next)
          return false;
        llvm::append_range(pending, *next);
      }
    }
    return true;
  }

  void run() {
    trace.emplace(origins, sums);
    for (Operation &op : function.getBody().front())
      dealOut(&op);
    trace.emplace(origins, sums); // what it was told of products is not decided yet
    SmallVector<WeightMatmul> rest;
    for (Operation &op : function.getBody().front())
      if (std::optional<WeightMatmul> matmul = matchWeightMatmul(&op, origins))
        if (!pair(*matmul))
          rest.push_back(*matmul);
    for (Operation &op : function.getBody().front())
      if (std::optional<WeightLookup> lookup = matchWeightLookup(&op, origins); lookup && paysByRows(*lookup))
        seed(lookup->table, lookup->dim, {1, nn::shapeOf(lookup->table)[lookup->dim]});
    for (WeightMatmul &matmul : rest) {
      if (columns.contains(matmul.op))
        continue;
      if (matmul.resultN && leadsToOutputs(matmul.op->getResult(0), *matmul.resultN))
        seedColumns(matmul, {1, nn::shapeOf(matmul.op->getOperand(matmul.weight))[matmul.weightN]});
      else
        mlir::emitRemark(matmul.op->getLoc())
            << "[hpc-annotate-tensor-parallel] the weight of '" << nodeName(matmul.op->getLoc())
            << "' stays whole on every rank: its product pairs with no other";
    }
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
