// One loop for each type.
#include "test/gpu/standin/NcclReduce.h"

#include "runtime/backend/cuda/NcclApi.h"
#include "runtime/base/HalfFloat.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace standin {

using namespace hpc::cuda;

namespace {

template <typename T> T combine(int operation, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (operation == ncclMax || operation == ncclMin)
      return operation == ncclMax ? std::fmax(a, b) : std::fmin(a, b);
    return operation == ncclSum ? a + b : a * b;
  } else {
    using U = std::make_unsigned_t<T>; // overflow wraps
    switch (operation) {
    case ncclSum:
      return T(U(U(a) + U(b)));
    case ncclProd:
      return T(U(uint64_t(U(a)) * uint64_t(U(b))));
    case ncclMax:
      return a < b ? b : a;
    default:
      return b < a ? b : a;
    }
  }
}

template <typename T> void loop(int operation, std::byte *into, const std::byte *other, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, other + i * sizeof(T), sizeof(T));
    a = combine(operation, a, b);
    std::memcpy(into + i * sizeof(T), &a, sizeof(T));
  }
}

template <float Widen(uint16_t), uint16_t Narrow(float)>
void narrowLoop(int operation, std::byte *into, const std::byte *other, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t a, b;
    std::memcpy(&a, into + i * 2, 2);
    std::memcpy(&b, other + i * 2, 2);
    a = Narrow(combine(operation, Widen(a), Widen(b)));
    std::memcpy(into + i * 2, &a, 2);
  }
}

} // namespace

size_t ncclBytes(int type) {
  constexpr size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type < 0 || type > ncclBF16 ? 0 : bytes[type];
}

void ncclCombine(int type, int operation, std::byte *into, const std::byte *other, size_t count) {
  switch (type) {
  case ncclI8:
    return loop<int8_t>(operation, into, other, count);
  case ncclU8:
    return loop<uint8_t>(operation, into, other, count);
  case ncclI32:
    return loop<int32_t>(operation, into, other, count);
  case ncclU32:
    return loop<uint32_t>(operation, into, other, count);
  case ncclI64:
    return loop<int64_t>(operation, into, other, count);
  case ncclU64:
    return loop<uint64_t>(operation, into, other, count);
  case ncclF32:
    return loop<float>(operation, into, other, count);
  case ncclF64:
    return loop<double>(operation, into, other, count);
  case ncclF16:
    return narrowLoop<hpc::halfToFloat, hpc::floatToHalf>(operation, into, other, count);
  case ncclBF16:
    return narrowLoop<hpc::bfloatToFloat, hpc::floatToBfloat>(operation, into, other, count);
  }
}

} // namespace standin
