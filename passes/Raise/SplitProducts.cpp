// A product with a weight whose columns are read in unequal parts becomes one product a part: no list of sub-dims cuts
// q, k and v of grouped attention together if one weight has them side by side. Equal parts stay: (3, rest) cuts them.
#include "passes/Raise/Passes.h"
#include "passes/Raise/Simplify.h"

#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc {

#define GEN_PASS_DEF_SPLITPRODUCTS
#include "passes/Raise/Passes.h.inc"

namespace {
/// A range of the columns of a product.
struct Part {
  nn::SliceOp slice;
  int64_t start = 0, size = 0;
};

/// A product, the steps on its columns one by one, and the parts in which the last result is read.
struct SplitMatch {
  nn::MatmulOp product;
  SmallVector<Operation *> steps; ///< biases and reshapes, each the only user of what is before it
  SmallVector<Part> parts;        ///< in program order
};
} // namespace

static int64_t columnsOf(nn::MatmulOp product) { return nn::shapeOf(product.getResult()).back(); }

/// Activations times a weight of rank 2.
static bool isWeightProduct(nn::MatmulOp product, const nn::Dependences &dependences) {
  return nn::shapeOf(product.getRhs()).size() == 2 && nn::shapeOf(product.getLhs()).size() >= 2 &&
         dependences.lookup(product.getRhs()).isWeight() && !dependences.lookup(product.getLhs()).isWeight();
}

/// The side of a sum that is a bias of the columns: a weight along the last dim alone.
static std::optional<unsigned> biasSide(nn::AddOp add, Value product, const nn::Dependences &dependences) {
  unsigned side = add.getLhs() == product ? 1 : 0;
  Value bias = add->getOperand(side);
  ArrayRef<int64_t> shape = nn::shapeOf(bias);
  bool isRow = !shape.empty() && shape.back() == nn::shapeOf(product).back() &&
               llvm::all_of(shape.drop_back(), [](int64_t size) { return size == 1; });
  return isRow && dependences.lookup(bias).isWeight() && add.getType() == product.getType() ? std::optional(side)
                                                                                        : std::nullopt;
}

/// Whether a reshape only parts the columns: the leading dims stay.
static bool partsColumns(nn::ReshapeOp reshape, size_t leadingDims) {
  ArrayRef<int64_t> from = nn::shapeOf(reshape.getOperand()), to = nn::shapeOf(reshape.getResult());
  return to.size() > leadingDims && from.take_front(leadingDims) == to.take_front(leadingDims);
}

/// The columns that a slice reads, if they are one range and all other dims are whole.
static std::optional<Part> partOf(nn::SliceOp slice, size_t leadingDims) {
  ArrayRef<int64_t> from = nn::shapeOf(slice.getOperand()), sizes = nn::shapeOf(slice.getResult());
  Part part{slice, 0, 1};
  bool isRange = true, isCut = false;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (size == 0 || slice.getSteps()[dim] != 1 || (dim < leadingDims && size != from[dim]))
      return std::nullopt;
    if (dim < leadingDims)
      continue;
    // Outside of the dim that is cut only one row may be read, else the ranges are many.
    isRange &= part.size == 1 || size == from[dim];
    isCut |= size != from[dim];
    part.start = part.start * from[dim] + slice.getStarts()[dim];
    part.size *= size;
  }
  return isRange && isCut ? std::optional(part) : std::nullopt;
}

/// Whether ranges do not overlap and are not equal parts of the whole.
static bool areUnequal(ArrayRef<Part> parts, int64_t columns) {
  bool isUnequal = false;
  for (auto [index, part] : llvm::enumerate(parts)) {
    isUnequal |= part.size != parts[0].size || columns % part.size != 0 || part.start % part.size != 0;
    for (const Part &other : parts.drop_front(index + 1))
      if (part.start < other.start + other.size && other.start < part.start + part.size)
        return false;
  }
  return isUnequal;
}

static std::optional<SplitMatch> matchSplit(nn::MatmulOp product, const nn::Dependences &dependences) {
  if (!isWeightProduct(product, dependences))
    return std::nullopt;
  SplitMatch match{product, {}, {}};
  size_t leadingDims = nn::shapeOf(product.getResult()).size() - 1;
  Value value = product.getResult();
  for (bool isWhole = true; value.hasOneUse();) { // no longer than the program, and each step is another op
    Operation *user = *value.user_begin();
    auto add = dyn_cast<nn::AddOp>(user);
    auto reshape = dyn_cast<nn::ReshapeOp>(user);
    if (!(add && isWhole && biasSide(add, value, dependences)) && !(reshape && partsColumns(reshape, leadingDims)))
      return std::nullopt;
    isWhole &= !reshape;
    match.steps.push_back(user);
    value = user->getResult(0);
  }
  for (Operation *user : value.getUsers()) {
    auto slice = dyn_cast<nn::SliceOp>(user);
    std::optional<Part> part = slice ? partOf(slice, leadingDims) : std::nullopt;
    if (!part)
      return std::nullopt;
    match.parts.push_back(*part);
  }
  std::reverse(match.parts.begin(), match.parts.end()); // users are listed last first
  return areUnequal(match.parts, columnsOf(product)) ? std::optional(match) : std::nullopt;
}

/// A range along one dim, with all other dims whole.
static Value sliceDim(OpBuilder &builder, Location loc, Value value, size_t dim, const Part &part) {
  SmallVector<int64_t> shape(nn::shapeOf(value)), starts(shape.size(), 0), steps(shape.size(), 1);
  shape[dim] = part.size;
  starts[dim] = part.start;
  auto type = RankedTensorType::get(shape, nn::tensorType(value).getElementType());
  return nn::SliceOp::create(builder, loc, type, value, starts, steps);
}

static void splitProduct(const SplitMatch &match, const nn::Dependences &dependences) {
  nn::MatmulOp product = match.product;
  for (const Part &part : match.parts) {
    OpBuilder builder(part.slice);
    Value weight = sliceDim(builder, product.getLoc(), product.getRhs(), product.getTransposeRhs() ? 0 : 1, part);
    Value value = nn::MatmulOp::create(builder, product.getLoc(), product.getLhs(), weight, product.getTransposeLhs(),
                                       product.getTransposeRhs());
    Value before = product.getResult();
    for (Operation *step : match.steps) {
      if (auto add = dyn_cast<nn::AddOp>(step)) {
        unsigned side = *biasSide(add, before, dependences);
        Value bias = add->getOperand(side);
        bias = sliceDim(builder, bias.getLoc(), bias, nn::shapeOf(bias).size() - 1, part);
        value = nn::AddOp::create(builder, step->getLoc(), side == 0 ? bias : value, side == 0 ? value : bias);
      }
      before = step->getResult(0);
    }
    nn::SliceOp slice = part.slice;
    if (value.getType() != slice.getType())
      value = nn::ReshapeOp::create(builder, slice.getLoc(), slice.getType(), value);
    slice.replaceAllUsesWith(value);
    slice.erase();
  }
  for (Operation *step : llvm::reverse(match.steps))
    step->erase();
  product.erase();
}

/// slice(transpose(x)) -> transpose(slice(x)) where only slices read the transpose: they then read the value beside the
/// product.
static void sliceBeforeTransposing(nn::TransposeOp transpose) {
  SmallVector<nn::SliceOp> slices;
  for (Operation *user : transpose->getUsers()) {
    auto slice = dyn_cast<nn::SliceOp>(user);
    if (!slice)
      return;
    slices.push_back(slice);
  }
  for (nn::SliceOp slice : slices) {
    OpBuilder builder(slice);
    SmallVector<int64_t> shape(nn::shapeOf(transpose.getOperand())), starts(shape.size(), 0), steps(shape.size(), 1);
    for (auto [dim, from] : llvm::enumerate(transpose.getPermutation())) {
      shape[from] = nn::shapeOf(slice.getResult())[dim];
      starts[from] = slice.getStarts()[dim];
      steps[from] = slice.getSteps()[dim];
    }
    auto type = RankedTensorType::get(shape, nn::tensorType(slice.getResult()).getElementType());
    Value part = nn::SliceOp::create(builder, slice.getLoc(), type, transpose.getOperand(), starts, steps);
    part = nn::TransposeOp::create(builder, transpose.getLoc(), part, transpose.getPermutation());
    slice.replaceAllUsesWith(part);
    slice.erase();
  }
  transpose.erase();
}

namespace {
struct SplitProducts : impl::SplitProductsBase<SplitProducts> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function || !llvm::hasSingleElement(function.getBody()))
      return;
    SmallVector<nn::TransposeOp> transposes(function.front().getOps<nn::TransposeOp>());
    llvm::for_each(llvm::reverse(transposes), sliceBeforeTransposing);
    nn::Dependences dependences = nn::findDependences(function);
    SmallVector<SplitMatch> matches; // no op is in two of them
    for (auto product : function.front().getOps<nn::MatmulOp>())
      if (std::optional<SplitMatch> match = matchSplit(product, dependences))
        matches.push_back(std::move(*match));
    for (const SplitMatch &match : matches)
      splitProduct(match, dependences);
  }
};
} // namespace

} // namespace hpc
