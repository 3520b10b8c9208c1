// A dim's sharding as a chain of cuts: the form in which equal sharding means equal numbers, whatever the list of
// sub-dims. Normal form and views are both "read the cuts, write them again"; private to compiler/Dialect/Dist.
//
// Example: (3, 5@tp, 8) with tp=2 is one cut {tp, k=2, period=40, block=24}: every 40 consecutive indices are dealt out
// in blocks of 24. A list of cuts is determined by what the coordinates hold: coordinate 1 of an axis (0 on all others)
// begins at `block`, blocks shrink strictly from major to minor, and a period is either the block before (the cut
// nests) or divides it.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"

namespace hpc::dist {

/// One axis that cuts. All lengths count global indices.
struct Cut {
  std::string axis;
  int64_t k;      ///< size of the axis, at least 2
  int64_t period; ///< the indices are cut in runs of this length, all alike
  int64_t block;  ///< 0 < block < period: the part of each period that coordinate 0 holds
};

struct CutDim {
  int64_t size = 1; ///< not 0: a dim of no elements has no cuts
  std::vector<Cut> cuts;
  /// Axes that cut a block of one element: coordinate 0 holds all, the others nothing. It does not matter where they
  /// stand, so they are kept apart, in the order of the mesh.
  std::vector<std::string> pinned;
};

CutDim readCuts(const DimSharding &dim, const Mesh &mesh);

/// Writes `cuts` as sub-dims of the digits of weight `unit` and more of an index below `size`, in normal form: the
/// sub-dims multiply to size/unit. False when no list of sub-dims holds the same elements.
bool writeCuts(const std::vector<Cut> &cuts, int64_t size, int64_t unit, DimSharding &dim);

/// The sub-dim to which pinned axes are appended without changing anything else: cut, and of block 1. -1 if there is
/// none.
int placeForPinned(const DimSharding &dim, const Mesh &mesh);

} // namespace hpc::dist
