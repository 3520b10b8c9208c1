// What a library may compute a kernel as, as attributes of its nn.fused and in plans: from hpc-emit-kernels, which knows, to lower, whose plan names it for
// backends with such a library.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "runtime/plan/Plan.h"

namespace hpc {

nn::AttentionAttr toAttribute(MLIRContext *context, const plan::Attention &attention);
plan::Attention toPlan(nn::AttentionAttr attention);

nn::EpilogueAttr toAttribute(MLIRContext *context, const plan::Epilogue &epilogue);
plan::Epilogue toPlan(nn::EpilogueAttr epilogue);

} // namespace hpc
