// When ranks can reshard by exchanging whole boxes. Private to resharding; `permuteSource` in Sharding.h says who takes
// from whom.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"

namespace hpc::dist {

/// Whether, among ranks that differ only in `axes`, the boxes of `after` are the boxes of `before` in another order,
/// with the same layout: 6@(X, Y) and 6@(Y, X) over 2x3. Both must have the same sub-dim sizes.
bool isPermutation(const Sharding &before, const Sharding &after, const std::vector<std::string> &axes,
                   const Mesh &mesh);

} // namespace hpc::dist
