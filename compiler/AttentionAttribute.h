// That a kernel is an attention, as an attribute of its nn.fused: from hpc-emit-kernels, which knows, to lower, whose plan
// says so to backends with a library that has it.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/plan/Plan.h"

namespace hpc {

constexpr const char *attentionAttrName = "hpc.attention"; ///< on nn.fused

/// {kind = "forward", sizes = array<i64: batch, heads, groups, queries, keys, depth, width>, query = array<i64: argument,
/// dtype, offset, four strides>, key, value, bias?, gradient?, results = [...], scale, causal_offset?, guarded?}. Arguments
/// are numbered as the kernel's: operands, then results.
DictionaryAttr toAttribute(MLIRContext *context, const plan::Attention &attention);
/// The inverse; nothing where the op has no such attribute or one of another form.
std::optional<plan::Attention> attentionOf(Operation *op);

} // namespace hpc
