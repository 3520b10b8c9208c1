// One reshard as collectives on local boxes.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"

namespace hpc {

/// The attributes that all collectives of one reshard share.
struct CollectiveNote {
  StringAttr cause, avoid;
  std::optional<int64_t> movedId; ///< of the value (ValueIds)
};

/// Emits the steps of planReshard(from, to) on `local`, the box of `from`; returns the box of `to`.
FailureOr<Value> lowerReshard(OpBuilder &builder, Location loc, Value local, const dist::Sharding &from,
                              const dist::Sharding &to, const dist::Mesh &mesh, const CollectiveNote &note);

} // namespace hpc
