// Slices of weights are bound, not computed: a rank reads a list of ranges of a file anyway. Only a weight that is read
// in parts alone, which together are all of it: a plan must hold each stored element, and only once.
#include "passes/Kernels/Passes.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/NN/Ports.h"

namespace hpc {
#define GEN_PASS_DEF_BINDPARTS
#include "passes/Kernels/Passes.h.inc"

namespace {
/// A part of a stored weight.
struct WeightPart {
  nn::SliceOp slice;
  SmallVector<int64_t> stored, starts, sizes;
};
} // namespace

/// Whether a cut of the part is a cut of the stored tensor: its inner sub-dims divide size and start.
static bool nests(const WeightPart &part, const dist::Sharding &sharding) {
  for (auto [dim, subDims] : llvm::enumerate(sharding.dims)) {
    int64_t inner = 1;
    for (size_t sub = 1; sub < subDims.size(); ++sub) // a dim of size 1 has none
      inner *= subDims[sub].size;
    if (part.stored[dim] % inner != 0 || part.starts[dim] % inner != 0)
      return false;
  }
  return true;
}

/// The part of a parameter that a slice reads, however either is cut; nullopt where, by a stride or a cut that does not
/// nest, a rank reads several ranges of the stored tensor.
static std::optional<WeightPart> partOf(nn::ParameterOp parameter, nn::SliceOp slice) {
  ArrayRef<int64_t> stored = dist::globalType(nn::tensorType(parameter.getResult())).getShape();
  ArrayRef<int64_t> sizes = dist::globalType(nn::tensorType(slice.getResult())).getShape();
  auto starts = cast<DenseI64ArrayAttr>(globalAttributes(slice).get(slice.getStartsAttrName()));
  if (llvm::is_contained(sizes, 0) || llvm::any_of(slice.getSteps(), [](int64_t step) { return step != 1; }))
    return std::nullopt;
  WeightPart part{slice, SmallVector<int64_t>(stored), SmallVector<int64_t>(starts.asArrayRef()),
                  SmallVector<int64_t>(sizes)};
  return nests(part, dist::shardingOf(slice.getResult())) ? std::optional(part) : std::nullopt;
}

static bool meet(const WeightPart &a, const WeightPart &b) {
  for (size_t dim = 0; dim < a.stored.size(); ++dim)
    if (a.starts[dim] >= b.starts[dim] + b.sizes[dim] || b.starts[dim] >= a.starts[dim] + a.sizes[dim])
      return false;
  return true;
}

/// Adds the parts in which a parameter is read through a value of it; false where it is not read so.
static bool collectParts(nn::ParameterOp parameter, Value value, SmallVectorImpl<WeightPart> &parts) {
  for (Operation *user : value.getUsers()) {
    if (isa<dist::SliceOp>(user)) { // a rank's piece of the parameter: its cut of the parts
      if (!collectParts(parameter, user->getResult(0), parts))
        return false;
      continue;
    }
    auto slice = dyn_cast<nn::SliceOp>(user);
    std::optional<WeightPart> part = slice ? partOf(parameter, slice) : std::nullopt;
    if (!part || llvm::any_of(parts, [&](const WeightPart &other) { return meet(*part, other); }))
      return false;
    parts.push_back(std::move(*part));
  }
  return true;
}

/// The parts in which a parameter is read, if they cover it and nothing else reads it; otherwise none.
static SmallVector<WeightPart> partsOf(nn::ParameterOp parameter) {
  SmallVector<WeightPart> parts;
  if (parameter.isPart() || !collectParts(parameter, parameter.getResult(), parts) || parts.empty() ||
      nn::isWritten(parameter.getResult()))
    return {};
  int64_t missing = dist::globalType(nn::tensorType(parameter.getResult())).getNumElements();
  for (const WeightPart &part : parts) {
    int64_t elements = 1;
    for (int64_t size : part.sizes)
      elements *= size;
    missing -= elements;
  }
  if (missing != 0)
    return {};
  llvm::sort(parts, [](const WeightPart &a, const WeightPart &b) { return a.starts < b.starts; });
  return parts;
}

/// Binds a value that holds the part, cut or not, and the ranks' slices of it.
static void bind(nn::ParameterOp parameter, const WeightPart &part, Value value) {
  Operation *op = value.getDefiningOp();
  for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
    if (isa<dist::SliceOp>(user) && nests(part, dist::shardingOf(user->getResult(0))))
      bind(parameter, part, user->getResult(0));
  if (!value.use_empty()) {
    OpBuilder builder(op);
    auto bound = cast<nn::ParameterOp>(builder.clone(*parameter));
    bound.getResult().setType(nn::tensorType(value));
    nn::Storage storage = parameter.stored();
    storage.shape.assign(part.stored.begin(), part.stored.end());
    storage.starts.assign(part.starts.begin(), part.starts.end());
    bound.setStored(storage);
    setValueIds(bound, valueIdsOf(op));
    value.replaceAllUsesWith(bound.getResult());
  }
  op->erase();
}

/// Erases a dist.slice without readers, and those of its result.
static void eraseSlices(Operation *slice) {
  for (Operation *user : llvm::make_early_inc_range(slice->getUsers()))
    eraseSlices(user);
  slice->erase();
}

namespace {
struct BindPartsPass : impl::BindPartsBase<BindPartsPass> {
  void runOnOperation() override {
    SmallVector<nn::ParameterOp> parameters;
    getOperation().walk([&](nn::ParameterOp parameter) { parameters.push_back(parameter); });
    for (nn::ParameterOp parameter : parameters) {
      SmallVector<WeightPart> parts = partsOf(parameter);
      for (WeightPart &part : parts)
        bind(parameter, part, part.slice.getResult());
      if (parts.empty())
        continue;
      for (Operation *user : llvm::make_early_inc_range(parameter->getUsers()))
        eraseSlices(user);
      parameter.erase();
    }
  }
};
} // namespace
} // namespace hpc
