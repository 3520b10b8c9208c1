// Parameters that are no weights: statistics of data, as a batch norm's mean and variance, or how much each class
// counts in a loss, which no gradient changes, and buffers, as rotary frequencies. Where the file does not say so, the
// op that reads them does; the importer marks them.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

constexpr const char *statisticAttrName = "nn.statistic";

inline void markStatistic(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>())
    value = cast.getOperand();
  if (auto parameter = value.getDefiningOp<ParameterOp>())
    parameter->setAttr(statisticAttrName, UnitAttr::get(parameter.getContext()));
}
inline bool isStatistic(ParameterOp parameter) { return parameter->hasAttr(statisticAttrName); }

} // namespace hpc::nn
