// Sizes that a model's inputs give as an expression over names, e.g. "past_sequence_length + 1".
// Integers with + - * // %, parentheses, Min and Max, as exporters print them.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hpc::onnx {

/// The names in it, in order of appearance; the text itself when it is no expression.
std::vector<std::string> namesIn(const std::string &expression);
/// Its value; every name must be in `dims`.
Expected<int64_t> evaluateDim(const std::string &expression, const std::map<std::string, int64_t> &dims);

} // namespace hpc::onnx
