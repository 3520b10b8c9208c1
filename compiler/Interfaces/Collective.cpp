// Definitions generated for the interface of collectives.
#include "compiler/Interfaces/Collective.h"

#include "compiler/Interfaces/Collective.cpp.inc"

namespace hpc {

bool crossesRanks(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective)
    return false;
  dist::ReshardStep::Kind kind = collective.getCollectiveKind();
  return kind != dist::ReshardStep::Slice && kind != dist::ReshardStep::Accumulate;
}

} // namespace hpc
