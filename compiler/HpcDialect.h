// The dialect `hpc`: no ops, but the attributes that belong to no dialect of ops: of the module, and those that tie a program to what it was before.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

constexpr const char *kernelNameAttrName = "hpc.kernel_name"; ///< read and written by passes/Kernels/KernelName.h alone

class HpcDialect : public Dialect {
public:
  explicit HpcDialect(MLIRContext *context);
  static constexpr StringLiteral getDialectNamespace() { return StringLiteral("hpc"); }
  LogicalResult verifyOperationAttribute(Operation *op, NamedAttribute attribute) override;
  LogicalResult verifyRegionArgAttribute(Operation *op, unsigned region, unsigned index, NamedAttribute attribute) override;
  LogicalResult verifyRegionResultAttribute(Operation *op, unsigned region, unsigned index, NamedAttribute attribute) override;
};

} // namespace hpc

MLIR_DECLARE_EXPLICIT_TYPE_ID(hpc::HpcDialect)
