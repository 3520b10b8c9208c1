// One reshard as collectives on local boxes.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"

namespace hpc {

/// What every collective of one reshard carries along.
struct CollectiveNote {
  StringAttr cause, avoid;
  Attribute movedId; ///< hpc.id of the value, or null
};

/// Emits the steps of planReshard(from, to) on `local`, the box of `from`; returns the box of `to`.
FailureOr<Value> lowerReshard(OpBuilder &builder, Location loc, Value local, const dist::Sharding &from,
                              const dist::Sharding &to, const dist::Mesh &mesh, const CollectiveNote &note);

} // namespace hpc
