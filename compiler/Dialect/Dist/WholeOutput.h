// `dist.whole_output = array<i64: 2>` on an op: whoever reads its first result reads all of these dims. From annotate to
// propagate; the op itself stays cut as it is, so the gather stands behind it.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::dist {

constexpr const char *wholeOutputAttrName = "dist.whole_output";

inline ArrayRef<int64_t> wholeOutputDims(Operation *op) {
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>(wholeOutputAttrName);
  return dims ? dims.asArrayRef() : ArrayRef<int64_t>();
}

inline void addWholeOutputDim(Operation *op, int64_t dim) {
  SmallVector<int64_t> dims(wholeOutputDims(op));
  if (!llvm::is_contained(dims, dim))
    dims.push_back(dim);
  llvm::sort(dims);
  op->setAttr(wholeOutputAttrName, DenseI64ArrayAttr::get(op->getContext(), dims));
}

} // namespace hpc::dist
