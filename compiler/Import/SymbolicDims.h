// The open sizes of a model's inputs, and their binding by --dim NAME=N.
#pragma once

#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

/// Shapes of model.inputs, in order. Every dim may be bound by its place, `input.1`, which has priority over its name;
/// a dim without a name can only be bound by place. A name is then one size: a dim that got another loses it. Errors
/// list all missing sizes with the places where they occur, or a binding that names nothing.
Expected<std::vector<std::vector<int64_t>>> bindDims(Model &model, const std::map<std::string, int64_t> &dims);

/// "input.1"
std::string placeText(const ValueInfo &input, size_t dim);
/// The name of an input's dim: "batch_size", "16", or "input.1".
std::string dimText(const ValueInfo &input, size_t dim);

// ---- expressions over names, e.g. "past_sequence_length + 1" ------------------------------------
// Integers with + - * // %, parentheses, Min and Max, as exporters print them.

/// The names in it, in order of appearance; the text itself when it is no expression.
std::vector<std::string> namesIn(const std::string &expression);
/// Its value; every name must be in `dims`.
Expected<int64_t> evaluateDim(const std::string &expression, const std::map<std::string, int64_t> &dims);

} // namespace hpc::onnx
