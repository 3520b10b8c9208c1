// From an operand of a product back to its gather, and from the gather to the products that read it.
#include "compiler/Panels.h"

namespace hpc {

std::optional<unsigned> dimOfOperand(nn::MatmulOp product, unsigned operand, ProductDim dim) {
  const bool isLhs = operand == 0, transposes = isLhs ? product.getTransposeLhs() : product.getTransposeRhs();
  if (dim == (isLhs ? ProductDim::Columns : ProductDim::Rows))
    return std::nullopt;
  const unsigned rank = unsigned(nn::shapeOf(product->getOperand(operand)).size());
  const bool isLast = (dim == ProductDim::Sum) == (isLhs != transposes);
  return isLast ? rank - 1 : rank - 2;
}

bool isCutInBlocks(const dist::DimSharding &dim) {
  return !dim.empty() && dim[0].axes.size() == 1 &&
         llvm::all_of(ArrayRef(dim).drop_front(), [](const dist::SubDim &sub) { return sub.axes.empty(); });
}

static int64_t elementsBefore(ArrayRef<int64_t> shape, size_t dim) { return ShapedType::getNumElements(shape.take_front(dim)); }

/// The dim of a reshape's operand that a dim of its result is.
static std::optional<unsigned> dimBefore(nn::ReshapeOp op, unsigned dim) {
  ArrayRef<int64_t> from = nn::shapeOf(op.getOperand()), to = nn::shapeOf(op.getResult());
  for (unsigned d = 0; d < from.size(); ++d)
    if (from[d] == to[dim] && elementsBefore(from, d) == elementsBefore(to, dim))
      return d;
  return std::nullopt;
}

std::optional<GatheredValue> gatheredAlong(Value value, unsigned dim) {
  GatheredValue found;
  for (Operation *op = value.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    if (auto gather = dyn_cast<dist::AllGatherOp>(op)) {
      found.gather = gather;
      const bool isAlong = gather.getFromDim() == dim && gather.getFromSub() == 0;
      if (!isAlong || !isCutInBlocks(found.cut()))
        return std::nullopt;
      std::reverse(found.views.begin(), found.views.end());
      return found;
    }
    if (auto fill = dyn_cast<dist::FillTailOp>(op)) {
      if (!fill.getOperand().getDefiningOp<dist::AllGatherOp>() || llvm::is_contained(fill.getDims(), int64_t(dim)))
        return std::nullopt;
      found.fill = fill;
      continue;
    }
    found.views.push_back({op, dim});
    if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
      std::optional<unsigned> before = dimBefore(reshape, dim);
      if (!before)
        return std::nullopt;
      dim = *before;
    } else if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
      dim = unsigned(transpose.getPermutation()[dim]);
    } else if (!isa<nn::CastOp>(op)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// Whether the value, or a sum that it is a term of, is reduce-scattered.
static bool isScattered(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (isa<dist::ReduceScatterOp>(user))
      return true;
    if (!isa<nn::AddOp, nn::CastOp>(user))
      break;
    value = user->getResult(0);
  }
  return false;
}

bool isForPanels(dist::AllGatherOp gather) {
  SmallVector<Value> open{gather.getResult()};
  for (size_t next = 0; next < open.size(); ++next)
    for (OpOperand &use : open[next].getUses()) {
      Operation *user = use.getOwner();
      if (auto product = dyn_cast<nn::MatmulOp>(user)) {
        for (ProductDim dim : {ProductDim::Rows, ProductDim::Columns, ProductDim::Sum})
          if (std::optional<unsigned> at = dimOfOperand(product, use.getOperandNumber(), dim);
              at && (dim == ProductDim::Sum || isScattered(product.getResult())))
            if (std::optional<GatheredValue> found = gatheredAlong(use.get(), *at); found && found->gather == gather)
              return true;
      } else if (isa<nn::ReshapeOp, nn::TransposeOp, dist::FillTailOp, nn::CastOp>(user)) {
        open.push_back(user->getResult(0));
      }
    }
  return false;
}

} // namespace hpc
