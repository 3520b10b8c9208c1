// The only place that counts them; durations are runtime/cost/Durations.cpp's.
#include "passes/Lower/KernelWork.h"

#include "compiler/Dialect/NN/AttentionParts.h"
#include "compiler/Interfaces/Cost.h"
#include "compiler/Interfaces/Structure.h"

#include <algorithm>

namespace hpc {

constexpr int64_t expensive = 24;           ///< a vector function
constexpr int64_t alongRows = 8;            ///< for a flop of what adds up along rows, several times and in part one after the other
constexpr int64_t queriesOfBlock = 32;      ///< of an attention, which takes keys up to the last one that the block sees
constexpr int64_t lanes = 16;               ///< of a vector, which the end of a row does not fill

/// `ofQuery`: what each query takes beside its scores.
template <typename Attention> static int64_t attentionOperations(Attention op, int64_t ofScore, int64_t ofQuery) {
  ArrayRef<int64_t> query = nn::shapeOf(op.getQuery()), value = nn::shapeOf(op.getValue());
  const int64_t groups = query[0] * query[1], queries = std::max<int64_t>(1, query[2]), inBlocks = llvm::alignTo(queries, queriesOfBlock);
  const int64_t visible = int64_t(double(nn::countScores(query, value, nn::maskOf(op))) * double(inBlocks) / double(queries));
  const int64_t scores = std::min(groups * inBlocks * value[2], visible + groups * inBlocks * queriesOfBlock / 2);
  return scores * ofScore + groups * query[2] * ofQuery;
}

/// As many as vectors have lanes for.
static int64_t elementsInVectors(Type type) {
  auto shaped = dyn_cast<RankedTensorType>(type);
  if (!shaped || shaped.getRank() == 0 || shaped.getDimSize(shaped.getRank() - 1) <= lanes)
    return shaped ? shaped.getNumElements() : 0;
  const int64_t row = shaped.getDimSize(shaped.getRank() - 1);
  return shaped.getNumElements() / row * int64_t(llvm::alignTo(row, lanes));
}

int64_t elementOperations(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost)
    return 0;
  if (auto attention = dyn_cast<nn::AttentionOp>(op))
    return attentionOperations(attention, (nn::shapeOf(attention.getQuery())[3] + nn::shapeOf(attention.getValue())[3]) * 5 / 3 + 13, 7600);
  if (auto gradient = dyn_cast<nn::AttentionGradOp>(op))
    return attentionOperations(gradient, (3 * nn::shapeOf(gradient.getQuery())[3] + 2 * nn::shapeOf(gradient.getValue())[3]) * 10 / 3 + 26, 14700);
  int64_t elements = 0, inVectors = 0;
  for (Type type : op->getResultTypes()) {
    if (auto shaped = dyn_cast<RankedTensorType>(type))
      elements += shaped.getNumElements();
    inVectors += elementsInVectors(type);
  }
  const Effort effort = effortOf(op).value_or(Effort::None);
  if (effort == Effort::None)
    return 0;
  if (effort != Effort::Product && cost.getFlops() > elements)
    return alongRows * cost.getFlops();
  return effort == Effort::Expensive ? expensive * inVectors : effort == Effort::Cheap ? inVectors : cost.getFlops();
}

} // namespace hpc
