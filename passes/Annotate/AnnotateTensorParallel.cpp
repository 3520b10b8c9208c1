// Runs a layout strategy, by name, and attaches its seeds. The user's rules go first, also those for the parameters
// from which a weight is computed.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/BatchDims.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Annotate/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATETENSORPARALLEL
#include "passes/Annotate/Passes.h.inc"

/// The first of the layout's seeds of a value stays, beside what rows' axes cut already. A weight without elements gets none, nor does one that is
/// computed from parameters which the user has cut. `written`: values, and those whose readers are meant.
static void writeSeed(const LayoutSeed &wanted, const LayoutProgram &program, llvm::DenseSet<std::pair<Value, unsigned>> &written) {
  if (!program.userSeeds(wanted.value).empty())
    return;
  Value value = wanted.ofReaders ? wanted.value : nn::storedForm(wanted.value); // where ZeRO looks for it
  std::optional<dist::Seed> given = wanted.ofReaders ? dist::readSeedOf(value) : dist::seedOf(value);
  if ((given && given->isBinding()) || nn::tensorType(value).getNumElements() == 0 || !written.insert({value, wanted.ofReaders}).second)
    return;
  std::vector<int64_t> shape = nn::shapeOf(value).vec();
  dist::Seed seed = given.value_or(dist::Seed{dist::replicated(shape), std::vector<bool>(shape.size(), true)});
  for (const DimCut &cut : wanted.cuts) {
    seed.open[cut.dim] = false;
    if (!cut.axes.empty())
      cutPiece(seed.sharding.dims[cut.dim], cut);
  }
  wanted.ofReaders ? dist::setReadSeed(value, seed) : dist::setSeed(value, seed);
}

namespace {
struct AnnotateTensorParallel : impl::AnnotateTensorParallelBase<AnnotateTensorParallel> {
  using AnnotateTensorParallelBase::AnnotateTensorParallelBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    Expected<const LayoutStrategy *> strategy = findLayout(layout);
    if (!strategy.ok()) {
      userError(getOperation(), strategy.status().kind()) << strategy.status().message();
      return signalPassFailure();
    }
    if (!function)
      return;
    dist::Mesh mesh = dist::meshOf(getOperation());
    if (Status arranged = checkAxes(**strategy, mesh); !arranged.ok()) {
      userError(getOperation(), arranged.kind()) << arranged.message();
      return signalPassFailure();
    }
    std::vector<std::string> axes;
    llvm::copy_if(mesh.axesOf(dist::AxisRole::Tensor), std::back_inserter(axes),
                  [&](const std::string &axis) { return mesh.size(axis) > 1; });
    auto batchDims = nn::findBatchDims(function, batchDim);
    if (failed(batchDims))
      return signalPassFailure();
    LayoutProgram program{function, mesh, axes, storageAxes(**strategy, mesh), nn::findDependences(function), *batchDims};
    if (Status fits = (*strategy)->check ? (*strategy)->check(program) : Status::success(); !fits.ok()) {
      userError(getOperation(), fits.kind()) << fits.message();
      return signalPassFailure();
    }
    llvm::DenseSet<std::pair<Value, unsigned>> written;
    for (const LayoutSeed &seed : (*strategy)->seeds(program))
      writeSeed(seed, program, written);
  }
};
} // namespace

} // namespace hpc
