// An element of nn.dropout in generated code: Philox 4x32-10 in 32-bit integers, the same words as runtime/base/Philox.h on
// every target.
#pragma once

#include "passes/Kernels/ElementEmitter.h"

namespace hpc::kernels {

Value emitDropout(ElementEmitter &emitter, nn::DropoutOp op, const Index &index);

} // namespace hpc::kernels
