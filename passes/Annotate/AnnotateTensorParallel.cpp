// Megatron's layout from structure. Every weight matmul is asked, in program order, where its contracted dim comes
// from; the answer makes it a row matmul and its sources column matmuls. What remains is vocabulary: embedding tables
// and heads.
#include "passes/Annotate/DimTrace.h"
#include "passes/Annotate/Passes.h"

#include "compiler/Location.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATETENSORPARALLEL
#include "passes/Annotate/Passes.h.inc"

namespace {
struct Annotator {
  func::FuncOp function;
  nn::Origins origins;
  llvm::DenseSet<Operation *> rows, columns;

  explicit Annotator(func::FuncOp function) : function(function), origins(nn::findOrigins(function)) {}

  /// Seeds a weight: `piece` of dim `dim` cut over tp. The first seed of a value stays.
  void seed(Value weight, unsigned dim, Piece piece) {
    Operation *op = weight.getDefiningOp();
    if (op->hasAttr("dist.seed"))
      return;
    std::vector<int64_t> shape = nn::shapeOf(weight).vec();
    dist::Sharding sharding = dist::replicated(shape);
    int64_t outer = shape[dim] / piece.size / piece.inner;
    dist::DimSharding cut;
    if (outer != 1)
      cut.push_back({outer, {}});
    cut.push_back({piece.size, {"tp"}});
    if (piece.inner != 1)
      cut.push_back({piece.inner, {}});
    sharding.dims[dim] = cut;
    op->setAttr("dist.seed", dist::ShardingAttr::get(op->getContext(), sharding));
    op->setAttr("dist.priority", Builder(op->getContext()).getI64IntegerAttr(1));
  }

  /// Cuts a matmul by rows and its sources by columns, if its contracted dim has a piece that comes from columns alone.
  bool pair(WeightMatmul matmul) {
    Value activation = matmul.op->getOperand(matmul.activation());
    unsigned rank = unsigned(nn::shapeOf(activation).size());
    // k is the last dim of a left operand and the last but one of a right one, unless it is stored transposed.
    bool kLast = matmul.weight == 1 ? !matmul.op.getTransposeLhs() : matmul.op.getTransposeRhs();
    unsigned kDim = kLast ? rank - 1 : rank - 2;
    int64_t k = nn::shapeOf(activation)[kDim];
    SmallVector<Piece> pieces = DimTrace(origins, rows).back(activation, kDim, {1, k});
    if (pieces.empty())
      return false;
    // Once more for the outermost piece alone, to learn which columns it reaches.
    DimTrace trace(origins, rows);
    trace.back(activation, kDim, pieces.front());
    if (trace.columns.empty())
      return false;
    rows.insert(matmul.op);
    seed(matmul.op->getOperand(matmul.weight), matmul.weightK, pieces.front());
    for (auto &[source, piece] : trace.columns)
      if (columns.insert(source.op).second)
        seed(source.op->getOperand(source.weight), source.weightN, piece);
    return true;
  }

  /// Whether dim `dim` of a value reaches only function results, through ops that leave it cuttable.
  bool leadsToOutputs(Value value, unsigned dim) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<func::ReturnOp>(user))
        continue;
      auto ruled = dyn_cast<ShardingRuleOpInterface>(user);
      if (!ruled)
        return false;
      ShardingRule rule = ruled.getShardingRule();
      const auto &factors = rule.operands[use.getOperandNumber()][dim];
      if (factors.size() != 1 || !rule.factors[factors[0]].canCut || rule.factors[factors[0]].isInternal ||
          rule.factors[factors[0]].reduction != Reduction::None)
        return false;
      bool isFound = false;
      for (auto [result, dims] : llvm::zip(user->getResults(), rule.results))
        for (auto [resultDim, resultFactors] : llvm::enumerate(dims))
          if (llvm::is_contained(resultFactors, factors[0])) {
            isFound = true;
            if (resultFactors.size() != 1 || !leadsToOutputs(result, resultDim))
              return false;
          }
      if (!isFound)
        return false;
    }
    return true;
  }

  void run() {
    SmallVector<WeightMatmul> rest;
    for (Operation &op : function.getBody().front())
      if (std::optional<WeightMatmul> matmul = matchWeightMatmul(&op, origins))
        if (!pair(*matmul))
          rest.push_back(*matmul);
    for (Operation &op : function.getBody().front())
      if (auto embedding = dyn_cast<nn::EmbeddingOp>(op))
        if (origins.lookup(embedding.getTable()).isWeight())
          seed(embedding.getTable(), 0, {1, nn::shapeOf(embedding.getTable())[0]});
    for (WeightMatmul &matmul : rest) {
      if (columns.contains(matmul.op))
        continue;
      Value result = matmul.op.getResult();
      unsigned last = unsigned(nn::shapeOf(result).size()) - 1;
      if (leadsToOutputs(result, matmul.weight == 1 ? last : last - 1))
        seed(matmul.op->getOperand(matmul.weight), matmul.weightN,
             {1, nn::shapeOf(matmul.op->getOperand(matmul.weight))[matmul.weightN]});
      else
        matmul.op.emitRemark() << "weight of '" << nodeName(matmul.op.getLoc())
                               << "' is not cut: it pairs with no other matmul; annotate it in the sidecar";
    }
  }
};

struct AnnotateTensorParallel : impl::AnnotateTensorParallelBase<AnnotateTensorParallel> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && dist::meshOf(getOperation()).size("tp") > 1)
      Annotator(function).run();
  }
};
} // namespace

} // namespace hpc
