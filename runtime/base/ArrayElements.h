// One element of an array whose type is known at run time. Types that C++ does not have come in the next wider one that it
// has: f16 and bf16 as float.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/base/HalfFloat.h"

#include <algorithm>
#include <string>
#include <type_traits>

namespace hpc {

/// `visit` with element `i` in its own type; all its results are of one type.
template <typename Visit> auto visitElement(const Array &array, int64_t i, Visit visit) {
  switch (array.dtype) {
  case DType::F64:
    return visit(array.as<double>()[i]);
  case DType::F16:
    return visit(halfToFloat(array.as<uint16_t>()[i]));
  case DType::BF16:
    return visit(bfloatToFloat(array.as<uint16_t>()[i]));
  case DType::I64:
    return visit(array.as<int64_t>()[i]);
  case DType::I32:
    return visit(array.as<int32_t>()[i]);
  case DType::I16:
    return visit(array.as<int16_t>()[i]);
  case DType::I8:
    return visit(array.as<int8_t>()[i]);
  case DType::U8:
    return visit(array.as<uint8_t>()[i]);
  case DType::U16:
    return visit(array.as<uint16_t>()[i]);
  case DType::U32:
    return visit(array.as<uint32_t>()[i]);
  case DType::U64:
    return visit(array.as<uint64_t>()[i]);
  case DType::Bool:
    return visit(array.as<uint8_t>()[i] != 0);
  case DType::F32:
    break;
  }
  return visit(array.as<float>()[i]);
}

inline double numberAt(const Array &array, int64_t i) {
  return visitElement(array, i, [](auto value) { return double(value); });
}

/// For an array of integers; a u64 above 2^63 - 1 becomes that number. 0 for other types.
inline int64_t integerAt(const Array &array, int64_t i) {
  return visitElement(array, i, [](auto value) -> int64_t {
    using Type = decltype(value);
    if constexpr (std::is_same_v<Type, uint64_t>)
      return int64_t(std::min(value, uint64_t(INT64_MAX)));
    else
      return std::is_integral_v<Type> && !std::is_same_v<Type, bool> ? int64_t(value) : 0;
  });
}

/// For an array of integers, with all its digits.
inline std::string integerTextAt(const Array &array, int64_t i) {
  return array.dtype == DType::U64 ? std::to_string(array.as<uint64_t>()[i]) : std::to_string(integerAt(array, i));
}

} // namespace hpc
