// The composite that an op comes from, noted on the op from hpc-decompose-composites to hpc-fuse-regions, which names
// the region after it. Read and written here alone.
#pragma once

#include "compiler/HpcDialect.h"

namespace hpc::kernels {

/// Of the module, a text: with what the names of its kernels begin. Plans that become entries of one have different ones.
constexpr const char *kernelPrefixAttrName = "hpc.kernel_prefix";

inline void setKernelName(Operation *op, StringAttr composite) { op->setAttr(kernelNameAttrName, composite); }
/// Null where it comes from no composite.
inline StringAttr kernelNameOf(Operation *op) { return op->getAttrOfType<StringAttr>(kernelNameAttrName); }
inline void removeKernelName(Operation *op) { op->removeAttr(kernelNameAttrName); }

} // namespace hpc::kernels
