// The log-probability of one class of each row as exporters spell it out: log_softmax, and a gather.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

struct CrossEntropyMatch {
  Value logits; ///< [..., classes]
  Value labels; ///< integers [..., 1 ..., 1], one for each row; a negative one counts from the last class
  bool mayBeNegative = true;
};

/// Matches a gather from log(softmax(logits)) over the last dim that nothing but gathers reads.
std::optional<CrossEntropyMatch> matchCrossEntropy(nn::GatherNdOp gather);

} // namespace hpc
