// `dist.whole_output = array<i64: 2>` on an op: whoever reads its first result reads all of these dims, and no partial sum.
// The op itself is cut as it likes, so the collective stands behind it. From annotate to hpc-insert-reshards, which names
// `dist.whole_output_for` as the reason.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::dist {

constexpr const char *wholeOutputAttrName = "dist.whole_output";
constexpr const char *wholeOutputForAttrName = "dist.whole_output_for";

inline ArrayRef<int64_t> wholeOutputDims(Operation *op) {
  auto dims = op ? op->getAttrOfType<DenseI64ArrayAttr>(wholeOutputAttrName) : DenseI64ArrayAttr();
  return dims ? dims.asArrayRef() : ArrayRef<int64_t>();
}

/// Whose wish that is: the subject of a rule (compiler/Subject.h).
inline StringRef wholeOutputSubject(Operation *op) {
  auto subject = op->getAttrOfType<StringAttr>(wholeOutputForAttrName);
  return subject ? subject.getValue() : StringRef();
}

/// Adds a dim; the first subject stays.
inline void addWholeOutputDim(Operation *op, int64_t dim, StringRef subject) {
  SmallVector<int64_t> dims(wholeOutputDims(op));
  if (!llvm::is_contained(dims, dim))
    dims.push_back(dim);
  llvm::sort(dims);
  op->setAttr(wholeOutputAttrName, DenseI64ArrayAttr::get(op->getContext(), dims));
  if (!op->hasAttr(wholeOutputForAttrName))
    op->setAttr(wholeOutputForAttrName, StringAttr::get(op->getContext(), subject));
}

inline void removeWholeOutput(Operation *op) {
  op->removeAttr(wholeOutputAttrName);
  op->removeAttr(wholeOutputForAttrName);
}

} // namespace hpc::dist
