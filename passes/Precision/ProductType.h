// What `--dtype` means: the type to which operands of products are rounded.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Status.h"

namespace hpc {

/// bf16, f16, or null for "model". Errors: any other word.
Expected<Type> productType(StringRef dtype, MLIRContext *context);

/// The operands of `op` that it only multiplies and that are f32.
SmallVector<unsigned> wideFactors(Operation *op);

} // namespace hpc
