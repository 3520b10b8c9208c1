// Seeds the inputs' batch dim. mb is major to dp: a micro-batch is a contiguous part of the batch, and dp cuts each of
// them.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/NN.h"
#include "passes/Annotate/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATEBATCH
#include "passes/Annotate/Passes.h.inc"

/// The symbolic names of an input's dims, "" where it has none.
static SmallVector<StringRef> dimNames(func::FuncOp function, unsigned argument) {
  SmallVector<StringRef> names(nn::shapeOf(function.getArgument(argument)).size());
  if (auto attr = function.getArgAttrOfType<ArrayAttr>(argument, "nn.dims"))
    for (auto [name, entry] : llvm::zip(names, attr.getAsRange<StringAttr>()))
      name = entry.getValue();
  return names;
}

/// The batch dim of every input, nullopt where it has none.
static FailureOr<SmallVector<std::optional<int64_t>>> findBatchDims(func::FuncOp function, StringRef wanted) {
  SmallVector<std::optional<int64_t>> dims(function.getNumArguments());
  llvm::SetVector<StringRef> known;
  bool isNamed = false;
  for (unsigned argument = 0; argument < dims.size(); ++argument)
    for (auto [dim, name] : llvm::enumerate(dimNames(function, argument))) {
      if (!name.empty() && !llvm::all_of(name, llvm::isDigit))
        known.insert(name);
      if (!dims[argument] && (wanted.empty() ? name.starts_with("batch") : name == wanted)) {
        dims[argument] = dim;
        isNamed = true;
      }
    }
  if (isNamed)
    return dims;
  if (!wanted.empty()) {
    userError(function, ErrorKind::Usage) << "--batch-dim=" << wanted << " names no dim of an input; the inputs have "
                                          << (known.empty() ? "no named dims" : llvm::join(known, ", "));
    return failure();
  }
  // Nothing is named: dim 0, of all inputs that agree on its size with the first.
  std::optional<int64_t> size;
  for (unsigned argument = 0; argument < dims.size(); ++argument) {
    ArrayRef<int64_t> shape = nn::shapeOf(function.getArgument(argument));
    if (shape.empty() || (size && *size != shape[0]))
      continue;
    size = shape[0];
    dims[argument] = 0;
  }
  return dims;
}

namespace {
struct AnnotateBatch : impl::AnnotateBatchBase<AnnotateBatch> {
  using AnnotateBatchBase::AnnotateBatchBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    dist::Mesh mesh = dist::meshOf(getOperation());
    auto dims = findBatchDims(function, batchDim);
    if (failed(dims))
      return signalPassFailure();
    int64_t microBatches = mesh.size("mb");
    bool hasBatch = false;
    for (auto [argument, dim] : llvm::enumerate(*dims)) {
      if (!dim)
        continue;
      hasBatch = true;
      std::vector<int64_t> shape = nn::shapeOf(function.getArgument(argument)).vec();
      if (shape[*dim] % microBatches) {
        auto name = function.getArgAttrOfType<StringAttr>(argument, "nn.name");
        userError(function, ErrorKind::Usage)
            << "--micro-batches=" << microBatches << " does not divide the batch of " << shape[*dim] << " (dim " << *dim
            << " of input '" << (name ? name.getValue() : "?") << "'); use a divisor of it";
        return signalPassFailure();
      }
      if (shape[*dim] <= 1)
        continue; // a dim of size 1 has nothing to cut
      dist::Sharding seed = dist::replicated(shape);
      for (StringRef axis : {"mb", "dp"})
        if (mesh.size(axis.str()) > 1)
          seed.dims[*dim].front().axes.push_back(axis.str());
      if (!dist::isReplicated(seed))
        function.setArgAttr(argument, "dist.seed", dist::ShardingAttr::get(&getContext(), seed));
    }
    if (microBatches > 1 && !hasBatch) {
      userError(function, ErrorKind::Usage)
          << "--micro-batches=" << microBatches << " needs a batch dim, and no input has a dim; use --micro-batches=1";
      return signalPassFailure();
    }
  }
};
} // namespace

} // namespace hpc
