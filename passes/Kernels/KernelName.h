// The composite that an op comes from, noted on the op from hpc-decompose-composites to hpc-fuse-regions, which names
// the region after it. Read and written here alone.
#pragma once

#include "compiler/HpcDialect.h"

namespace hpc::kernels {

inline void setKernelName(Operation *op, StringAttr composite) { op->setAttr(kernelNameAttrName, composite); }
/// Null where it comes from no composite.
inline StringAttr kernelNameOf(Operation *op) { return op->getAttrOfType<StringAttr>(kernelNameAttrName); }
inline void removeKernelName(Operation *op) { op->removeAttr(kernelNameAttrName); }

} // namespace hpc::kernels
