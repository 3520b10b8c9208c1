// The layouts 2d (Optimus, Xu et al. 2021) and 2.5d (Tesseract, Wang et al. 2021), with operands gathered: x ranks cut rows,
// and weights are stored in pieces over them; y ranks cut the columns of every product; z ranks cut rows further.
//
//   X [M@x, K@y] -- gather over y --> [M@x, K] --.
//                                                matmul --> Y [M@x, N@y]
//   W [K@x, N@y] -- gather over x --> [K, N@y] --'
//
//   dX [M@x, K@y] <-- reduce-scatter over y -- dY [M@x, N@y] W^T [N@y, K]
//   dW [K@x, N@y] <-- reduce-scatter over x -- X^T [K, M@x] dY [M@x, N@y]
//
// Norms in between stay in parts: their statistics, a number or two a row, are all-reduced over y. Attention has heads over y.
#include "passes/Annotate/FactorTrace.h"
#include "passes/Annotate/ProductColumns.h"

#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/ElementType.h"
#include "compiler/ModuleMachine.h"
#include "compiler/StepPart.h"

#include "llvm/ADT/MapVector.h"

namespace hpc {
namespace {

struct TwoDimensional {
  const LayoutProgram &program;
  func::FuncOp function;
  llvm::DenseMap<Operation *, WeightCut> columns;             ///< products whose columns are cut along a part: heads, whole matrices
  llvm::DenseSet<Value> tables;                               ///< of lookups, in columns
  std::vector<WeightLookup> tablesByRows;
  llvm::MapVector<Value, SmallVector<DimPlace, 1>> placesCut; ///< over y: of parameters, and of weights computed from them
  llvm::DenseMap<Value, Piece> columnsOfResult;               ///< of products, over y: of the last dim
  llvm::DenseSet<Operation *> rows;                           ///< composites whose row stays in parts over y
  std::vector<LayoutSeed> seeds;

  const Prices prices;

  explicit TwoDimensional(const LayoutProgram &program) : program(program), function(program.function), prices(pricesOf(function)) {}

  static Piece allOf(Value value, unsigned dim) { return {1, nn::shapeOf(value)[dim]}; }

  void note(const DimPlace &place) { placesCut[place.value].push_back(place); }

  /// Whether y cuts a dim of a weight, or the dim of a parameter that it is.
  bool isCut(Value weight, unsigned dim) const {
    auto isNoted = [&](Value value, unsigned at) {
      auto found = placesCut.find(value);
      return found != placesCut.end() && llvm::any_of(found->second, [&](const DimPlace &place) { return place.dim == at; });
    };
    return isNoted(weight, dim) || llvm::any_of(parametersOf({weight, dim, allOf(weight, dim)}), [&](const DimPlace &place) {
             return isNoted(place.value, place.dim);
           });
  }

  /// The dim to store in pieces: the first of those preferred, then of all, that y does not cut and that gives every x rank
  /// an element.
  std::optional<unsigned> piecesOf(Value parameter, SmallVector<unsigned> dims) const {
    llvm::append_range(dims, llvm::seq<unsigned>(0, nn::shapeOf(parameter).size()));
    for (unsigned dim : dims)
      if (!program.storageAxes.empty() && nn::shapeOf(parameter)[dim] >= program.ranksOf(program.storageAxes) && !isCut(parameter, dim))
        return dim;
    return std::nullopt;
  }

  void seedParameter(Value parameter, SmallVector<unsigned> preferred) {
    LayoutSeed seed{parameter, {}};
    for (const DimPlace &place : placesCut.lookup(parameter))
      if (!program.axes.empty() && seed.cuts.empty())
        seed.cuts.push_back({place.dim, place.piece, program.axes});
    if (std::optional<unsigned> dim = piecesOf(parameter, std::move(preferred)))
      seed.cuts.push_back({*dim, allOf(parameter, *dim), program.storageAxes});
    if (!seed.cuts.empty())
      seeds.push_back(std::move(seed));
  }

  /// Cuts the parameters of a weight: `dim` over y, and over x `rows` or, where a view tears that apart, another dim.
  void seedWeight(Value weight, unsigned dim, Piece piece, unsigned rows) {
    note({weight, dim, piece});
    llvm::MapVector<Value, SmallVector<unsigned>> parameters; ///< with the dims that `rows` is
    for (const DimPlace &place : parametersOf({weight, dim, piece})) {
      if (place.value != weight)
        note(place);
      parameters.insert({place.value, {}});
    }
    for (const DimPlace &place : parametersOf({weight, rows, allOf(weight, rows)}))
      parameters[place.value].push_back(place.dim);
    for (auto &[parameter, dims] : parameters)
      seedParameter(parameter, dims);
  }

  /// Whether a weight is a table in columns, or a view or a 16-bit copy of one.
  bool isTable(Value weight) const { return tables.contains(tableOf(weight)); }

  /// A sum over y whose readers cut `dim`: a reduce-scatter.
  void leaveToReaders(Value result, unsigned dim) {
    seeds.push_back({result, {{dim}}});
    seeds.push_back({result, {{dim, allOf(result, dim), program.axes}}, /*ofReaders=*/true});
  }

  /// Tables are cut in columns, so that nothing moves; those of a head by rows, as the head's product cuts its columns.
  void seedTables() {
    for (Operation &op : function.front())
      if (std::optional<WeightLookup> lookup = matchWeightLookup(&op, program.dependences)) {
        unsigned width = unsigned(nn::shapeOf(lookup->table).size()) - 1, rows = lookup->dim;
        if (width == rows)
          continue;
        if (!program.axes.empty() && sumsLessByRows(*lookup, program) &&
            program.mayCut(lookup->table, {rows, allOf(lookup->table, rows), program.axes})) {
          leaveToReaders(op.getResult(0), unsigned(nn::shapeOf(op.getResult(0)).size()) - 1);
          tablesByRows.push_back(*lookup);
          continue;
        }
        seedWeight(lookup->table, width, allOf(lookup->table, width), rows);
        tables.insert(nn::storedForm(lookup->table));
      }
  }

  /// Whether the user's rules leave a product's columns to the layout.
  bool isFree(const WeightMatmul &product, Piece piece) const {
    return program.mayCut(product.op->getOperand(product.weight), {product.weightN, piece, program.axes});
  }

  void cutResult(Value result, unsigned dim, Piece piece) {
    if (program.axes.empty())
      return;
    seeds.push_back({result, {{dim, piece, program.axes}}});
    if (dim + 1 == nn::shapeOf(result).size())
      columnsOfResult[result] = piece;
  }

  /// The first product of a weight decides which dim is its columns; products of gradients have the same weight.
  void seedProducts() {
    for (Operation &op : function.front()) {
      std::optional<WeightMatmul> product = matchWeightMatmul(&op, program.dependences);
      if (!product || !product->resultN || !nn::isProduct(&op))
        continue;
      Value weight = op.getOperand(product->weight);
      Piece piece = allOf(op.getResult(0), *product->resultN);
      if (isCut(weight, product->weightN)) {
        for (const DimPlace &place : placesCut.lookup(weight))
          if (place.dim == product->weightN)
            piece = place.piece;
        cutResult(op.getResult(0), *product->resultN, piece);
        continue;
      }
      if (isCut(weight, product->weightK)) {
        if (program.axes.empty())
          continue;
        if (isTable(weight)) // logits
          leaveToReaders(op.getResult(0), *product->resultN);
        else // readers of a gradient cut it as forward's values
          seeds.push_back({op.getResult(0), {{*product->resultN}}});
        continue;
      }
      if (auto found = columns.find(&op); found != columns.end()) {
        product = found->second.product;
        piece = found->second.piece;
      }
      if (!isFree(*product, piece))
        continue;
      seedWeight(weight, product->weightN, piece, product->weightK);
      cutResult(op.getResult(0), *product->resultN, piece);
    }
  }

  /// Products that compute gradients of weights cut the columns, not what else their operands have in parts.
  void seedGradients() {
    std::map<std::string, Value> gradients = gradientsOf(function);
    for (auto &[value, places] : placesCut)
      if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
        if (auto gradient = gradients.find(parameter.getName().str()); gradient != gradients.end())
          for (const DimPlace &product : productsOf(DimPlace{gradient->second, places.front().dim, places.front().piece}))
            cutResult(product.value, product.dim, product.piece);
    for (const WeightLookup &lookup : tablesByRows)
      for (OpResult sum : rowSumsOf(lookup, function))
        cutResult(sum, lookup.dim, allOf(sum, lookup.dim));
  }

  /// The piece over y of a vector that is added to a product's columns, or scales a row that stays in parts.
  std::optional<Piece> pieceOfVector(Value vector) const {
    for (Operation *user : vector.getUsers()) {
      if (accessOf(user) == Access::Elementwise)
        for (Value operand : user->getOperands())
          if (auto found = columnsOfResult.find(operand); found != columnsOfResult.end())
            return found->second;
      if (rows.contains(user))
        return allOf(vector, 0);
    }
    return std::nullopt;
  }

  /// Other parameters that are worth a collective each: biases, norms' weights, tables of positions.
  void seedOthers() {
    llvm::DenseSet<Value> seeded;
    for (const LayoutSeed &seed : seeds)
      seeded.insert(nn::storedForm(seed.value));
    for (auto parameter : func::FuncOp(function).front().getOps<nn::ParameterOp>()) {
      Value value = parameter.getResult();
      RankedTensorType type = nn::tensorType(value);
      if (program.storageAxes.empty() || seeded.contains(value) || !isa<FloatType>(type.getElementType()) || type.getRank() == 0 ||
          type.getNumElements() * elementBytes(type) < prices.bytesOfLatency)
        continue;
      std::optional<Piece> piece = type.getRank() == 1 && !program.axes.empty() ? pieceOfVector(value) : std::nullopt;
      std::vector<std::string> axes = program.axes;
      llvm::append_range(axes, program.storageAxes);
      if (piece && piece->size >= program.ranksOf(axes))
        seeds.push_back({value, {{0, *piece, axes}}});
      else if (type.getRank() > 1 || program.axes.empty())
        seedParameter(value, {});
    }
  }

  /// A composite stays in parts if its whole row comes from columns of products or from tables.
  void seedRows() {
    for (RowInParts row : rowsInParts(program, [&](Operation *product) { return columns.contains(product); })) {
      seeds.push_back({row.result, {{row.dim, allOf(row.result, row.dim), program.axes}}});
      rows.insert(row.result.getDefiningOp());
    }
  }

  /// The cuts over y of a seeded value.
  dist::Sharding partsOf(const LayoutSeed &seed) const {
    dist::Sharding parts = dist::replicated(nn::shapeOf(seed.value).vec());
    for (const DimCut &cut : seed.cuts)
      if (cut.axes == program.axes)
        parts.dims[cut.dim] = dimSharding(nn::shapeOf(seed.value)[cut.dim], cut);
    return parts;
  }

  void seedParts(Value value, const dist::Sharding &parts) {
    LayoutSeed seed{value, {}};
    for (auto [dim, subs] : llvm::enumerate(parts.dims)) {
      int64_t inner = 1;
      for (const dist::SubDim &sub : llvm::reverse(subs)) {
        if (!sub.axes.empty())
          seed.cuts.push_back({unsigned(dim), {inner, sub.size}, sub.axes});
        inner *= sub.size;
      }
    }
    seeds.push_back(std::move(seed));
  }

  /// Values computed from parts of activations stay in parts, gradients and residuals too: whole, an addition would gather
  /// both its terms, and be kept so for backward.
  void seedActivations() {
    llvm::DenseMap<Value, dist::Sharding> parts;
    for (const LayoutSeed &seed : seeds)
      if (!seed.ofReaders)
        parts.try_emplace(seed.value, partsOf(seed));
    for (Operation &op : function.front()) {
      auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
      if (!ruled || stepPartOf(op.getLoc()) == StepPart::Update)
        continue;
      ShardingRule rule = ruled.getShardingRule();
      SmallVector<dist::Sharding> operands;
      for (Value operand : op.getOperands()) {
        auto found = parts.find(operand);
        operands.push_back(found == parts.end() ? dist::replicated(nn::shapeOf(operand).vec()) : found->second);
      }
      dist::OpSharding sharding = dist::inferFromOperands(rule, operands, program.mesh);
      if (llvm::any_of(llvm::zip(rule.factors, sharding.factors), [](auto pair) { return std::get<0>(pair).isInternal && dist::isCut(std::get<1>(pair)); }))
        continue; // a row that is whole
      for (OpResult result : op.getResults()) {
        dist::Sharding own = sharding.result(result.getResultNumber(), program.mesh);
        own.partial.clear();
        if (dist::isReplicated(own) || !parts.try_emplace(result, own).second)
          continue;
        if (!isView(&op) && program.dependences.lookup(result).isTrunk())
          seedParts(result, own);
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
    seedGradients();
    if (!program.axes.empty()) {
      seedRows();
      seedActivations();
    }
    seedOthers();
    return std::move(seeds);
  }
};
} // namespace

std::vector<LayoutSeed> twoDimensional(const LayoutProgram &program) { return TwoDimensional(program).find(); }

} // namespace hpc
