// Seeds the inputs' batch dim. Time is major to data: a micro-batch is a contiguous part of the batch, and data
// parallelism cuts each micro-batch. The user's cut of an input lies inside of both, that of a computed value inside of
// time.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/BatchDims.h"
#include "compiler/Dialect/NN/BatchFlow.h"
#include "compiler/Dialect/NN/Ports.h"
#include "passes/Annotate/Passes.h"
#include "passes/Annotate/RowDims.h"
#include "passes/Annotate/SequenceCut.h"
#include "runtime/plan/GenerationPorts.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATEBATCH
#include "passes/Annotate/Passes.h.inc"

/// A hand-written file may contain anything that MLIR can express.
static LogicalResult checkArguments(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()); !type || !type.hasStaticShape())
      return userError(argument.getLoc(), ErrorKind::Model)
             << "argument " << argument.getArgNumber() << " of @main has type " << argument.getType()
             << "; programs take tensors of fixed sizes";
  return success();
}

/// Adds `axes` outside of the seed's cuts of dim `dim`; axes that it names already stay where they are.
static void cutOutside(dist::Seed &seed, int64_t dim, const std::vector<std::string> &axes) {
  std::vector<std::string> named = dist::cutAxes(seed.sharding);
  dist::DimSharding &subs = seed.sharding.dims[dim];
  std::vector<std::string> added;
  llvm::copy_if(axes, std::back_inserter(added),
                [&](const std::string &axis) { return !llvm::is_contained(named, axis); });
  if (!added.empty()) {
    subs.front().axes.insert(subs.front().axes.begin(), added.begin(), added.end());
    seed.open[dim] = false;
  }
}

/// The user's cut of a computed value's batch dim means a cut in every micro-batch.
static void cutOutsideOfSeeds(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims,
                              const std::vector<std::string> &time) {
  nn::BatchFlow flow(function, batchDims);
  for (Operation &op : function.front()) {
    flow.visit(&op);
    for (Value result : op.getResults()) {
      std::optional<dist::Seed> seed = dist::seedOf(result);
      if (!seed || !seed->isBinding())
        continue;
      for (size_t dim = 0; dim < seed->sharding.dims.size(); ++dim)
        if (flow.carries(result, int64_t(dim)) && dist::isCut(seed->sharding.dims[dim])) {
          cutOutside(*seed, int64_t(dim), time);
          dist::setSeed(result, *seed);
        }
    }
  }
}

/// States that a step writes rows of the batch into are cut as the batch is. Not over time: a state has one content for all micro-batches.
static LogicalResult cutStates(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims, const RowAxes &rows, const dist::Mesh &mesh) {
  std::vector<std::string> axes = mesh.axesOf(dist::AxisRole::Data);
  llvm::erase_if(axes, [&](const std::string &axis) { return !llvm::is_contained(rows.batch, axis); });
  nn::BatchFlow flow(function, batchDims);
  for (Operation &op : function.front()) {
    flow.visit(&op);
    auto update = dyn_cast<nn::UpdateSliceOp>(op);
    if (!update || !isa<BlockArgument>(update.getState()))
      continue;
    ArrayRef<int64_t> shape = nn::shapeOf(update.getState());
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim) {
      if (dim == int64_t(update.getDim()) || shape[dim] <= 1 || !flow.carries(update.getRows(), dim))
        continue;
      if (mesh.sizeOf(dist::AxisRole::Time) > 1)
        return userError(update, ErrorKind::Unsupported)
               << "state '" << nn::argumentPort(function, cast<BlockArgument>(update.getState()).getArgNumber()).state
               << "' holds rows of the batch, of which each micro-batch would write its own; compile with --micro-batches=1";
      dist::Seed seed = dist::seedOf(update.getState()).value_or(dist::Seed{dist::replicated(shape.vec()), std::vector<bool>(shape.size(), true)});
      if (axes.empty() || dist::isCut(seed.sharding.dims[dim]))
        continue;
      cutOutside(seed, dim, axes);
      dist::setSeed(update.getState(), seed);
    }
  }
  return success();
}

namespace {
struct AnnotateBatch : impl::AnnotateBatchBase<AnnotateBatch> {
  using AnnotateBatchBase::AnnotateBatchBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    if (failed(checkArguments(function)))
      return signalPassFailure();
    dist::Mesh mesh = dist::meshOf(getOperation());
    auto dims = nn::findBatchDims(function, batchDim);
    if (failed(dims))
      return signalPassFailure();
    for (unsigned argument = 0; argument < function.getNumArguments(); ++argument) // which hold a row of the batch each
      if (StringRef(nn::argumentPort(function, argument).state).starts_with(plan::cachePrefix))
        (*dims)[argument] = 0;
    int64_t microBatches = mesh.sizeOf(dist::AxisRole::Time);
    std::vector<std::string> ofRows = mesh.axesOf(dist::AxisRole::Time);
    llvm::append_range(ofRows, mesh.axesOf(dist::AxisRole::Data));
    const int64_t batch = batchSize(function, *dims);
    RowAxes rows = rowAxesFor(batch, /*hasPositions=*/true, ofRows, mesh);
    std::optional<SequenceDims> sequence; // found where some axis needs it
    if (!rows.positions.empty())
      rows = rowAxesFor(batch, !sequence.emplace(function).all().empty(), ofRows, mesh);
    const std::vector<std::string> &axes = rows.batch;
    bool hasBatch = false;
    for (auto [argument, dim] : llvm::enumerate(*dims)) {
      if (!dim)
        continue;
      hasBatch = true;
      Value value = function.getArgument(argument);
      std::vector<int64_t> shape = nn::shapeOf(value).vec();
      std::optional<dist::Seed> user = dist::seedOf(value);
      if (user) // hpc-verify-annotated reports a seed that does not fit, with all its faults
        if (!dist::verify(user->sharding, shape, mesh).ok() || user->sharding.dims[*dim].empty())
          continue;
      // The micro-batches are cut from the major sub-dim, which a user may have made smaller than the batch.
      int64_t outer = user ? user->sharding.dims[*dim].front().size : shape[*dim];
      if (outer % microBatches) {
        std::string name = nn::argumentPort(function, argument).name;
        userError(function, ErrorKind::Usage)
            << "--micro-batches=" << microBatches << " does not divide the batch of " << shape[*dim] << " (dim " << *dim
            << " of input '" << (name.empty() ? "?" : name) << "'"
            << (user ? ", seeded " + dist::shardingText(*user) : std::string()) << "); use a divisor of "
            << (user ? std::to_string(outer) : "it") << nn::guessedBatchText(function);
        return signalPassFailure();
      }
      if (shape[*dim] <= 1 || axes.empty())
        continue; // nothing to cut, or nothing to cut it with
      dist::Seed seed = user.value_or(dist::Seed{dist::replicated(shape), std::vector<bool>(shape.size(), true)});
      cutOutside(seed, *dim, axes);
      dist::setSeed(value, seed);
    }
    if (failed(cutStates(function, *dims, rows, mesh)))
      return signalPassFailure();
    if (!rows.positions.empty())
      cutSequence(function, *sequence, rows.positions);
    if (microBatches > 1)
      cutOutsideOfSeeds(function, *dims, mesh.axesOf(dist::AxisRole::Time));
    if (microBatches > 1 && !hasBatch) {
      userError(function, ErrorKind::Usage)
          << "--micro-batches=" << microBatches << " needs a batch dim, and no input has a dim; use --micro-batches=1";
      return signalPassFailure();
    }
  }
};
} // namespace

} // namespace hpc
