// The memory operations of a collective, once all members of a group have posted: no waiting in here. Members may do
// their shares in any order, one after the other or at once: a share writes only memory that no other share reads or
// writes, which is why an all-reduce may have its result in place.
#pragma once

#include "runtime/backend/host/Reduce.h"

#include <vector>

namespace hpc::host {

/// The memory with which one member of a group takes part in a collective.
struct Share {
  const std::byte *source = nullptr;
  std::byte *target = nullptr;
  int64_t sourcePosition = 0; ///< permute: the member that it takes from
};

/// Bytes of a member's source and target.
int64_t sourceBytes(const plan::Collective &collective, int64_t members);
int64_t targetBytes(const plan::Collective &collective, int64_t members);

/// Whether the target lies over a source that other members still read: then the source must be a copy.
bool needsCopy(const plan::Collective &collective, const Share &share, int64_t members);

bool reduces(plan::CollectiveKind kind);

/// The executor's tables are checked, but a permute over nothing would read through a wild pointer.
Status checkPosition(const plan::Collective &collective, int64_t position, int64_t members);

/// The share of member `me`. `reduction` is looked at for reductions only.
void exchange(const plan::Collective &collective, const Reduction &reduction, const std::vector<Share> &shares,
              int64_t me);

} // namespace hpc::host
