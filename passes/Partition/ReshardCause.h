// The reason for a reshard, and how to avoid it.
// --explain prints "because CAUSE; avoided by AVOID" for every collective, so both begin in the middle of a sentence.
#pragma once

#include "compiler/Dialect/Dist/FactorShardings.h"

namespace hpc {

struct ReshardCause {
  std::string cause, avoid;
};

/// `user` needs `value`, which has the sharding `from`, as `to`. Null `user`: the value is returned.
ReshardCause causeOf(Value value, Operation *user, const dist::Sharding &from, const dist::Sharding &to);
/// A reduction other than a sum, over a cut factor, is completed right after the op.
ReshardCause causeOfReduction(Operation *op, const dist::AxisNames &axes);

} // namespace hpc
