// A number computed once per row may lie where a device's thread reads its own elements alone, so it is never the value.
#include "passes/Kernels/Regions/OneHotSum.h"

namespace hpc::kernels {

/// The dim of `operand` aligned with `axis` of a result of `rank` dims; below 0 if it has none.
static int64_t alignedDim(Value operand, int64_t axis, int64_t rank) {
  return axis - (rank - nn::tensorType(operand).getRank());
}

static bool isMadeOfBuffers(Value value) {
  SmallVector<Value> open = {value};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op)
      continue;
    std::optional<Access> access = accessOf(op);
    if (access != Access::Elementwise && access != Access::Move && access != Access::Repeat && access != Access::Source)
      return false;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        open.push_back(operand);
  }
  return true;
}

static bool isZero(Value value) {
  auto constant = value.getDefiningOp<nn::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return splat && splat.getSplatValue<Attribute>() == Builder(value.getContext()).getZeroAttr(splat.getElementType());
}

std::optional<OneHotSum> findOneHotSum(nn::ReduceOp op) {
  auto choice = op.getOperand().getDefiningOp<nn::SelectOp>();
  if (op.getKind() != ReduceKind::Sum || op.getAxes().size() != 1 || !choice || !isZero(choice.getOnFalse()) ||
      !isMadeOfBuffers(choice.getOnTrue()))
    return std::nullopt;
  auto compare = choice.getCondition().getDefiningOp<nn::CompareOp>();
  if (!compare || compare.getPredicate() != nn::ComparePredicate::eq)
    return std::nullopt;
  const int64_t axis = op.getAxes()[0], rank = nn::tensorType(op.getOperand()).getRank();
  for (auto [first, number] : {std::pair(compare.getLhs(), compare.getRhs()), std::pair(compare.getRhs(), compare.getLhs())}) {
    auto positions = first.getDefiningOp<nn::IotaOp>();
    int64_t along = alignedDim(number, axis, rank);
    if (positions && positions.getStep() == 1 && nn::tensorType(first).getElementType().isInteger(64) &&
        int64_t(positions.getDim()) == alignedDim(first, axis, rank) &&
        nn::shapeOf(first)[positions.getDim()] == nn::shapeOf(op.getOperand())[axis] &&
        (along < 0 || nn::shapeOf(number)[along] == 1))
      return OneHotSum{positions, number, choice.getOnTrue(), axis};
  }
  return std::nullopt;
}

} // namespace hpc::kernels
