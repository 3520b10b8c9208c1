// The only place that counts them; durations are runtime/cost/Durations.cpp's.
#include "passes/Lower/KernelWork.h"

#include "compiler/Dialect/NN/AttentionParts.h"
#include "compiler/Interfaces/Cost.h"
#include "compiler/Interfaces/Structure.h"

#include <algorithm>

namespace hpc {

constexpr int64_t expensive = 24;           ///< a vector function
constexpr int64_t alongRows = 8;            ///< for a flop of what adds up along rows, several times and in part one after the other
constexpr int64_t scoresBeyondTheMask = 48; ///< of a query, since blocks of 32 queries take keys in blocks of 64

/// Of an attention, from those of one score.
template <typename Attention> static int64_t attentionOperations(Attention op, int64_t ofScore) {
  ArrayRef<int64_t> query = nn::shapeOf(op.getQuery()), value = nn::shapeOf(op.getValue());
  const int64_t rows = query[0] * query[1] * query[2];
  const int64_t scores = std::min(rows * value[2], nn::countScores(query, value, nn::maskOf(op)) + rows * scoresBeyondTheMask);
  return scores * ofScore;
}

int64_t elementOperations(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost)
    return 0;
  if (auto attention = dyn_cast<nn::AttentionOp>(op))
    return attentionOperations(attention, (nn::shapeOf(attention.getQuery())[3] + nn::shapeOf(attention.getValue())[3]) * 5 / 3 + 100);
  if (auto gradient = dyn_cast<nn::AttentionGradOp>(op))
    return attentionOperations(gradient, (3 * nn::shapeOf(gradient.getQuery())[3] + 2 * nn::shapeOf(gradient.getValue())[3]) * 5 / 2 + 240);
  int64_t elements = 0;
  for (Type type : op->getResultTypes())
    if (auto shaped = dyn_cast<RankedTensorType>(type))
      elements += shaped.getNumElements();
  const Effort effort = effortOf(op).value_or(Effort::None);
  if (effort == Effort::None)
    return 0;
  if (effort != Effort::Product && cost.getFlops() > elements)
    return alongRows * cost.getFlops();
  return effort == Effort::Expensive ? expensive * elements : cost.getFlops();
}

} // namespace hpc
