// ZeRO as annotation (Rajbhandari et al. 2020): seeds that cut the states of the optimizer over the ranks of data
// parallelism, and for level 3 the stored parameters. Propagation and partition find all reshards that follow.
#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/ModuleMachine.h"
#include "passes/Annotate/Passes.h"
#include "runtime/cost/CollectiveTime.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATEZERO
#include "passes/Annotate/Passes.h.inc"

namespace {
struct ZeroAnnotator {
  func::FuncOp function;
  const dist::Mesh mesh;
  const int64_t level;
  std::vector<std::string> dataAxes; ///< of more than one rank
  std::map<std::string, SmallVector<nn::ParameterOp>> parameters;
  std::map<std::string, std::optional<size_t>> chosen; ///< the dim that is cut, by parameter
  nn::Dependences dependences;
  int64_t bytesOfLatency; ///< over the link that the ranks of data lie apart

  /// Whether a seed cuts dim `dim` of a weight, or the dim that it becomes in a weight computed from this one (the
  /// kernel of a convolution, reshaped for its product). A cut over data of the same dim would be moved for each use.
  bool isCutFurtherOn(Value weight, unsigned dim) const {
    if (std::optional<dist::Seed> seed = dist::seedOf(weight); seed && dist::isCut(seed->sharding.dims[dim]))
      return true;
    for (OpOperand &use : weight.getUses()) {
      auto ruled = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
      if (!ruled)
        continue;
      ShardingRule rule = ruled.getShardingRule();
      const auto &factors = rule.operands[use.getOperandNumber()][dim];
      for (auto [result, dims] : llvm::zip(use.getOwner()->getResults(), rule.results))
        for (unsigned resultDim = 0; resultDim < dims.size(); ++resultDim)
          if (dependences.lookup(result).isWeight() &&
              llvm::any_of(factors, [&, &resultDims = dims](int factor) { return llvm::is_contained(resultDims[resultDim], factor); }) &&
              isCutFurtherOn(result, resultDim))
            return true;
    }
    return false;
  }

  /// The dim of a parameter to cut over data: the first that no seed cuts and that gives every rank an element. None
  /// for a vector that is smaller than the latency of a collective in bytes: left uncut, its gradient goes into a
  /// bucket with others. None either for a vector beside tensor axes, which may cut it in propagation.
  /// If a layout stores pieces of every dim, the dim whose pieces are cut further.
  std::optional<size_t> freeDim(Value parameter, dist::Seed seed, ArrayRef<std::string> axes) const {
    RankedTensorType type = nn::tensorType(parameter);
    ArrayRef<int64_t> shape = type.getShape();
    int64_t ranks = ranksOf(axes);
    bool isSmall = type.getNumElements() * elementBytes(type.getElementType()) < bytesOfLatency;
    if (shape.size() < 2 && (isSmall || mesh.sizeOf(dist::AxisRole::Tensor) > 1))
      return std::nullopt;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (shape[dim] >= ranks && !isCutFurtherOn(parameter, unsigned(dim)))
        return dim;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (dist::SubDim *pieces = piecesOf(seed, dim); pieces && pieces->size >= ranks * ranksOf(pieces->axes))
        return dim;
    return std::nullopt;
  }

  /// The name of a state's parameter: "wte.weight" for the state "adam.m/wte.weight".
  std::string parameterOf(StringRef state) const {
    std::string name = state.split('/').second.str();
    return parameters.count(name) ? name : "";
  }

  static dist::Seed seedOrOpen(Value value) {
    std::vector<int64_t> shape = nn::shapeOf(value).vec();
    dist::Seed open{dist::replicated(shape), std::vector<bool>(shape.size(), true)};
    return dist::seedOf(value).value_or(open);
  }

  int64_t ranksOf(ArrayRef<std::string> axes) const {
    int64_t ranks = 1;
    for (const std::string &axis : axes)
      ranks *= mesh.size(axis);
    return ranks;
  }

  /// The sub-dim that a layout cuts into stored pieces.
  dist::SubDim *piecesOf(dist::Seed &seed, size_t dim) const {
    for (dist::SubDim &sub : seed.sharding.dims[dim])
      if (!dist::rowAxesOf(sub.axes, mesh).empty())
        return &sub;
    return nullptr;
  }

  void cut(dist::Seed &seed, size_t dim, ArrayRef<std::string> axes) const {
    dist::SubDim *pieces = piecesOf(seed, dim);
    llvm::append_range(pieces ? pieces->axes : seed.sharding.dims[dim].front().axes, axes);
    seed.open[dim] = false;
  }

  void annotate(BlockArgument state, SmallVector<nn::ParameterOp> &ops) {
    nn::ParameterOp parameter = ops.front();
    ArrayRef<int64_t> shape = nn::shapeOf(parameter.getResult());
    dist::Seed seed = seedOrOpen(parameter.getResult());
    if (dist::seedOf(state) || nn::shapeOf(state) != shape)
      return;
    dist::Seed ofState = seed;
    ofState.priority = dist::Seed().priority; // a default, though the parameter may be cut by the user
    ofState.origin = dist::Seed().origin;
    // A cut of the layout, of the user, or of level 3 for another state stays; an axis cuts one dim only.
    std::vector<std::string> stored = dist::rowAxesOf(dist::cutAxes(seed.sharding), mesh), axes;
    llvm::copy_if(dataAxes, std::back_inserter(axes), [&](const std::string &axis) { return !llvm::is_contained(stored, axis); });
    if (!stored.empty() && (level == 0 || seed.isBinding() || axes.empty()))
      return dist::setSeed(state, ofState);
    if (level == 0)
      return;
    // The first of several states decides.
    auto [choice, isNew] = chosen.try_emplace(parameter.getName().str());
    if (isNew)
      choice->second = freeDim(parameter.getResult(), seed, axes);
    std::optional<size_t> dim = choice->second;
    if (!dim) {
      if (!stored.empty())
        dist::setSeed(state, ofState);
      return;
    }
    cut(ofState, *dim, axes);
    dist::setSeed(state, ofState);
    for (nn::ParameterOp op : ops) {
      dist::Seed kept = seedOrOpen(op.getResult());
      if (level == 3)
        cut(kept, *dim, axes);
      kept.open[*dim] = false; // below 3: stored whole over data, even if its states are cut
      dist::setSeed(op.getResult(), kept);
    }
  }

  void run() {
    function.walk([&](nn::ParameterOp op) { parameters[op.getName().str()].push_back(op); });
    for (BlockArgument argument : function.getArguments())
      if (std::string name = parameterOf(nn::argumentPort(function, argument.getArgNumber()).state); !name.empty())
        annotate(argument, parameters[name]);
  }
};

int64_t latencyOver(const std::vector<std::string> &axes, const dist::Mesh &mesh, func::FuncOp function) {
  const cost::Machine machine = machineOf(function);
  std::vector<plan::Axis> ranks;
  for (const dist::Mesh::Axis &axis : mesh.axes)
    if (axis.role != dist::AxisRole::Time)
      ranks.push_back({axis.name, axis.size});
  const cost::GroupShape shape = cost::shapeOf(machine, ranks, axes);
  return machine.bytesOfLatency(shape.levels.empty() ? 0 : shape.levels.back().link);
}

struct AnnotateZero : impl::AnnotateZeroBase<AnnotateZero> {
  using AnnotateZeroBase::AnnotateZeroBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    dist::Mesh mesh = dist::meshOf(getOperation());
    std::vector<std::string> axes;
    llvm::copy_if(mesh.rowAxes(), std::back_inserter(axes),
                  [&](const std::string &axis) { return mesh.size(axis) > 1; });
    if (!function)
      return;
    if (axes.empty() && level > 0) {
      mlir::emitRemark(function.getLoc()) << "--zero=" << std::to_string(level) << " cuts what data parallel ranks hold alike, and there is one such rank: nothing is cut; "
                                          << "add --dp=N, or leave it out";
      return;
    }
    ZeroAnnotator{function, mesh, level, axes, {}, {}, nn::findDependences(function), latencyOver(axes, mesh, function)}.run();
  }
};
} // namespace

} // namespace hpc
