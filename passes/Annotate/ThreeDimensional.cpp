// The layout 3d (Bian et al. 2021): x ranks cut rows, and weights are stored in pieces over them; y and z take turns, one cuts
// the hidden dim and one cuts rows inside of x. Each product with a weight exchanges the two, forward and backward.
//
//   X [M@(x, y), K@z] -- gather over y --> [M@x, K@z] --.
//                                                      matmul --> [M@x, N@y] partial{z} -- reduce-scatter --> Y [M@(x, z), N@y]
//   W [K@(z, x), N@y] -- gather over x --> [K@z, N@y] --'
//
// Seeds on the readers of a product make the reduce-scatter. Norms stay in parts: the axis of the hidden dim adds up their statistics.
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "passes/Annotate/FactorTrace.h"
#include "passes/Annotate/ProductColumns.h"
#include "passes/Annotate/RowDims.h"

#include "llvm/ADT/MapVector.h"

namespace hpc {
namespace {

/// Which of the two axes cuts the hidden dim of a value; the other one cuts its rows.
enum class Turn {
  None,   ///< no activation, or the gradient of a weight
  Stream, ///< z: what tables give, and what every second product gives
  Inner,  ///< y
};

struct ThreeDimensional {
  const LayoutProgram &program;
  func::FuncOp function;
  const std::string y, z;
  RowDims rows;
  std::vector<std::string> batchAxes; ///< of rows in every value: all but y and z
  llvm::DenseMap<Operation *, WeightCut> parts; ///< products that are cut along a part of a dim: heads, whole matrices
  llvm::DenseMap<Value, Turn> turns;
  llvm::DenseMap<Value, dist::Sharding> hidden; ///< the hidden dims of activations, where y or z cuts some
  llvm::MapVector<Value, SmallVector<DimCut, 2>> cuts;
  llvm::DenseSet<Value> sums; ///< products' and lookups' results, and what is added up of such alone: partial over an axis
  std::vector<LayoutSeed> ofReaders;
  llvm::DenseMap<Value, SmallVector<DimCut, 2>> used; ///< weights and their parameters, as products have them
  SmallVector<WeightLookup> tables; ///< the first lookup of each that is cut by rows of the table

  explicit ThreeDimensional(const LayoutProgram &program)
      : program(program), function(program.function), y(program.mesh.axesOf(dist::AxisRole::Tensor)[0]),
        z(program.mesh.axesOf(dist::AxisRole::Tensor)[1]), rows(function, program.batchDims, program.mesh) {
    for (const dist::Mesh::Axis &axis : program.mesh.axes)
      if (axis.role == dist::AxisRole::Time || dist::cutsRows(axis.role))
        batchAxes.push_back(axis.name);
  }

  static Piece allOf(Value value, unsigned dim) { return {1, nn::shapeOf(value)[dim]}; }
  static Turn next(Turn turn) { return turn == Turn::Stream ? Turn::Inner : Turn::Stream; }
  const std::string &hiddenAxis(Turn turn) const { return turn == Turn::Stream ? z : y; }
  const std::string &rowAxis(Turn turn) const { return turn == Turn::Stream ? y : z; }
  std::vector<std::string> rowAxes(Turn turn) const {
    std::vector<std::string> axes = batchAxes;
    axes.push_back(rowAxis(turn));
    return axes;
  }

  /// Axes of size 1 cut nothing.
  void cut(Value value, unsigned dim, Piece piece, std::vector<std::string> axes) {
    llvm::erase_if(axes, [&](const std::string &axis) { return program.mesh.size(axis) == 1; });
    if (!axes.empty())
      cuts[value].push_back({dim, piece, axes});
  }

  void cutRows(Operation *op, ArrayRef<std::string> axes) {
    for (OpResult result : op->getResults())
      llvm::append_range(cuts[result], rows.cuts(result, axes));
  }

  /// The cuts of operands' hidden dims that the results keep: the axis of the turn, or of either operand of a weight's gradient.
  void followHidden(Operation *op, const ShardingRule &rule, Turn turn) {
    SmallVector<dist::Sharding> operands;
    for (Value operand : op->getOperands()) {
      auto found = hidden.find(operand);
      operands.push_back(found == hidden.end() ? dist::replicated(nn::shapeOf(operand).vec()) : found->second);
      if (turn != Turn::None && llvm::is_contained(dist::cutAxes(operands.back()), rowAxis(turn)))
        operands.back() = dist::replicated(nn::shapeOf(operand).vec());
    }
    dist::OpSharding sharding = dist::inferFromOperands(rule, operands, program.mesh);
    for (OpResult result : op->getResults())
      if (dist::Sharding parts = sharding.result(result.getResultNumber(), program.mesh); !dist::cutAxes(parts).empty())
        hidden[result] = parts;
  }

  static dist::Sharding partsOf(Value value, const DimCut &cut) {
    dist::Sharding parts = dist::replicated(nn::shapeOf(value).vec());
    cutPiece(parts.dims[cut.dim], cut);
    return parts;
  }

  void cutHidden(Value value) {
    auto found = hidden.find(value);
    if (found == hidden.end())
      return;
    for (auto [dim, subs] : llvm::enumerate(found->second.dims)) {
      int64_t inner = 1;
      for (const dist::SubDim &sub : llvm::reverse(subs)) {
        cut(value, unsigned(dim), {inner, sub.size}, sub.axes);
        inner *= sub.size;
      }
    }
  }

  // ---- weights ----------------------------------------------------------------------------------

  /// How a dim of a weight is cut in use, by an earlier product with it.
  std::optional<DimCut> cutInUse(Value weight, unsigned dim) const {
    auto find = [&](Value value, unsigned dim) -> std::optional<DimCut> {
      for (const DimCut &cut : used.lookup(value))
        if (cut.dim == dim)
          return cut;
      return std::nullopt;
    };
    if (std::optional<DimCut> cut = find(weight, dim))
      return cut;
    for (const DimPlace &place : parametersOf({weight, dim, allOf(weight, dim)}))
      if (std::optional<DimCut> cut = find(place.value, place.dim))
        return DimCut{dim, cut->piece, cut->axes};
    return std::nullopt;
  }

  /// Cuts the parameters of a weight: a cut that a view tears apart stays out. The first dim that is cut as a whole has
  /// the pieces of x, inside of its own cut.
  void cutWeight(Value weight, ArrayRef<DimCut> wanted) {
    llvm::MapVector<Value, SmallVector<DimCut, 2>> parameters;
    used[weight].assign(wanted.begin(), wanted.end());
    for (const DimCut &cut : wanted)
      for (const DimPlace &place : parametersOf({weight, cut.dim, cut.piece}))
        parameters[place.value].push_back({place.dim, place.piece, cut.axes});
    for (auto &[parameter, places] : parameters) {
      if (cuts.contains(parameter))
        continue;
      used[parameter] = places;
      auto stored = llvm::find_if(places, [&, parameter = parameter](const DimCut &cut) {
        return cut.piece == allOf(parameter, cut.dim) && cut.piece.size >= program.ranksOf(cut.axes) * program.ranksOf(program.storageAxes);
      });
      if (stored != places.end())
        llvm::append_range(stored->axes, program.storageAxes);
      for (const DimCut &cut : places)
        this->cut(parameter, cut.dim, cut.piece, cut.axes);
    }
  }

  // ---- ops --------------------------------------------------------------------------------------

  /// A product sums over the axis of its operand's hidden dim; ranks along both axes have the same rows, which its readers share.
  Turn visitProduct(WeightMatmul product) {
    Value weight = product.op->getOperand(product.weight), input = product.op->getOperand(product.activation);
    const Turn from = turns.lookup(input) == Turn::None ? Turn::Inner : turns.lookup(input); // what comes from outside is whole
    Turn to = next(from);
    Piece k = allOf(weight, product.weightK), n = allOf(weight, product.weightN);
    if (auto found = parts.find(product.op); found != parts.end() && found->second.isRow) {
      k = found->second.piece;
    } else if (found != parts.end()) {
      product = found->second.product;
      n = found->second.piece;
      if (llvm::is_contained(llvm::make_first_range(product.stacked), product.weightN))
        to = Turn::Inner; // whole matrices are dealt out over y
    }
    DimCut ofK{product.weightK, k, {hiddenAxis(from)}}, ofN{product.weightN, n, {hiddenAxis(to)}};
    if (to == from)
      ofK.axes.clear(); // the operand has whole matrices' axis
    if (!program.mayCut(weight, ofN))
      return from;
    if (std::optional<DimCut> known = cutInUse(weight, product.weightN))
      ofN = *known;
    else
      cutWeight(weight, {ofK, ofN});
    if (product.resultN)
      hidden[product.op->getResult(0)] = partsOf(product.op->getResult(0), {*product.resultN, ofN.piece, ofN.axes});
    leaveRowsToReaders(product.op, to);
    return to;
  }

  /// A partial sum has the rows that all of its ranks share. Readers share them out, sums over rows and the return, too.
  void leaveRowsToReaders(Operation *op, Turn turn) {
    sums.insert(op->getResult(0));
    cutRows(op, batchAxes);
    if (SmallVector<DimCut, 2> wanted = rows.cuts(op->getResult(0), rowAxes(turn)); !wanted.empty())
      ofReaders.push_back({op->getResult(0), wanted, /*ofReaders=*/true});
  }

  /// A vocabulary that pays is cut over y and x: the rows of a lookup are then a sum over y.
  Turn visitLookup(const WeightLookup &lookup) {
    unsigned width = unsigned(nn::shapeOf(lookup.table).size()) - 1;
    if (width == lookup.dim)
      return Turn::None;
    const bool bySum = paysByRows(lookup, program);
    if (!used.contains(lookup.table)) {
      cutWeight(lookup.table, {{lookup.dim, allOf(lookup.table, lookup.dim), bySum ? std::vector<std::string>{y} : std::vector<std::string>()},
                               {width, allOf(lookup.table, width), {z}}});
      if (bySum)
        tables.push_back(lookup);
    }
    hidden[lookup.table] = partsOf(lookup.table, {width, allOf(lookup.table, width), {z}});
    followHidden(lookup.op, cast<ShardingRuleOpInterface>(lookup.op).getShardingRule(), Turn::Stream);
    if (bySum)
      leaveRowsToReaders(lookup.op, Turn::Stream);
    else
      cutRows(lookup.op, rowAxes(Turn::Stream));
    return Turn::Stream;
  }

  /// Products of two activations sum over heads' elements, and those for a weight's gradient over rows.
  Turn commonTurn(Operation *op) const {
    Turn found = Turn::None;
    for (Value operand : op->getOperands()) {
      Turn turn = turns.lookup(operand);
      if (accessOf(op) == Access::Product && turn != Turn::None && found != Turn::None && turn != found)
        return Turn::None;
      if (found == Turn::None)
        found = turn;
    }
    return found;
  }

  /// Whether an op adds up products alone which nothing else reads, as gradients of one activation: one reduce-scatter serves all.
  bool addsSums(Operation *op, const ShardingRule &rule) const {
    return rule.linear.kind == LinearClause::Sum && op->getNumOperands() > 1 && rule.linear.operands.size() == op->getNumOperands() &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return sums.contains(operand) && operand.hasOneUse(); });
  }

  /// Whether a view's readers are products with weights, or for weights' gradients: gathered before it, rows serve all products with the value.
  bool isOfProducts(Operation *view) const {
    return isView(view) && llvm::all_of(view->getUsers(), [&](Operation *user) {
             bool isProduct = accessOf(user) == Access::Product;
             return isOfProducts(user) || (isProduct && (matchWeightMatmul(user, program.dependences) || rows.cuts(user->getResult(0), {}).empty()));
           });
  }

  /// Attention follows its queries, unless these share a sequence: then it is seeded, or its readers could take the heads instead.
  bool isLeftOpen(const ShardingRule &rule, Turn turn) const {
    return llvm::any_of(rule.factors, [](const ShardingFactor &factor) { return factor.isSequence; }) &&
           llvm::all_of(rows.axesFor(rowAxes(turn)).positions, [&](const std::string &axis) { return program.mesh.hasRole(axis, dist::AxisRole::Sequence); });
  }

  void visit(Operation *op, const ShardingRule &rule) {
    Turn turn;
    if (std::optional<WeightMatmul> product = matchWeightMatmul(op, program.dependences); product && nn::isProduct(op)) {
      turn = visitProduct(*product);
    } else if (std::optional<WeightLookup> lookup = matchWeightLookup(op, program.dependences)) {
      turn = visitLookup(*lookup);
    } else {
      turn = commonTurn(op);
      followHidden(op, rule, turn);
      if (turn != Turn::None && addsSums(op, rule))
        leaveRowsToReaders(op, turn);
      else if (turn != Turn::None && !isLeftOpen(rule, turn))
        cutRows(op, isOfProducts(op) ? batchAxes : rowAxes(turn));
    }
    const bool isSeeded = turn != Turn::None ? !isLeftOpen(rule, turn) : accessOf(op) == Access::Product;
    for (Value result : op->getResults()) {
      turns[result] = turn;
      if (isSeeded)
        cutHidden(result);
    }
  }

  std::vector<LayoutSeed> find() && {
    // 1. Heads and whole matrices, as 1d finds them; other dims are cut as a whole.
    const int64_t degree = std::max(program.mesh.size(y), program.mesh.size(z));
    WeightLayout layout = chooseLayout(function, program.dependences, degree, [&](const WeightCut &cut) {
      const WeightMatmul &product = cut.product;
      return cut.isRow || program.mayCut(product.op->getOperand(product.weight), {product.weightN, cut.piece, {y}});
    });
    for (const WeightCut &cut : layout.cuts) {
      unsigned dim = cut.isRow ? cut.product.weightK : cut.product.weightN;
      if (!(cut.piece == allOf(cut.product.op->getOperand(cut.product.weight), dim)))
        parts.try_emplace(cut.product.op, cut);
    }
    // 2. Rows and hidden dims of all activations, and weights.
    for (Operation &op : function.front())
      if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
        visit(&op, ruled.getShardingRule());
    // 3. The gradient of a table that is cut by rows: every rank adds to its own.
    for (const WeightLookup &lookup : tables)
      for (OpResult sum : rowSumsOf(lookup, function))
        cut(sum, lookup.dim, allOf(sum, lookup.dim), {y});
    std::vector<LayoutSeed> seeds;
    for (auto &[value, wanted] : cuts)
      if (!wanted.empty())
        seeds.push_back({value, wanted});
    llvm::append_range(seeds, ofReaders);
    return seeds;
  }
};
} // namespace

std::vector<LayoutSeed> threeDimensional(const LayoutProgram &program) { return ThreeDimensional(program).find(); }

} // namespace hpc
