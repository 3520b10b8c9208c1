// A view of the input is followed together with the box of the input that it shows.
#include "compiler/Dialect/NN/Lookups.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Location.h"

namespace hpc::nn {

namespace {
/// A view of the input: which box of it is in there, all of that box or some, and whether dim i of the one is still dim
/// i of the other.
struct Seen {
  Value value;
  Lookup box;
  bool hasDims = true;
  int64_t fromEnd = 0; ///< what negative numbers have been raised by, so that they count from the end
};

bool isInteger(Value value) { return isa<IntegerType>(tensorType(value).getElementType()); }

/// Wider integers hold what narrower ones do; of the others some numbers become others.
bool keepsNumbers(CastOp cast) {
  auto bits = [](Value value) { return tensorType(value).getElementType().getIntOrFloatBitWidth(); };
  return isInteger(cast.getResult()) && bits(cast.getResult()) >= bits(cast.getOperand());
}

/// i < 0 ? i + n : i, of which the input is i: n; 0 for anything else.
int64_t raisesNegative(Value input, SelectOp select) {
  auto number = [](Value value) -> std::optional<int64_t> {
    auto constant = value.getDefiningOp<ConstantOp>();
    auto dense = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
    return dense && dense.isSplat() ? std::optional(dense.getSplatValue<APInt>().getSExtValue()) : std::nullopt;
  };
  auto isNegative = select->getOperand(0).getDefiningOp<CompareOp>();
  auto raised = select->getOperand(1).getDefiningOp<AddOp>();
  if (!isNegative || !raised || select->getOperand(2) != input || isNegative.getPredicate() != ComparePredicate::lt ||
      isNegative.getLhs() != input || raised.getLhs() != input || number(isNegative.getRhs()) != 0)
    return 0;
  return number(raised.getRhs()).value_or(0);
}

/// `seen` after a use that moves elements; nullopt where the use does something else.
std::optional<Seen> follow(const Seen &seen, OpOperand &use) {
  Operation *user = use.getOwner();
  Seen next = seen;
  if (user->getNumResults() != 1)
    return std::nullopt;
  next.value = user->getResult(0);
  if (auto slice = dyn_cast<SliceOp>(user)) {
    ArrayRef<int64_t> sizes = shapeOf(slice.getResult());
    bool isBox = seen.hasDims && llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; });
    next.box.isWhole &= isBox;
    for (size_t dim = 0; isBox && dim < sizes.size(); ++dim) {
      next.box.begin[dim] += slice.getStarts()[dim];
      next.box.end[dim] = next.box.begin[dim] + sizes[dim];
    }
    return next;
  }
  if (auto cast = dyn_cast<CastOp>(user)) {
    next.box.isWhole &= keepsNumbers(cast);
    return isInteger(cast.getResult()) ? std::optional(next) : std::nullopt;
  }
  if (auto select = dyn_cast<SelectOp>(user); select && use.getOperandNumber() == 2) {
    next.fromEnd = raisesNegative(seen.value, select);
    return next.fromEnd > 0 && seen.fromEnd == 0 ? std::optional(next) : std::nullopt;
  }
  next.hasDims = false; // a slice behind these would show who knows which elements
  if (auto pad = dyn_cast<PadOp>(user)) {
    auto cuts = [](int64_t count) { return count < 0; };
    next.box.isWhole &= !llvm::any_of(pad.getLow(), cuts) && !llvm::any_of(pad.getHigh(), cuts);
    return next;
  }
  if (isa<ReshapeOp, TransposeOp, BroadcastOp, ConcatOp>(user))
    return next;
  return std::nullopt;
}

/// The lookup that a use is; nullopt for any other use.
std::optional<Lookup> lookupOf(const Seen &seen, OpOperand &use) {
  Operation *user = use.getOwner();
  Lookup lookup = seen.box;
  if (use.getOperandNumber() != 1 || tensorType(use.get()).getNumElements() == 0)
    return std::nullopt;
  if (auto embedding = dyn_cast<EmbeddingOp>(user)) {
    lookup.high = int64_t(embedding.getVocabulary());
    lookup.low = -lookup.high;
  } else if (auto gather = dyn_cast<GatherOp>(user)) {
    lookup.high = shapeOf(gather.getData())[gather.getAxis()];
    lookup.low = -lookup.high;
  } else if (auto loss = dyn_cast<CrossEntropyOp>(user)) {
    lookup.high = shapeOf(loss.getLogits()).back();
    lookup.low = -seen.fromEnd;
    if (seen.fromEnd != 0 && seen.fromEnd != lookup.high)
      return std::nullopt;
    if (int64_t ignored = int64_t(loss.getIgnoreIndex()); ignored != CrossEntropyOp::ignoresNone)
      lookup.ignored = ignored;
  } else if (auto gather = dyn_cast<GatherNdOp>(user); gather && shapeOf(gather.getIndices()).back() == 1) {
    lookup.high = shapeOf(gather.getData())[gather.getBatchDims()];
    lookup.low = -lookup.high;
  } else {
    return std::nullopt;
  }
  lookup.reader = modulePath(user->getLoc());
  if (lookup.reader.empty())
    lookup.reader = nodeName(user->getLoc());
  if (lookup.reader.empty())
    lookup.reader = user->getName().stripDialect().str();
  return lookup;
}
} // namespace

std::vector<Lookup> findLookups(BlockArgument input) {
  std::vector<Lookup> lookups;
  if (!isInteger(input))
    return lookups;
  Lookup all;
  all.end.assign(shapeOf(input).begin(), shapeOf(input).end());
  all.begin.assign(all.end.size(), 0);
  SmallVector<Seen> open = {{input, all}};
  // Each box of each value once, however many ways lead to it: two slices of the input may meet in a concat.
  constexpr size_t mostBoxes = 16; // of a value; what is left out is not checked before a run, and reads NaN in it
  llvm::DenseMap<Value, SmallVector<size_t>> known = {{input, {0}}};
  auto isNew = [&](const Seen &view) {
    SmallVector<size_t> &before = known[view.value];
    return before.size() < mostBoxes && llvm::none_of(before, [&](size_t place) {
      return open[place].box == view.box && open[place].hasDims == view.hasDims;
    });
  };
  for (size_t next = 0; next < open.size(); ++next)
    for (OpOperand &use : open[next].value.getUses()) {
      Seen seen = open[next];
      if (std::optional<Lookup> lookup = lookupOf(seen, use)) {
        if (!llvm::is_contained(lookups, *lookup))
          lookups.push_back(*lookup);
      } else if (std::optional<Seen> view = follow(seen, use); view && isNew(*view)) {
        known[view->value].push_back(open.size());
        open.push_back(*view);
      }
    }
  return lookups;
}

} // namespace hpc::nn
