// What two operands of an elementwise op have in common in every plan, though both hold rounding errors: element by
// element, from the samples of a running error analysis.
#include "compiler/Interpreter/Evaluators.h"
#include "compiler/Interpreter/RunningError.h"

#include <cmath>

namespace hpc {

using namespace interpreter;

/// Where both operands of a comparison are equal, and still are after errors of their own in every sample, one is the
/// other (a maximum and the element that it is): a plan computes them once. Empty: nowhere. Samples are compared as their
/// type holds them, since pushes leave it and ops return to it.
std::vector<bool> RunningError::elementsThatAreOneValue(Operation *op, ArrayRef<Twin> operands, const Tensor &result) {
  auto isRounded = [](const Twin &operand) { return operand.bound > 0 && operand.exact->isFloat(); };
  if (accessOf(op) != Access::Elementwise || result.isFloat() || operands.size() != 2 ||
      !llvm::all_of(operands, isRounded))
    return {};
  std::vector<bool> isOneValue(result.size());
  forEachElement<2>(result.shape,
                    {broadcastStrides(operands[0].exact->shape, result.shape),
                     broadcastStrides(operands[1].exact->shape, result.shape)},
                    {0, 0}, [&](int64_t i, const std::array<int64_t, 2> &at) {
                      auto areEqual = [&](const std::shared_ptr<const Tensor> &a, const std::shared_ptr<const Tensor> &b) {
                        return roundTo(a->dtype, a->floats[at[0]]) == roundTo(b->dtype, b->floats[at[1]]);
                      };
                      isOneValue[i] = operands[0].exact->floats[at[0]] == operands[1].exact->floats[at[1]];
                      for (int number = 0; number < sampleCount; ++number)
                        isOneValue[i] = isOneValue[i] && areEqual(operands[0].samples[number], operands[1].samples[number]);
                    });
  return isOneValue;
}

static bool isLinearSum(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return ruled && ruled.getShardingRule().linear.kind == LinearClause::Sum;
}

/// Where a sum of two reads large numbers that are the same in both samples, exact or not: nothing that a plan is free to do
/// moves those. Scores beside a mask of -1e9 are so, which absorbs their errors: all plans round the sum to the same number,
/// and a difference of two such is exact. Empty: nowhere.
std::vector<bool> RunningError::elementsRoundedAlike(Operation *op, ArrayRef<Twin> operands, const Tensor &result) {
  if (accessOf(op) != Access::Elementwise || !isLinearSum(op) || operands.size() != 2 || !result.isFloat())
    return {};
  constexpr double large = 0.25; // what rounding costs; smaller numbers may be alike by chance
  std::vector<bool> areAlike(result.floats.size());
  forEachElement<2>(result.shape,
                    {broadcastStrides(operands[0].exact->shape, result.shape),
                     broadcastStrides(operands[1].exact->shape, result.shape)},
                    {0, 0}, [&](int64_t i, const std::array<int64_t, 2> &at) {
                      double size = 0;
                      bool isAlike = true;
                      for (size_t k = 0; k < 2; ++k) {
                        double first = operands[k].samples[0]->floats[size_t(at[k])];
                        size = std::max(size, std::abs(first));
                        isAlike &= first == operands[k].samples[1]->floats[size_t(at[k])];
                      }
                      areAlike[size_t(i)] = isAlike && size * epsilonOf(result.dtype) >= large;
                    });
  return areAlike;
}

} // namespace hpc
