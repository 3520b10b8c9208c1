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
      if (nn::argumentPort(function, argument).isCache())
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
      if (const nn::ArgumentPort port = nn::argumentPort(function, argument); microBatches > 1 && port.isState() && !port.isCache()) {
        userError(function, ErrorKind::Unsupported) << "--micro-batches=" << microBatches << ": state '" << port.state << "' has the rows of the batch, and a stage holds it once, not once a "
                                                    << "micro-batch; use --micro-batches=1";
        return signalPassFailure();
      }
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
