// A tensor on the host with its type and shape, as .npz files hold it and as callers pass and receive it.
// Data is row-major, little endian and compact.
#pragma once

#include "runtime/base/DType.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpc {

struct Array {
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< empty: a scalar, one element
  std::vector<std::byte> data;

  /// Zeros of that type and shape, which must be one that checkedBytes accepts.
  static Array zeros(DType dtype, std::vector<int64_t> shape);

  int64_t elements() const { return int64_t(data.size()) / byteSize(dtype); }
  template <typename T> T *as() { return reinterpret_cast<T *>(data.data()); }
  template <typename T> const T *as() const { return reinterpret_cast<const T *>(data.data()); }
};

/// In file order.
using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// Product of `shape` times element size; nothing when a size is negative or the product passes 2^62.
std::optional<int64_t> checkedBytes(DType dtype, const std::vector<int64_t> &shape);

/// "2x16", "scalar"
std::string shapeText(const std::vector<int64_t> &shape);

} // namespace hpc
