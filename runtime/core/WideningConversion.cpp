// Floats pass through double, integers through 64 bits; both hold all that the narrower types do.
#include "runtime/core/WideningConversion.h"

#include "runtime/base/HalfFloat.h"

#include <cstring>

namespace hpc {

namespace {

template <typename T> T elementAt(const std::byte *data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * int64_t(sizeof(T)), sizeof(T));
  return value;
}

template <typename From, typename To, typename Convert>
void convert(const std::byte *source, std::byte *target, int64_t count, Convert toNumber) {
  for (int64_t i = 0; i < count; ++i) {
    const To value = To(toNumber(elementAt<From>(source, i)));
    std::memcpy(target + i * int64_t(sizeof(To)), &value, sizeof(To));
  }
}

template <typename To> void widenFloats(DType from, const std::byte *source, std::byte *target, int64_t count) {
  if (from == DType::F16)
    convert<uint16_t, To>(source, target, count, halfToFloat);
  else if (from == DType::BF16)
    convert<uint16_t, To>(source, target, count, bfloatToFloat);
  else if (from == DType::F32)
    convert<float, To>(source, target, count, [](float value) { return value; });
  else if (from == DType::I8)
    convert<int8_t, To>(source, target, count, [](int8_t value) { return value; });
  else
    convert<uint8_t, To>(source, target, count, [](uint8_t value) { return value; });
}

template <typename To> void widenIntegers(DType from, const std::byte *source, std::byte *target, int64_t count) {
  auto same = [](auto value) { return value; };
  switch (from) {
  case DType::I8:
    return convert<int8_t, To>(source, target, count, same);
  case DType::I16:
    return convert<int16_t, To>(source, target, count, same);
  case DType::I32:
    return convert<int32_t, To>(source, target, count, same);
  case DType::U16:
    return convert<uint16_t, To>(source, target, count, same);
  case DType::U32:
    return convert<uint32_t, To>(source, target, count, same);
  default:
    return convert<uint8_t, To>(source, target, count, same);
  }
}

/// Bits of an integer without its sign; 0: no integer.
int bitsOf(DType type) {
  switch (type) {
  case DType::I8:
    return 7;
  case DType::U8:
    return 8;
  case DType::I16:
    return 15;
  case DType::U16:
    return 16;
  case DType::I32:
    return 31;
  case DType::U32:
    return 32;
  case DType::I64:
    return 63;
  case DType::U64:
    return 64;
  default:
    return 0;
  }
}

} // namespace

bool isExactIn(DType from, DType to) {
  if (from == to)
    return true;
  if (isFloat(from) && isFloat(to))
    return to == DType::F64 || (to == DType::F32 && from != DType::F64);
  const int narrow = bitsOf(from), wide = bitsOf(to);
  const bool hasSign = narrow % 2 == 1, takesSign = wide % 2 == 1;
  return narrow > 0 && wide > narrow && (takesSign || !hasSign);
}

void widen(DType from, const std::byte *source, DType to, std::byte *target, int64_t count) {
  switch (to) {
  case DType::F32:
    return widenFloats<float>(from, source, target, count);
  case DType::F64:
    return widenFloats<double>(from, source, target, count);
  case DType::I16:
    return widenIntegers<int16_t>(from, source, target, count);
  case DType::U16:
    return widenIntegers<uint16_t>(from, source, target, count);
  case DType::I32:
    return widenIntegers<int32_t>(from, source, target, count);
  case DType::U32:
    return widenIntegers<uint32_t>(from, source, target, count);
  case DType::I64:
    return widenIntegers<int64_t>(from, source, target, count);
  default:
    return widenIntegers<uint64_t>(from, source, target, count);
  }
}

} // namespace hpc
