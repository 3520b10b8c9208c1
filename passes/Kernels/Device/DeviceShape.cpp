// The sizes here are for cards of compute capability 8.0 on; docs/measured.md has their times on an H100.
#include "passes/Kernels/Device/DeviceShape.h"

#include "compiler/ElementType.h"
#include "passes/Kernels/Device/DeviceAttention.h"

namespace hpc::kernels {

namespace {
constexpr int64_t threadsOfElements = 256;
constexpr int64_t warpsOfRows = 4;       ///< of a block whose warps compute a row each
constexpr int64_t elementsOfThread = 8;  ///< of a row: so many stay in registers
constexpr int64_t rowsOfLane = 4;        ///< of a column: fewer do not justify another thread
constexpr int64_t bytesOfAccess = 16;

/// Neighbours that one 16-byte access of the smallest results holds, where rows can be cut into them.
int64_t widthOf(nn::FusedOp region, int64_t columns) {
  int64_t smallest = 8;
  for (Type type : region.getResultTypes())
    smallest = std::min<int64_t>(smallest, std::max<int64_t>(byteSize(dtypeOf(type)), 2));
  int64_t width = bytesOfAccess / smallest;
  return columns > 0 && columns % width == 0 ? width : 1;
}

DeviceShape byColumns(const ColumnRegion &columns) {
  DeviceShape shape;
  shape.kind = DeviceShape::Kind::Columns;
  shape.columns = columns;
  shape.items = (columns.columns() + DeviceShape::columnsOfBlock - 1) / DeviceShape::columnsOfBlock;
  for (int64_t size : columns.kept())
    shape.items *= size;
  shape.team = DeviceShape::columnsOfBlock;
  while (shape.team < DeviceShape::maxThreads && shape.reducedRows() >= 2 * shape.lanesOfColumn() * rowsOfLane)
    shape.team *= 2;
  return shape;
}

DeviceShape byRows(const RegionShape &rows, int64_t longest) {
  DeviceShape shape;
  shape.kind = DeviceShape::Kind::Rows;
  shape.rows = rows;
  shape.items = rows.items();
  shape.team = DeviceShape::warp;
  while (shape.team < DeviceShape::maxThreads && longest > shape.team * elementsOfThread)
    shape.team *= 2;
  shape.teams = shape.team == DeviceShape::warp ? warpsOfRows : 1;
  return shape;
}
} // namespace

int64_t DeviceShape::reducedRows() const {
  int64_t rows = 1;
  for (int64_t axis : columns->axes)
    rows *= columns->operand[size_t(axis)];
  return rows;
}

std::optional<DeviceShape> findDeviceShape(nn::FusedOp region) {
  if (std::optional<AttentionRegion> attention = findAttentionRegion(region)) {
    DeviceShape shape;
    shape.kind = DeviceShape::Kind::Attention;
    shape.items = attentionItems(*attention);
    shape.team = DeviceTiles::threads;
    shape.attention = std::move(attention);
    return shape;
  }
  if (std::optional<ColumnRegion> columns = findColumnRegion(region))
    return byColumns(*columns);
  std::optional<RegionShape> rows = findRegionShape(region);
  if (!rows)
    return std::nullopt;
  // Reductions of a row: along itself, or, of rows of one element, over any dims.
  int64_t longest = rows->rowOps.empty() ? 0 : rows->columns();
  bool hasRowResults = false;
  if (rows->columns() == 1)
    for (Operation &op : region.getBody().front())
      if (auto reduce = dyn_cast<nn::ReduceOp>(op))
        longest = std::max(longest, nn::tensorType(reduce.getOperand()).getNumElements() /
                                        std::max<int64_t>(nn::tensorType(reduce.getResult()).getNumElements(), 1));
  for (Type type : region.getResultTypes())
    hasRowResults |= rows->columns() != 1 && rows->isRowShape(cast<RankedTensorType>(type).getShape());
  if (!rows->rowOps.empty() || longest > 1 || hasRowResults || !rows->columnSums.empty())
    return byRows(*rows, std::max(longest, rows->columns()));
  DeviceShape shape;
  shape.rows = rows;
  shape.width = widthOf(region, rows->columns());
  shape.items = rows->rows() * (rows->columns() / shape.width);
  shape.teams = threadsOfElements;
  return shape;
}

} // namespace hpc::kernels
