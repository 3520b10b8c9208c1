// Which block of the model an op of the graph belongs to (a layer, where the graph repeats one): found by phase stage,
// read by phase recompute, which takes the marks away.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

constexpr const char *blockAttrName = "hpc.block"; ///< i64, counted through the whole model

inline std::optional<int64_t> blockMark(Operation *op) {
  auto mark = op->getAttrOfType<IntegerAttr>(blockAttrName);
  return mark ? std::optional(mark.getInt()) : std::nullopt;
}
inline void setBlockMark(Operation *op, int64_t block) {
  op->setAttr(blockAttrName, Builder(op->getContext()).getI64IntegerAttr(block));
}
inline void removeBlockMark(Operation *op) { op->removeAttr(blockAttrName); }

} // namespace hpc
