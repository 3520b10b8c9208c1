// The layout 1d+sp, of --sp (Korthikanti et al. 2022): weights are cut as in 1d, and what lies between a product by rows and
// the next one by columns is cut along the sequence. A sum over tp is then a reduce-scatter, and a gather stands before columns.
//
//   x [S@tp, K] -- gather --> [S, K] --- W1 [K, N@tp] --- gelu [S, N@tp] --- W2 [N@tp, K] --- partial{tp} -- reduce-scatter --.
//   next gather <--- norm [S@tp, K] <--- residual, dropout [S@tp, K] <--- bias [S@tp, K] <------------------------------------'
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Annotate/SequenceDims.h"

namespace hpc {

std::vector<LayoutSeed> oneDimensional(const LayoutProgram &program);

namespace {

/// One forward walk over the program, in which values are cut as 1d has them.
struct SequenceParallel {
  const LayoutProgram &program;
  func::FuncOp function;
  SequenceDims positions;
  std::vector<LayoutSeed> seeds;
  llvm::DenseMap<Value, size_t> seedOf;        ///< the seed of a value, by its place in `seeds`
  llvm::DenseMap<Value, dist::Sharding> parts; ///< values that are cut over tp
  llvm::DenseSet<Value> sums;                  ///< products' partial sums, and what is added up of such alone
  llvm::DenseSet<Value> between;               ///< values with positions that follow from sums, whole in 1d

  explicit SequenceParallel(const LayoutProgram &program)
      : program(program), function(program.function), positions(function), seeds(oneDimensional(program)) {
    for (auto [number, seed] : llvm::enumerate(seeds))
      seedOf.try_emplace(seed.value, number);
  }

  dist::Sharding shardingOf(Value value) const {
    auto found = parts.find(value);
    return found == parts.end() ? dist::replicated(nn::shapeOf(value).vec()) : found->second;
  }

  void setSharding(Value value, dist::Sharding sharding) {
    if (auto found = seedOf.find(value); found != seedOf.end())
      for (const DimCut &cut : seeds[found->second].cuts)
        if (!cut.axes.empty())
          sharding.dims[cut.dim] = dimSharding(nn::shapeOf(value)[cut.dim], cut);
    sharding.partial.clear();
    if (dist::isReplicated(sharding))
      return;
    parts[value] = sharding;
  }

  /// The user's cut of a parameter, else 1d's.
  void visitSource(Operation *op) {
    for (Value result : op->getResults()) {
      std::optional<dist::Seed> user = dist::seedOf(result);
      setSharding(result, user ? dist::withoutRows(user->sharding, program.mesh) : shardingOf(result));
    }
  }

  /// Keeps a product's columns cut: its rows could be, too, where its operand is cut along the sequence.
  void cutColumns(Value result) {
    LayoutSeed seed{result, {}};
    for (auto [dim, subs] : llvm::enumerate(shardingOf(result).dims)) {
      int64_t inner = 1;
      for (const dist::SubDim &sub : llvm::reverse(subs)) {
        if (!sub.axes.empty())
          seed.cuts.push_back({unsigned(dim), {inner, sub.size}, sub.axes});
        inner *= sub.size;
      }
    }
    if (!seed.cuts.empty() && seedOf.try_emplace(result, seeds.size()).second)
      seeds.push_back(std::move(seed));
  }

  /// Cuts the positions of a value over `inner`, inside of what axes of the sequence cut of them.
  void cutPositions(Value value, ArrayRef<std::string> inner) {
    SequenceDims::Place place = *positions.of(value);
    std::vector<std::string> axes = program.mesh.axesOf(dist::AxisRole::Sequence);
    llvm::erase_if(axes, [&](const std::string &axis) { return program.mesh.size(axis) == 1; });
    llvm::append_range(axes, inner);
    auto [entry, isNew] = seedOf.try_emplace(value, seeds.size());
    if (isNew)
      seeds.push_back({value, {}});
    seeds[entry->second].cuts.push_back({place.dim, place.piece, axes});
  }

  /// Whether a value has a dim of positions and of nothing else.
  bool hasPositions(Value value) const {
    std::optional<SequenceDims::Place> place = positions.of(value);
    return place && place->piece == Piece{1, nn::shapeOf(value)[place->dim]};
  }

  void visit(Operation *op, const ShardingRule &rule) {
    SmallVector<dist::Sharding> operands;
    for (Value operand : op->getOperands())
      operands.push_back(shardingOf(operand));
    dist::OpSharding sharding = dist::inferFromOperands(rule, operands, program.mesh);
    for (OpResult result : op->getResults())
      setSharding(result, sharding.result(result.getResultNumber(), program.mesh));
    bool isWeighted = accessOf(op) == Access::Product || matchWeightLookup(op, program.dependences);
    if (!dist::axesOf(sharding.factors).empty()) {
      const bool hasWeight = matchWeightMatmul(op, program.dependences).has_value();
      for (OpResult result : op->getResults())
        if (isWeighted && !dist::reducedAxes(rule, sharding.factors, ReduceKind::Sum, result.getResultNumber()).empty()) {
          sums.insert(result);
          if (!hasWeight && accessOf(op) == Access::Product && hasPositions(result)) // experts: tp has them, not rows
            cutPositions(result, {});
        } else if (hasWeight) {
          cutColumns(result);
        }
      return;
    }
    auto isSum = [&](Value value) { return sums.contains(value); };
    auto follows = [&](Value value) { return isSum(value) || between.contains(value); };
    if (isWeighted || llvm::none_of(op->getOperands(), follows))
      return;
    bool addsUp = rule.linear.kind == LinearClause::Sum && rule.linear.operands.size() == op->getNumOperands() &&
                  llvm::all_of(op->getOperands(), [&](Value value) { return isSum(value) && value.hasOneUse(); });
    for (OpResult result : op->getResults()) {
      if (addsUp)
        sums.insert(result);
      else if (positions.of(result))
        between.insert(result);
      // A view is cut as its reader is: that of a product's operand is whole.
      if (between.contains(result) && !isView(op) && hasPositions(result) && !parts.count(result))
        cutPositions(result, program.axes);
    }
  }

  std::vector<LayoutSeed> find() && {
    for (BlockArgument argument : function.getArguments())
      if (std::optional<SequenceDims::Place> place = positions.of(argument))
        seeds.push_back({argument, {{place->dim}}}); // every rank has it whole: lookups by columns read all, others a slice
    for (Operation &op : function.front())
      if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
        visit(&op, ruled.getShardingRule());
      else
        visitSource(&op);
    return std::move(seeds);
  }
};
} // namespace

std::vector<LayoutSeed> sequenceParallel(const LayoutProgram &program) {
  return program.axes.empty() ? std::vector<LayoutSeed>() : SequenceParallel(program).find();
}

Status needsSequence(const LayoutProgram &program) {
  if (!SequenceDims(program.function).all().empty())
    return Status::success();
  return Status::error(ErrorKind::Unsupported, "--sp cuts the positions of a sequence, and the model has no attention (nn.attention), from which these "
                                               "are found; leave --sp out");
}

} // namespace hpc
