// Gives every attention of a block a region of its own, before what is left is grouped (FusionGroups).
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// Views round an attention go into its region, and so does a bias of the scores' size that cheap ops make of less.
/// `name` gives each region its symbol.
void fuseAttention(Block &block, function_ref<void(nn::FusedOp region, const std::string &base)> name);

} // namespace hpc::kernels
