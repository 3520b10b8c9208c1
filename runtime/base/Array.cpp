// Sizes of arrays, with arithmetic that cannot overflow.
#include "runtime/base/Array.h"

#include <algorithm>
#include <cassert>

namespace hpc {

std::optional<int64_t> checkedBytes(DType dtype, const std::vector<int64_t> &shape) {
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; }))
    return std::nullopt;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return 0;
  int64_t bytes = byteSize(dtype);
  for (int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > (int64_t(1) << 62))
      return std::nullopt;
  return bytes;
}

Array Array::zeros(DType dtype, std::vector<int64_t> shape) {
  std::optional<int64_t> bytes = checkedBytes(dtype, shape);
  assert(bytes && "the shape must be checked before");
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.data.resize(size_t(*bytes));
  return array;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  constexpr size_t most = 64; // of a file that says a million
  std::string text;
  for (size_t i = 0; i < shape.size() && i < most; ++i)
    text += (text.empty() ? "" : "x") + std::to_string(shape[i]);
  if (shape.size() > most)
    text += "... of " + std::to_string(shape.size()) + " dims";
  return shape.empty() ? "scalar" : text;
}

} // namespace hpc
