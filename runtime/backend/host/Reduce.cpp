// One loop per operator, instantiated for every type of the running value.
#include "runtime/backend/host/Reduce.h"

#include "runtime/base/HalfFloat.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace hpc::host {

namespace {

template <ReduceKind Kind, typename T> T combine(T left, T right) {
  constexpr bool isFloat = std::is_floating_point_v<T>;
  using Wide = std::conditional_t<isFloat, T, uint64_t>; // signed overflow would be undefined
  if constexpr (Kind == ReduceKind::Sum) {
    return T(Wide(left) + Wide(right));
  } else if constexpr (Kind == ReduceKind::Prod) {
    return T(Wide(left) * Wide(right));
  } else {
    constexpr bool isMax = Kind == ReduceKind::Max;
    bool takeRight = isMax ? right > left : right < left;
    if constexpr (isFloat) // of two zeros the one with the wanted sign
      takeRight |= left == right && std::signbit(left) == isMax;
    // right != right: NaN; a NaN on the left stays, as every comparison with it is false.
    return takeRight || right != right ? right : left;
  }
}

/// Elements of type T are added up as they are.
template <ReduceKind Kind, typename T> struct Plain {
  static void begin(std::byte *running, const std::byte *source, int64_t count) {
    std::memcpy(running, source, size_t(count) * sizeof(T));
  }
  static void add(std::byte *running, const std::byte *source, int64_t count) {
    T *left = reinterpret_cast<T *>(running);
    const T *right = reinterpret_cast<const T *>(source);
    for (int64_t i = 0; i < count; ++i)
      left[i] = combine<Kind>(left[i], right[i]);
  }
  static void end(std::byte *, int64_t) {}
  static Reduction functions() { return {sizeof(T), begin, add, add, end}; }
};

/// 16-bit floats are widened, added up as f32 and narrowed at the end.
template <ReduceKind Kind, float (*Widen)(uint16_t), uint16_t (*Narrow)(float)> struct Widened {
  static void begin(std::byte *running, const std::byte *source, int64_t count) {
    float *wide = reinterpret_cast<float *>(running);
    const uint16_t *narrow = reinterpret_cast<const uint16_t *>(source);
    for (int64_t i = 0; i < count; ++i)
      wide[i] = Widen(narrow[i]);
  }
  static void add(std::byte *running, const std::byte *source, int64_t count) {
    float *wide = reinterpret_cast<float *>(running);
    const uint16_t *narrow = reinterpret_cast<const uint16_t *>(source);
    for (int64_t i = 0; i < count; ++i)
      wide[i] = combine<Kind>(wide[i], Widen(narrow[i]));
  }
  static void end(std::byte *running, int64_t count) {
    for (int64_t i = 0; i < count; ++i) { // element i lies before value i
      float wide;
      std::memcpy(&wide, running + i * int64_t(sizeof(float)), sizeof(wide));
      uint16_t narrow = Narrow(wide);
      std::memcpy(running + i * int64_t(sizeof(narrow)), &narrow, sizeof(narrow));
    }
  }
  static Reduction functions() { return {sizeof(float), begin, add, Plain<Kind, float>::add, end}; }
};

template <ReduceKind Kind> Reduction forType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return Plain<Kind, float>::functions();
  case DType::F64:
    return Plain<Kind, double>::functions();
  case DType::F16:
    return Widened<Kind, halfToFloat, floatToHalf>::functions();
  case DType::BF16:
    return Widened<Kind, bfloatToFloat, floatToBfloat>::functions();
  case DType::I64:
    return Plain<Kind, int64_t>::functions();
  case DType::I32:
    return Plain<Kind, int32_t>::functions();
  case DType::I16:
    return Plain<Kind, int16_t>::functions();
  case DType::I8:
    return Plain<Kind, int8_t>::functions();
  case DType::U16:
    return Plain<Kind, uint16_t>::functions();
  case DType::U32:
    return Plain<Kind, uint32_t>::functions();
  case DType::U64:
    return Plain<Kind, uint64_t>::functions();
  case DType::U8:
  case DType::Bool: // bytes 0 and 1: max is or, min and prod are and
    return Plain<Kind, uint8_t>::functions();
  }
  return {};
}

} // namespace

Expected<Reduction> findReduction(ReduceKind kind, DType dtype) {
  switch (kind) {
  case ReduceKind::Sum:
    if (dtype == DType::Bool)
      break;
    return forType<ReduceKind::Sum>(dtype);
  case ReduceKind::Max:
    return forType<ReduceKind::Max>(dtype);
  case ReduceKind::Min:
    return forType<ReduceKind::Min>(dtype);
  case ReduceKind::Prod:
    return forType<ReduceKind::Prod>(dtype);
  }
  return Status::error(
      ErrorKind::Unsupported,
      "a sum of bool over ranks has no meaning; reduce by max (or) or min (and), or sum in an integer type");
}

} // namespace hpc::host
