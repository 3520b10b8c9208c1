// That a kernel is a product's epilogue, as an attribute of its nn.fused: from hpc-emit-kernels, which knows, to lower,
// whose plan says so to backends with a library that has it.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/plan/Plan.h"

namespace hpc {

constexpr const char *epilogueAttrName = "hpc.epilogue"; ///< on nn.fused

/// {kind = "bias" or "bias_relu" or "bias_gelu_tanh", product = argument, bias = argument}. Arguments are numbered as
/// the kernel's: operands, then the result.
DictionaryAttr toAttribute(MLIRContext *context, const plan::Epilogue &epilogue);
/// The inverse; nothing where the op has no such attribute or one of another form.
std::optional<plan::Epilogue> epilogueOf(Operation *op);

} // namespace hpc
