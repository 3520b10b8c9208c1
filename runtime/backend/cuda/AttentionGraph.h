// Attention as graphs of operations that cuDNN recognizes and fuses (its documentation: "Fused Flash Attention fprop" and
// "bprop"). One operation more or less, or another order, and it has no engine.
#pragma once

#include "runtime/backend/cuda/CudnnGraph.h"
#include "runtime/plan/Plan.h"

namespace hpc::cuda {

/// Why cuDNN's attention is not asked, or success: element types, shapes, masks and layouts that it has no engine for, or
/// whose results would differ.
Status fitsCudnn(const plan::Attention &attention);

/// result = softmax(..) value of `attention`, forward or backward, with `stats`: of each row the logarithm of the sum of
/// exponentials, f32 [batch, heads, queries, 1]. In memory: query, key, value, result, stats. `result`: strides; row-major
/// where it is no argument of the plan's kernel.
Expected<CudnnPlan> makeForward(const Cudnn &dnn, DnnHandle handle, const plan::Attention &attention, bool withStats,
                                const std::string &device = {});

/// In memory: query, key, value, the gradient of the result, the result and stats as makeForward left them (row-major),
/// the sums of gradient times result (f32, as stats), the query's gradient in f32 (row-major), then in its type, and those
/// of key and value.
Expected<CudnnPlan> makeBackward(const Cudnn &dnn, DnnHandle handle, const plan::Attention &attention,
                                 const std::string &device = {});

} // namespace hpc::cuda
