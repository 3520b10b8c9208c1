// Gives every attention of a block a region of its own, before the other ops are grouped (FusionGroups).
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// Views around an attention go into its region, and a bias of the scores' size that cheap ops compute from smaller
/// values. With few queries, a concatenation of keys or values without other readers, and casts, are included.
/// `name` gives each region its symbol.
void fuseAttention(Block &block, function_ref<void(nn::FusedOp region, const std::string &base)> name);

} // namespace hpc::kernels
