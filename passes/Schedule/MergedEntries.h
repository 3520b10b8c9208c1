// One plan of several plans of a model, each of which becomes an entry of it.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

struct EntryPlan {
  std::string name;
  plan::Plan plan; ///< placed, and without entries; kernels of different plans have different names (hpc.kernel_prefix)
};

struct MergedPlan {
  plan::Plan plan;
  std::vector<std::vector<std::vector<int32_t>>> buffers; ///< by entry, stage and buffer of the entry's own plan: its number
};

/// Entries are in the order of the plans, and their programs too (plan::planOf).
/// - Weights: buffers that hold the same slice of the same stored tensor in the same form are one. It is packed where all entries
///   that read it take it packed, in the same form; else nowhere.
/// - States: buffers that are saved under one name are one, which all entries hold in the same way.
/// - Ports that are equal in all are one; entries may have ports of one name and different shapes.
/// - What lives for a step at most: that of one entry lies over that of another, as only one of them runs.
/// - Code: modules stand side by side.
/// Errors: Internal, where the plans are not for the same mesh, or hold a state or a weight of one name in two ways.
Expected<MergedPlan> mergeEntries(const std::vector<EntryPlan> &plans);

} // namespace hpc
