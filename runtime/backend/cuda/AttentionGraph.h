// Attention as graphs of operations that cuDNN recognizes and fuses (its documentation: "Fused Flash Attention fprop" and
// "bprop"). One operation more or less, or another order, and it has no engine.
#pragma once

#include "runtime/backend/cuda/CudnnGraph.h"
#include "runtime/plan/Plan.h"

namespace hpc::cuda {

/// Success if cuDNN may compute the attention, or the reason why not: element types, shapes, masks and layouts without
/// an engine, or with other results.
Status fitsCudnn(const plan::Attention &attention);

/// A gradient in f32 of operands of 16 bits: cuDNN's engines write 16 bits there, which are widened behind them.
bool isWidened(const plan::Attention &attention);

/// result = softmax(..) value of `attention`, forward or backward, with `stats`: for each row the logarithm of the sum
/// of exponentials, f32 [batch, heads, queries, 1]. In memory: query, key, value, result, stats. `result`: strides;
/// row-major if it is no argument of the plan's kernel.
Expected<CudnnPlan> makeForward(const Cudnn &dnn, DnnHandle handle, const plan::Attention &attention, bool withStats,
                                const std::string &device = {});

/// In memory: query, key, value, the gradient of the result, the result and stats as makeForward left them (row-major),
/// the sums of gradient times result (f32, as stats), the query's gradient in f32 (row-major), then in its type, and those
/// of key and value. What is widened has the operands' type here, row-major.
Expected<CudnnPlan> makeBackward(const Cudnn &dnn, DnnHandle handle, const plan::Attention &attention,
                                 const std::string &device = {});

} // namespace hpc::cuda
