// Two shardings of one dim over one list of sub-dims, so that moving an axis means moving it between two lists of axes.
// Private to resharding.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"

namespace hpc::dist {

/// Rewrites both over the same sub-dim sizes without changing what they hold: 40@tp and (4, 10@dp) become (4@tp, 10)
/// and (4, 10@dp). False when there is no such list: 120@tp and (3, 5@tp, 8). Axes that cut single elements (see
/// ShardingCuts.h) get a leading sub-dim of size 1, in both.
bool refine(DimSharding &current, DimSharding &goal, const Mesh &mesh);

} // namespace hpc::dist
