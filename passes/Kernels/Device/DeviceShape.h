// How a device shares out a region: which threads compute an item together, and the launch that follows.
// The shape alone decides, never the data or the card, so that results repeat.
#pragma once

#include "passes/Kernels/Elements/ColumnRegion.h"
#include "passes/Kernels/Elements/RegionShape.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::kernels {

struct DeviceShape {
  enum class Kind {
    Elements, ///< an item is `width` neighbours of the root shape, computed by one thread
    Rows,     ///< an item is a row of the root shape, or a block of them whose sums are results, computed by a warp or a block
    Columns,  ///< an item is a block of columns, computed by a block
    Attention, ///< an item is a tile of queries, or of a gradient a group of heads, computed by a block
  };
  Kind kind = Kind::Elements;
  int64_t items = 0;
  int64_t team = 1;  ///< threads that compute an item together: one, a warp, or a whole block
  int64_t teams = 1; ///< of a block; 1 where a team has more than a warp
  int64_t width = 1; ///< Elements only; divides the columns
  std::optional<RegionShape> rows;     ///< Elements and Rows
  std::optional<ColumnRegion> columns; ///< Columns
  std::optional<AttentionRegion> attention; ///< Attention

  static constexpr int64_t warp = 32;
  static constexpr int64_t maxThreads = 1024;  ///< of a block
  static constexpr int64_t maxBlocks = 1 << 30; ///< a block continues with later items
  static constexpr int64_t columnsOfBlock = warp; ///< adjacent, so that a warp reads 128 bytes of an f32 row

  int64_t threads() const { return team * teams; }
  int64_t blocks() const { return std::min((items + teams - 1) / teams, maxBlocks); }
  /// Columns only: how many threads run down one column, each over every laneCount-th row.
  int64_t lanesOfColumn() const { return team / columnsOfBlock; }
  /// Columns only: elements of one result's sum.
  int64_t reducedRows() const;
};

/// nullopt if the region has no common loop nest.
std::optional<DeviceShape> findDeviceShape(nn::FusedOp region);

} // namespace hpc::kernels
