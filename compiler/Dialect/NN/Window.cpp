// Sliding windows as a view of their operand.
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

ShardingRule WindowOp::getShardingRule() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), to = shapeOf(getResult());
  size_t leading = from.size() - getStrides().size();
  ShardingRule rule;
  rule.text = "window";
  rule.linear = {LinearClause::Sum, {0}};
  auto factorOf = [&](int64_t size, bool canCut) {
    ShardingRule::DimFactors dim;
    if (size != 1) {
      dim.push_back(int(rule.factors.size()));
      rule.factors.push_back({size, canCut, std::nullopt, false, false});
    }
    return dim;
  };
  SmallVector<ShardingRule::DimFactors> operand, result;
  for (int64_t size : from.take_front(leading))
    operand.push_back(factorOf(size, /*canCut=*/true));
  result = operand;
  for (int64_t size : from.drop_front(leading))
    operand.push_back(factorOf(size, /*canCut=*/false));
  for (int64_t size : to.drop_front(leading))
    result.push_back(factorOf(size, /*canCut=*/false));
  rule.operands.push_back(std::move(operand));
  rule.results.push_back(std::move(result));
  return rule;
}

LogicalResult WindowOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), to = shapeOf(getResult());
  size_t windowed = getStrides().size();
  if (windowed == 0 || windowed > from.size() || getDilations().size() != windowed)
    return emitOpError("(C1) needs one stride and one dilation for each of 1 to ")
           << from.size() << " dims, got " << windowed << " and " << getDilations().size();
  for (auto [stride, dilation] : llvm::zip_equal(getStrides(), getDilations()))
    if (stride < 1 || dilation < 1)
      return emitOpError("(C1) strides and dilations are 1 or more, got ")
             << getStridesAttr() << " and " << getDilationsAttr();
  size_t leading = from.size() - windowed;
  if (to.size() != leading + 2 * windowed || to.take_front(leading) != from.take_front(leading))
    return emitOpError("(C2) result ") << getResult().getType() << " must have the " << leading
                                       << " leading dims of the operand, then a size and a count for each window";
  for (size_t i = 0; i < windowed; ++i) {
    int64_t size = to[leading + i], count = to[leading + windowed + i], dim = from[leading + i];
    __int128 last = __int128(count - 1) * getStrides()[i] + __int128(size - 1) * getDilations()[i];
    if (size > 0 && count > 0 && last >= dim)
      return emitOpError("(C2) ") << count << " windows of " << size << " in steps of " << getStrides()[i]
                                  << ", dilated by " << getDilations()[i] << ", reach behind dim " << leading + i
                                  << " of size " << dim;
  }
  return success();
}

} // namespace hpc::nn
