// One loop per operator, instantiated for every type.
#include "runtime/backend/host/Reduce.h"

#include <string>
#include <type_traits>

namespace hpc::host {

namespace {

template <plan::ReduceKind Kind, typename T> T combine(T left, T right) {
  if constexpr (Kind == plan::ReduceKind::Sum) {
    if constexpr (std::is_floating_point_v<T>)
      return left + right;
    else
      return T(uint64_t(left) + uint64_t(right)); // signed overflow would be undefined
  } else {
    bool takeRight = Kind == plan::ReduceKind::Max ? right > left : right < left;
    // right != right: NaN; a NaN on the left stays, as every comparison with it is false.
    return takeRight || right != right ? right : left;
  }
}

template <plan::ReduceKind Kind, typename T>
void accumulate(std::byte *target, const std::byte *source, int64_t count) {
  T *left = reinterpret_cast<T *>(target);
  const T *right = reinterpret_cast<const T *>(source);
  for (int64_t i = 0; i < count; ++i)
    left[i] = combine<Kind>(left[i], right[i]);
}

template <typename T> Accumulate forKind(plan::ReduceKind kind) {
  switch (kind) {
  case plan::ReduceKind::Sum:
    return accumulate<plan::ReduceKind::Sum, T>;
  case plan::ReduceKind::Max:
    return accumulate<plan::ReduceKind::Max, T>;
  case plan::ReduceKind::Min:
    return accumulate<plan::ReduceKind::Min, T>;
  }
  return nullptr;
}

Accumulate forType(plan::ReduceKind kind, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return forKind<float>(kind);
  case DType::F64:
    return forKind<double>(kind);
  case DType::I64:
    return forKind<int64_t>(kind);
  case DType::I32:
    return forKind<int32_t>(kind);
  case DType::I16:
    return forKind<int16_t>(kind);
  case DType::I8:
    return forKind<int8_t>(kind);
  case DType::U8:
    return forKind<uint8_t>(kind);
  case DType::U16:
    return forKind<uint16_t>(kind);
  case DType::U32:
    return forKind<uint32_t>(kind);
  case DType::U64:
    return forKind<uint64_t>(kind);
  // Bytes 0 and 1: max is or, min is and.
  case DType::Bool:
    return kind == plan::ReduceKind::Sum ? nullptr : forKind<uint8_t>(kind);
  case DType::F16:
  case DType::BF16:
    return nullptr;
  }
  return nullptr;
}

} // namespace

Expected<Accumulate> findAccumulate(plan::ReduceKind kind, DType dtype) {
  if (Accumulate function = forType(kind, dtype))
    return function;
  const char *what = kind == plan::ReduceKind::Sum ? "sum" : kind == plan::ReduceKind::Max ? "max" : "min";
  return Status::error(ErrorKind::Unsupported, std::string("the host backend cannot reduce ") + name(dtype) + " by " +
                                                   what + "; reduce in f32 or an integer type");
}

} // namespace hpc::host
