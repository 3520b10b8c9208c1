// A trace finds the sources of each weight product's contracted dim, in program order; if they are columns, it becomes
// a product by rows and they products by columns. Before that, stacked matrices whose results are summed (experts) are
// dealt out whole; after it, products whose results are added to such a sum are cut by rows for free.
#include "passes/Annotate/WeightLayout.h"
#include "passes/Annotate/Recurrence.h"

#include "compiler/Dialect/NN/SumTree.h"
#include "compiler/ElementType.h"

#include "llvm/ADT/MapVector.h"

namespace hpc {
namespace {

using Sources = std::vector<std::pair<WeightMatmul, Piece>>;

/// Whether a rank can compute its part of such a dim by itself, and the result has the dim.
bool isKept(const ShardingFactor &factor) { return factor.canCut && !factor.isInternal && !factor.reduction; }

/// Dims of results that a use's dim becomes, as long as the op leaves it cuttable; otherwise nullopt.
std::optional<SmallVector<std::pair<Value, unsigned>>> follow(OpOperand &use, unsigned dim) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
  if (!ruled)
    return std::nullopt;
  ShardingRule rule = ruled.getShardingRule();
  const auto &factors = rule.operands[use.getOperandNumber()][dim];
  if (factors.size() != 1 || !isKept(rule.factors[factors[0]]))
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

/// Whether `value`, if it became a sum over a cut dim, would be a term of one of these sums and share its all-reduce.
bool joinsSum(Value value, const llvm::DenseSet<Operation *> &sums) {
  return llvm::any_of(nn::sumsOf(value), [&](Operation *root) { return sums.contains(root); });
}

struct LayoutFinder {
  func::FuncOp function;
  OpFacts &facts;
  int64_t degree;
  MayCut mayCut;
  ArrayRef<WeightMatmul> products;         ///< of the program, in its order
  const llvm::DenseSet<Operation *> &kept; ///< those that nobody may cut by columns
  const std::vector<Recurrence> &recurrences;
  llvm::DenseSet<Operation *> isRecurrent; ///< products of those
  WeightLayout layout;
  llvm::DenseSet<Operation *> isWhole; ///< ops that a trace finds whole: sums, and those in `kept`
  std::optional<DimTrace> trace;

  LayoutFinder(func::FuncOp function, OpFacts &facts, int64_t degree, MayCut mayCut, ArrayRef<WeightMatmul> products,
               const llvm::DenseSet<Operation *> &kept, const std::vector<Recurrence> &recurrences)
      : function(function), facts(facts), degree(degree), mayCut(mayCut), products(products), kept(kept), recurrences(recurrences),
        isWhole(kept) {}

  /// Recurrent layers are decided: by columns all, or whole.
  void takeRecurrences() {
    for (const Recurrence &layer : recurrences)
      for (auto &[product, piece] : layer.products) {
        isRecurrent.insert(product.op);
        if (layer.pays && layout.columns.insert(product.op).second)
          layout.cuts.push_back({product, piece, false, true});
      }
  }

  void addSum(Operation *op) {
    layout.sums.insert_range(nn::sumsOf(op->getResult(0)));
    isWhole.insert(op);
  }

  /// Columns that the user has elsewhere would have to be gathered, and cut again for the sum.
  bool mayCutAll(const Sources &sources) const {
    return llvm::all_of(sources, [&](auto &source) { return mayCut({source.first, source.second, false}); });
  }

  void cutColumns(const Sources &sources) {
    for (auto &[source, piece] : sources)
      if (layout.columns.insert(source.op).second)
        layout.cuts.push_back({source, piece, false});
  }

  /// The pieces of an operand's dim that come from columns which may be cut, outermost first.
  SmallVector<Piece> piecesOfColumns(Value value, unsigned dim) {
    SmallVector<Piece> pieces;
    for (Piece piece : trace->back(value, dim, {1, nn::shapeOf(value)[dim]}))
      if (trace->reachesColumns(value, dim, piece)) {
        if (trace->tearsColumns(value, dim, piece))
          break;
        pieces.push_back(piece);
      }
    return pieces;
  }

  /// The outermost piece, or one that is a factor of the same dim (groups, and the heads of a group): the one with the
  /// least work of the busiest rank in all products that any of them cuts. So 14 heads in 2 groups over tp=4 are cut
  /// within the groups, whose keys every rank computes, and not by groups, of which two ranks would have none.
  Piece choose(const WeightMatmul &row, SmallVector<Piece> pieces) {
    Value activation = row.op->getOperand(row.activation);
    unsigned dim = *row.activationK;
    if (pieces[0].size % degree == 0)
      return pieces[0];
    llvm::erase_if(pieces, [&, first = pieces[0]](Piece piece) {
      return !trace->areDigitsOfOne(activation, dim, first, piece);
    });
    auto shareOf = [&](Piece piece) { return double(llvm::divideCeil(piece.size, degree)) / double(piece.size); };
    llvm::MapVector<Operation *, SmallVector<double>> shares; // of each product, under each piece
    for (auto [number, piece] : llvm::enumerate(pieces)) {
      auto note = [&, number = number, piece = piece](Operation *product) {
        shares.try_emplace(product, pieces.size(), 1.0).first->second[number] = shareOf(piece);
      };
      note(row.op);
      llvm::for_each(trace->columnsOf(activation, dim, piece), note);
    }
    SmallVector<double> work(pieces.size(), 0);
    for (auto &[product, share] : shares)
      for (size_t number = 0; number < pieces.size(); ++number)
        work[number] += share[number] * double(cast<CostOpInterface>(product).getFlops());
    return pieces[size_t(std::min_element(work.begin(), work.end()) - work.begin())];
  }

  /// Deals out whole matrices, if the op sums over the results of a stack of them and there is one for every rank. Cut
  /// by columns and rows instead, each matrix' sum would have to be whole before its bias.
  void dealOut(Operation *op) {
    const auto &[rule, product] = facts.of(op);
    if (!rule || product || (accessOf(op) != Access::Combine && accessOf(op) != Access::Product))
      return;
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule->operands))
      for (auto [dim, factors] : llvm::enumerate(dims)) {
        if (factors.size() != 1 || rule->factors[factors[0]].reduction != ReduceKind::Sum)
          continue;
        SmallVector<Piece> pieces = piecesOfColumns(operand, dim);
        if (pieces.empty() || pieces[0].size < degree)
          continue;
        Sources sources = trace->takeColumns(operand, dim, pieces[0]);
        bool isStack = llvm::any_of(sources, [](auto &source) {
          return llvm::is_contained(llvm::make_first_range(source.first.stacked), source.first.weightN);
        });
        if (!isStack || !mayCutAll(sources))
          continue;
        addSum(op);
        cutColumns(sources);
      }
  }

  /// Where only a composite's row (a norm over all heads) separates whole products from a sum over their columns, they
  /// are cut too: the row's own sums, a number or two, are all-reduced. Not where another product reads the columns
  /// whole, as one does after a norm of a residual stream.
  void crossRows(SmallVectorImpl<WeightMatmul> &rest) {
    trace.emplace(facts, isWhole, /*crossesRows=*/true);
    auto staysInParts = [&](const WeightMatmul &row) {
      return [this, &row](const std::pair<WeightMatmul, Piece> &source) {
        return layout.columns.contains(source.first.op) ||
               trace->staysInParts(source.first.op->getResult(0), *source.first.resultN, source.second, row.op);
      };
    };
    for (const WeightCut &cut : SmallVector<WeightCut>(layout.cuts)) {
      Value activation = cut.product.op->getOperand(cut.product.activation);
      if (!cut.isRow || trace->back(activation, *cut.product.activationK, cut.piece) != ArrayRef(cut.piece))
        continue;
      Sources sources = trace->takeColumns(activation, *cut.product.activationK, cut.piece);
      llvm::erase_if(sources, [&](const auto &source) { return !staysInParts(cut.product)(source); });
      if (mayCutAll(sources))
        cutColumns(sources);
    }
    llvm::erase_if(rest, [&](const WeightMatmul &product) { return pair(product, staysInParts(product)); });
  }

  /// Cuts a product by rows and its sources by columns, if its contracted dim has a piece that comes from columns alone
  /// and `accepts` takes each of them.
  bool pair(const WeightMatmul &product,
            llvm::function_ref<bool(const std::pair<WeightMatmul, Piece> &)> accepts = [](auto &) { return true; }) {
    if (layout.columns.contains(product.op)) // its stack is dealt out
      return true;
    if (!product.activationK)
      return false;
    Value activation = product.op->getOperand(product.activation);
    SmallVector<Piece> pieces = piecesOfColumns(activation, *product.activationK);
    llvm::erase_if(pieces, [&](Piece piece) { return !mayCut({product, piece, true}); });
    if (pieces.empty())
      return false;
    Piece piece = choose(product, pieces);
    Sources sources = trace->takeColumns(activation, *product.activationK, piece); // before it is one of the sums
    if (!mayCutAll(sources) || !llvm::all_of(sources, accepts))
      return false;
    addSum(product.op);
    layout.cuts.push_back({product, piece, true});
    cutColumns(sources);
    return true;
  }

  /// Follows the dim of a product's result up to the first value with several readers.
  std::pair<Value, unsigned> branchAfter(Value value, unsigned dim) const {
    while (value.hasOneUse()) {
      OpOperand &use = *value.use_begin();
      auto next = facts.of(use.getOwner()).product ? std::nullopt : follow(use, dim);
      if (!next || next->size() != 1)
        break;
      std::tie(value, dim) = next->front();
    }
    return {value, dim};
  }

  /// Follows the dim of a product's operand back to the last value with other readers: no cut after it concerns these.
  std::optional<std::pair<Value, unsigned>> branchOf(Value value, unsigned dim) const {
    while (value.hasOneUse() && value.getDefiningOp()) {
      auto ruled = dyn_cast<ShardingRuleOpInterface>(value.getDefiningOp());
      if (!ruled)
        break;
      ShardingRule rule = ruled.getShardingRule();
      const auto &factors = rule.results[cast<OpResult>(value).getResultNumber()][dim];
      std::optional<std::pair<Value, unsigned>> before;
      for (auto [operand, dims] : llvm::zip(ruled->getOperands(), rule.operands))
        for (auto [operandDim, operandFactors] : llvm::enumerate(dims))
          if (!factors.empty() && llvm::is_contained(operandFactors, factors[0]) && facts.dependences.lookup(operand).isTrunk())
            before = {operand, unsigned(operandDim)};
      if (!before)
        break;
      std::tie(value, dim) = *before;
    }
    return value.getDefiningOp() ? std::optional(std::pair(value, dim)) : std::nullopt;
  }

  /// A product whose operand is whole and whose result is added to a sum (a shortcut) is cut by rows: the slice of its
  /// operand is free, and its own sum shares the other's all-reduce.
  bool join(const WeightMatmul &product) {
    if (!product.activationK || !joinsSum(product.op->getResult(0), layout.sums))
      return false;
    Value activation = product.op->getOperand(product.activation);
    auto branch = branchOf(activation, *product.activationK);
    WeightCut cut{product, {1, nn::shapeOf(activation)[*product.activationK]}, true};
    if (!branch || !mayCut(cut))
      return false;
    addSum(product.op);
    layout.wholeDims.push_back(*branch);
    layout.cuts.push_back(cut);
    return true;
  }

  WeightLayout find() && {
    takeRecurrences();
    trace.emplace(facts, isWhole);
    if (llvm::any_of(products, [](const WeightMatmul &product) { return !product.stacked.empty(); }))
      for (Operation &op : function.getBody().front())
        dealOut(&op);
    trace.emplace(facts, isWhole); // its answers about products are outdated
    SmallVector<WeightMatmul> rest;
    for (const WeightMatmul &product : products)
      if (!pair(product))
        rest.push_back(product);
    crossRows(rest);
    for (const WeightMatmul &product : rest) {
      if (layout.columns.contains(product.op))
        continue;
      if (isRecurrent.contains(product.op)) {
        layout.whole.push_back(product);
        continue;
      }
      if (kept.contains(product.op) && product.resultN)
        layout.wholeDims.push_back(branchAfter(product.op->getResult(0), *product.resultN));
      if (product.resultN && leadsToOutputs(product.op->getResult(0), *product.resultN))
        layout.heads.push_back(product);
      else if (!join(product))
        layout.whole.push_back(product);
    }
    return std::move(layout);
  }
};

int64_t sizeInBytes(Value value) {
  return nn::tensorType(value).getNumElements() * elementBytes(nn::tensorType(value).getElementType());
}

/// That an all-reduce counts for beside those that it moves. A machine's own latency makes too much of their number, as gathers between
/// products are not counted.
constexpr int64_t bytesOfSum = 64 << 10;

/// Bytes that the all-reduces of a layout move, there and back.
int64_t costOf(const WeightLayout &layout) {
  int64_t cost = 0;
  llvm::DenseSet<Operation *> counted;
  for (const WeightCut &cut : layout.cuts) {
    Value result = cut.product.op->getResult(0);
    if (cut.isRow && !joinsSum(result, counted))
      cost += 2 * sizeInBytes(result) + bytesOfSum;
    if (cut.isRow)
      counted.insert_range(nn::sumsOf(result));
  }
  return cost;
}

/// The work and weight bytes of products that every rank has whole.
struct Work {
  int64_t flops = 0, bytes = 0;
  void add(const WeightMatmul &product) {
    flops += cast<CostOpInterface>(product.op).getFlops();
    bytes += sizeInBytes(product.op->getOperand(product.weight));
  }
};
Work wholeWork(const WeightLayout &layout) {
  Work work;
  for (const WeightMatmul &product : layout.whole)
    work.add(product);
  return work;
}

/// Whether more than one product sums over a dim of a value: then other columns may be better ones.
bool hasSeveralReaders(Value value, unsigned dim, OpFacts &facts) {
  llvm::SmallPtrSet<Operation *, 2> readers;
  SmallVector<std::pair<Value, unsigned>> pending = {{value, dim}};
  llvm::DenseSet<std::pair<Value, unsigned>> seen;
  while (!pending.empty() && readers.size() < 2) {
    auto [at, atDim] = pending.pop_back_val();
    if (!seen.insert({at, atDim}).second)
      continue;
    for (OpOperand &use : at.getUses()) {
      Operation *op = use.getOwner();
      const auto &[rule, product] = facts.of(op);
      if (!rule)
        continue;
      if (product && product->activation == use.getOperandNumber() && product->activationK == atDim)
        readers.insert(op);
      for (int factor : rule->operands[use.getOperandNumber()][atDim])
        for (auto [result, dims] : llvm::zip(op->getResults(), rule->results))
          for (auto [resultDim, factors] : llvm::enumerate(dims))
            if (isKept(rule->factors[factor]) && llvm::is_contained(factors, factor))
              pending.push_back({result, unsigned(resultDim)});
    }
  }
  return readers.size() > 1;
}
} // namespace

WeightLayout chooseLayout(func::FuncOp function, const nn::Dependences &dependences, int64_t degree, MayCut mayCut) {
  OpFacts facts(dependences);
  std::vector<WeightMatmul> products;
  for (Operation &op : function.getBody().front())
    if (const std::optional<WeightMatmul> &product = facts.of(&op).product)
      products.push_back(*product);
  llvm::DenseSet<Operation *> kept, tried;
  // A layer for which the user has rules is not treated as recurrent here.
  std::vector<Recurrence> recurrences = findRecurrences(function, facts, degree, pricesOf(function));
  llvm::erase_if(recurrences, [&](const Recurrence &layer) {
    return !llvm::all_of(layer.products, [&](auto &product) { return mayCut({product.first, product.second, false}); });
  });
  for (const Recurrence &layer : recurrences)
    for (auto &[product, piece] : layer.products)
      (layer.pays ? tried : kept).insert(product.op);
  auto find = [&] { return LayoutFinder(function, facts, degree, mayCut, products, kept, recurrences).find(); };
  WeightLayout best = find();
  Work all, whole = wholeWork(best);
  for (const WeightMatmul &product : products)
    all.add(product);
  // A layout that sends less may leave a tenth of the work whole for it: a convolution on few channels, not the model.
  auto isBetter = [&](const WeightLayout &other) {
    Work work = wholeWork(other);
    return costOf(other) + bytesOfSum / 2 < costOf(best) && work.flops <= whole.flops + all.flops / 10 &&
           work.bytes <= whole.bytes + all.bytes / 10;
  };
  // Channels that many products read (a residual stream without norms) may be cut or whole, and a product that could
  // join a sum need not be cut by columns. A trial takes time in proportion to the program, so their number is limited;
  // the first columns decide for all that the stream passes.
  llvm::DenseMap<std::pair<Operation *, unsigned>, bool> isReadTwice;
  auto hasOtherReaders = [&](const WeightMatmul &product) {
    auto [known, isNew] = isReadTwice.try_emplace({product.op, *product.resultN});
    if (isNew)
      known->second = hasSeveralReaders(product.op->getResult(0), *product.resultN, facts);
    return known->second;
  };
  for (int trials = 0; trials < 32; ++trials) {
    auto contested = llvm::find_if(best.cuts, [&](const WeightCut &cut) {
      return !cut.isRow && cut.product.resultN && !tried.contains(cut.product.op) &&
             (joinsSum(cut.product.op->getResult(0), best.sums) ||
              hasOtherReaders(cut.product));
    });
    if (contested == best.cuts.end())
      break;
    Operation *product = contested->product.op;
    tried.insert(product);
    kept.insert(product);
    if (WeightLayout other = find(); isBetter(other))
      best = std::move(other);
    else
      kept.erase(product);
  }
  return best;
}

} // namespace hpc
