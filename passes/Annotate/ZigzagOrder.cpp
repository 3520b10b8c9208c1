// An op that takes each position by itself (a factor that can be cut) may have its rows in any order, if all its values with that factor
// have the same. So each op is in the program's order or in zigzag, and a gather stands on every edge between the two.
//
//   ids --gather--> embedding .. q ------------------------> attention (positions of its queries) .. norm --gather--> head --> logits
//                             .. k --(gathered over cp)--gather--^                  dk --gather--(scattered over cp)--> ..
#include "passes/Annotate/ZigzagOrder.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/RowPositions.h"
#include "compiler/StepPart.h"

namespace hpc {

std::vector<int64_t> zigzagPositions(int64_t size, int64_t ranks) {
  const int64_t block = llvm::divideCeil(size, ranks), half = llvm::divideCeil(block, 2);
  std::vector<int64_t> positions;
  for (int64_t front = 0, back = size; front < back;) {
    const int64_t rows = std::min(block, back - front), early = std::min(half, rows);
    for (int64_t i = 0; i < early; ++i)
      positions.push_back(front++);
    for (int64_t i = back -= rows - early; i < back + rows - early; ++i)
      positions.push_back(i);
  }
  return positions;
}

namespace {
using Place = SequenceDims::Place;

/// The rows of an op: a factor of its rule, or some digits of one that has other dims, too (a batch of rows).
struct Rows {
  int factor;
  Piece piece; ///< of the factor
};

struct Order {
  std::vector<int64_t> positions;
  Value toZigzag, toProgram; ///< of each row: the row of the other order
};

class Zigzag {
public:
  Zigzag(func::FuncOp function, const SequenceDims &sequence, const dist::Mesh &mesh, ArrayRef<std::string> axes)
      : body(function.front()), first(&body.front()), sequence(sequence), mesh(mesh), axes(axes), dependences(nn::findDependences(function)) {}

  bool run() {
    for (Operation &op : body)
      if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op); ruled && nn::isCausalAttention(&op))
        for (const ShardingFactor &factor : ruled.getShardingRule().factors)
          if (factor.isSequence && factor.canCut)
            addOrder(factor.size, ranksOf(op.getResult(0)));
    if (orders.empty())
      return false;
    for (Operation &op : body)
      if (std::optional<Rows> found = rowsOf(&op))
        rows.insert({&op, *found});
    leaveZigzag();
    SmallVector<Operation *> ops;
    for (Operation &op : body)
      ops.push_back(&op);
    for (Operation *op : ops)
      rewrite(op);
    return true;
  }

private:
  // ---- ops whose rows are in zigzag -----------------------------------------------------------------

  /// How many parts the rows of a value will have: over the axes, and what a layout cuts them over inside of these.
  int64_t ranksOf(Value value) const {
    std::vector<std::string> names = axes.vec();
    std::optional<Place> place = sequence.of(value);
    if (std::optional<dist::Seed> seed = dist::seedOf(value); seed && place)
      for (const dist::SubDim &sub : seed->sharding.dims[place->dim])
        for (const std::string &name : sub.axes)
          if (!llvm::is_contained(names, name))
            names.push_back(name);
    int64_t ranks = 1;
    for (const std::string &name : names)
      ranks *= mesh.size(name);
    return ranks;
  }

  void addOrder(int64_t size, int64_t ranks) {
    Order &order = orders[size];
    if (!order.positions.empty())
      return;
    order.positions = zigzagPositions(size, ranks);
    std::vector<int64_t> inverse(size_t(size), 0);
    for (auto [row, position] : llvm::enumerate(order.positions))
      inverse[size_t(position)] = int64_t(row);
    OpBuilder builder(first);
    auto type = RankedTensorType::get({size}, builder.getI64Type());
    for (auto [value, numbers] : {std::pair(&order.toZigzag, &order.positions), {&order.toProgram, &inverse}})
      *value = nn::ConstantOp::create(builder, body.getParentOp()->getLoc(), DenseElementsAttr::get(type, ArrayRef(*numbers)));
  }

  /// The positions of an op's activations, if they may have any order; by results, else by operands.
  std::optional<Rows> rowsOf(Operation *op) const {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op->getNumResults() == 0 || llvm::none_of(op->getResults(), [&](Value result) { return dependences.lookup(result).fromInputs; }))
      return std::nullopt;
    ShardingRule rule = ruled.getShardingRule();
    bool isPlaced = false;
    std::optional<Rows> found;
    auto search = [&](auto values, const auto &allDims) {
      for (auto [value, dims] : llvm::zip(values, allDims)) {
        std::optional<Place> place = sequence.of(value);
        if (!place || isPlaced)
          continue;
        isPlaced = true;
        if (sequence.isOfKeysAlone(value))
          continue;
        for (int factor : dims[place->dim]) {
          const Piece of = SequenceDims::placeOf(rule, dims[place->dim], factor, place->dim).piece, piece = place->piece;
          if (orders.count(piece.size) && piece.inner % of.inner == 0 && of.inner * of.size % (piece.inner * piece.size) == 0)
            found = Rows{factor, {piece.inner / of.inner, piece.size}};
        }
      }
    };
    search(op->getResults(), rule.results);
    search(op->getOperands(), rule.operands);
    if (!found || !rule.factors[found->factor].canCut || (rule.factors[found->factor].isIndex && !countedDim(op, rule, *found)))
      return std::nullopt;
    return found;
  }

  /// The dim of operand 0 whose rows an op counts and can be told.
  static std::optional<unsigned> countedDim(Operation *op, const ShardingRule &rule, const Rows &rows) {
    for (auto [dim, factors] : llvm::enumerate(rule.operands[0]))
      if (factors.size() == 1 && factors[0] == rows.factor && rule.factors[rows.factor].size == rows.piece.size &&
          nn::takesRowPositions(op, unsigned(dim)))
        return unsigned(dim);
    return std::nullopt;
  }

  /// Ops that feed outputs alone return to the program's order from where the rows have the fewest elements, the last such place: the input of a head
  /// is brought back, not its logits.
  void leaveZigzag() {
    llvm::DenseMap<Operation *, Rows> left;
    for (Operation &op : llvm::reverse(body))
      if (auto found = rows.find(&op); found != rows.end() && mayLeaveBefore(&op, found->second)) {
        left.insert({&op, found->second});
        rows.erase(found);
      }
    for (Operation &op : body) {
      auto found = left.find(&op);
      if (found == left.end())
        continue;
      ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
      auto isAhead = [&](auto pair) {
        auto [value, dims] = pair;
        return !carriesRows(rule, dims, found->second, value) || (value.getDefiningOp() && rows.contains(value.getDefiningOp()));
      };
      if (llvm::all_of(llvm::zip(op.getOperands(), rule.operands), isAhead) && growth(&op, rule, found->second) == 0)
        rows.insert({&op, found->second});
    }
  }

  bool carriesRows(const ShardingRule &rule, ArrayRef<ShardingRule::DimFactors> dims, const Rows &ofOp, Value value) const {
    return placeIn(rule, dims, ofOp) && dependences.lookup(value).fromInputs;
  }

  /// Elements that results have more than operands, of those that carry rows.
  int64_t growth(Operation *op, const ShardingRule &rule, const Rows &ofOp) const {
    auto elementsOf = [&](auto values, const auto &allDims) {
      int64_t elements = 0;
      for (auto [value, dims] : llvm::zip(values, allDims))
        elements += carriesRows(rule, dims, ofOp, value) ? nn::tensorType(value).getNumElements() : 0;
      return elements;
    };
    return elementsOf(op->getResults(), rule.results) - elementsOf(op->getOperands(), rule.operands);
  }

  /// Whether nobody needs the rows of an op's results in zigzag, or all of them, and they are as many as those of its operands.
  bool mayLeaveBefore(Operation *op, const Rows &ofOp) const {
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    auto needsThem = [&](OpOperand &use) {
      std::optional<Place> place = placeIn(rule, rule.results[cast<OpResult>(use.get()).getResultNumber()], ofOp);
      return !place || rows.contains(use.getOwner()) || takesWhole(use, place->dim);
    };
    return !rule.factors[ofOp.factor].isSequence && llvm::none_of(op->getUses(), needsThem) && growth(op, rule, ofOp) >= 0;
  }

  /// Whether an op needs a dim of an operand on every rank.
  static bool takesWhole(OpOperand &use, unsigned dim) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
    if (!ruled)
      return false;
    ShardingRule rule = ruled.getShardingRule();
    return llvm::any_of(rule.operands[use.getOperandNumber()][dim], [&](int factor) { return !rule.factors[factor].canCut; });
  }

  static std::optional<Place> placeIn(const ShardingRule &rule, ArrayRef<ShardingRule::DimFactors> dims, const Rows &rows) {
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (llvm::is_contained(factors, rows.factor)) {
        const int64_t inner = SequenceDims::placeOf(rule, factors, rows.factor, unsigned(dim)).piece.inner;
        return Place{unsigned(dim), {inner * rows.piece.inner, rows.piece.size}};
      }
    return std::nullopt;
  }

  // ---- values in the order that an op wants ----------------------------------------------------------

  void rewrite(Operation *op) {
    auto found = rows.find(op);
    if (found == rows.end()) {
      for (OpOperand &operand : op->getOpOperands())
        if (auto own = placed.find(operand.get()); own != placed.end())
          operand.set(inProgramOrder(operand.get(), takesWhole(operand, own->second.dim)));
      return;
    }
    const Rows &ofOp = found->second;
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    for (OpOperand &operand : op->getOpOperands())
      if (std::optional<Place> wanted = placeIn(rule, rule.operands[operand.getOperandNumber()], ofOp))
        operand.set(inZigzag(operand.get(), *wanted));
      else if (placed.contains(operand.get())) // a rank's rows take all of its positions, as queries do of keys
        operand.set(inProgramOrder(operand.get(), /*isWhole=*/true));
    if (rule.factors[ofOp.factor].isIndex)
      nn::setRowPositions(op, *countedDim(op, rule, ofOp), orders.find(ofOp.piece.size)->second.toZigzag);
    for (auto [result, dims] : llvm::zip(op->getResults(), rule.results))
      if (std::optional<Place> place = placeIn(rule, dims, ofOp))
        placed[result] = *place;
  }

  /// Whether a value is the same in all rows, as a number that is broadcast to them.
  static bool isAlike(Value value, const Place &place) {
    auto maker = dyn_cast_or_null<ShardingRuleOpInterface>(value.getDefiningOp());
    if (!maker || maker->getNumOperands() == 0)
      return false;
    ShardingRule rule = maker.getShardingRule();
    return llvm::all_of(rule.results[cast<OpResult>(value).getResultNumber()][place.dim], [&](int factor) {
      auto has = [&](const auto &dims) { return llvm::any_of(dims, [&](const auto &factors) { return llvm::is_contained(factors, factor); }); };
      return rule.factors[factor].canCut && !rule.factors[factor].isIndex && llvm::none_of(rule.operands, has);
    });
  }

  Value inZigzag(Value value, const Place &place) {
    auto own = placed.find(value);
    if (own == placed.end()) {
      if (isAlike(value, place))
        return value;
      // An op that sums over rows has a term on each rank: the term becomes pieces after its rows have changed places.
      Operation *maker = value.getDefiningOp();
      while (maker && isView(maker) && !rows.contains(maker))
        maker = maker->getOperand(0).getDefiningOp();
      return gathered(value, place, &Order::toZigzag, maker && rows.contains(maker) ? Cut::None : Cut::Free);
    }
    if (own->second.dim == place.dim && own->second.piece == place.piece)
      return value;
    return gathered(inProgramOrder(value, /*isWhole=*/true), place, &Order::toZigzag, Cut::Free);
  }

  Value inProgramOrder(Value value, bool isWhole) {
    // A table of positions is stored whole, or in pieces of its own.
    isWhole |= stepPartOf(value.getLoc()) == StepPart::Gradient;
    return gathered(value, placed.find(value)->second, &Order::toProgram, isWhole ? Cut::None : Cut::Axes);
  }

  /// How the rows of a gathered value are cut: as others want them, over the axes, or not at all, which wins.
  enum class Cut { Free, Axes, None };

  /// `value` with the rows at `place` in the other order, made where the value is.
  Value gathered(Value value, const Place &place, Value Order::*numbers, Cut cut) {
    auto [found, isNew] = others.try_emplace({value.getAsOpaquePointer(), place.dim, place.piece.inner, place.piece.size});
    if (!isNew) {
      if (cut == Cut::None)
        setSeed(found->second.gather, found->second.dim, cut);
      return found->second.result;
    }
    OpBuilder builder(first);
    if (Operation *op = value.getDefiningOp())
      builder.setInsertionPointAfter(op);
    Location loc = value.getDefiningOp() || value.use_empty() ? value.getLoc() : value.getUses().begin()->getOwner()->getLoc();
    RankedTensorType type = nn::tensorType(value);
    SmallVector<int64_t> apart(type.getShape());
    const bool isAlone = place.piece.size == apart[place.dim];
    unsigned dim = place.dim;
    if (!isAlone) {
      const int64_t outer = apart[dim] / place.piece.size / place.piece.inner;
      apart[dim] = place.piece.inner;
      apart.insert(apart.begin() + dim, {outer, place.piece.size});
      value = nn::ReshapeOp::create(builder, loc, RankedTensorType::get(apart, type.getElementType()), value);
      ++dim;
    }
    Value gather = nn::GatherOp::create(builder, loc, value.getType(), value, orders.find(place.piece.size)->second.*numbers, dim);
    setSeed(gather, dim, cut);
    Value result = isAlone ? gather : nn::ReshapeOp::create(builder, loc, type, gather);
    found->second = {gather, result, dim};
    return result;
  }

  void setSeed(Value value, unsigned dim, Cut cut) const {
    if (cut == Cut::Free)
      return;
    std::vector<int64_t> shape = nn::shapeOf(value).vec();
    dist::Seed seed{dist::replicated(shape), std::vector<bool>(shape.size(), true)};
    seed.open[dim] = false;
    if (cut == Cut::Axes)
      seed.sharding.dims[dim].front().axes.assign(axes.begin(), axes.end());
    dist::setSeed(value, seed);
  }

  struct Gathered {
    Value gather, result; ///< the gather's dim of rows may be one of several in a dim of the result
    unsigned dim;
  };

  Block &body;
  Operation *first; ///< of the program
  const SequenceDims &sequence;
  const dist::Mesh &mesh;
  ArrayRef<std::string> axes;
  nn::Dependences dependences;
  std::map<int64_t, Order> orders;              ///< by the number of positions
  llvm::DenseMap<Operation *, Rows> rows;       ///< of the ops in zigzag
  llvm::DenseMap<Value, Place> placed;          ///< their results with rows
  std::map<std::tuple<void *, unsigned, int64_t, int64_t>, Gathered> others; ///< values in the other order, by value and place
};
} // namespace

bool orderInZigzag(func::FuncOp function, const SequenceDims &sequence, const dist::Mesh &mesh, ArrayRef<std::string> axes) {
  return Zigzag(function, sequence, mesh, axes).run();
}

} // namespace hpc
