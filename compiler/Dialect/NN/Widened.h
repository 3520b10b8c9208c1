// What is taken in several steps of numbers of 16 bits is taken in f32, and rounded once.
#pragma once

#include "compiler/Dialect/NN/GradientBuilder.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// f16 and bf16 as f32, others as they are.
inline Value widened(GradientBuilder &b, Value value) {
  Type own = tensorType(value).getElementType();
  return own.isF16() || own.isBF16() ? b.cast(value, b.builder.getF32Type()) : value;
}

} // namespace hpc::nn
