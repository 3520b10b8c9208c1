// Gives every attention of a block a region of its own, before what is left is grouped (FusionGroups).
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// Views round an attention go into its region, and so does a bias of the scores' size that cheap ops make of less. Where
/// few queries read keys or values that nobody else needs as they are, a concatenation of them and casts do too.
/// `name` gives each region its symbol.
void fuseAttention(Block &block, function_ref<void(nn::FusedOp region, const std::string &base)> name);

} // namespace hpc::kernels
