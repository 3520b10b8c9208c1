// One loop for each kind and type; 16-bit floats are widened and narrowed element by element.
#include "runtime/backend/host/Epilogue.h"

#include "runtime/base/HalfFloat.h"

#include <cmath>

namespace hpc::host {

namespace {

template <plan::Epilogue Kind, typename T> T activate(T x) {
  if constexpr (Kind == plan::Epilogue::BiasRelu)
    return x < 0 ? T(0) : x; // NaN is not less
  else if constexpr (Kind == plan::Epilogue::BiasGeluTanh)
    return T(0.5) * x * (1 + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x))); // sqrt(2 / pi)
  else
    return x;
}

template <typename T> T same(T x) { return x; }

template <plan::Epilogue Kind, typename Stored, auto Widen, auto Narrow>
void run(int64_t m, int64_t n, int64_t ld, Stored *c, const Stored *bias) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      c[i * ld + j] = Narrow(activate<Kind>(Widen(c[i * ld + j]) + Widen(bias[j])));
}

template <typename Stored, auto Widen, auto Narrow>
void runKind(plan::Epilogue epilogue, int64_t m, int64_t n, int64_t ld, std::byte *c, const std::byte *bias) {
  auto *elements = reinterpret_cast<Stored *>(c);
  auto *added = reinterpret_cast<const Stored *>(bias);
  switch (epilogue) {
  case plan::Epilogue::None:
    return;
  case plan::Epilogue::Bias:
    return run<plan::Epilogue::Bias, Stored, Widen, Narrow>(m, n, ld, elements, added);
  case plan::Epilogue::BiasRelu:
    return run<plan::Epilogue::BiasRelu, Stored, Widen, Narrow>(m, n, ld, elements, added);
  case plan::Epilogue::BiasGeluTanh:
    return run<plan::Epilogue::BiasGeluTanh, Stored, Widen, Narrow>(m, n, ld, elements, added);
  }
}

} // namespace

void applyEpilogue(plan::Epilogue epilogue, DType dtype, int64_t m, int64_t n, int64_t ld, std::byte *c,
                   const std::byte *bias) {
  if (dtype == DType::F64)
    runKind<double, same<double>, same<double>>(epilogue, m, n, ld, c, bias);
  else if (dtype == DType::F32)
    runKind<float, same<float>, same<float>>(epilogue, m, n, ld, c, bias);
  else if (dtype == DType::F16)
    runKind<uint16_t, halfToFloat, floatToHalf>(epilogue, m, n, ld, c, bias);
  else if (dtype == DType::BF16)
    runKind<uint16_t, bfloatToFloat, floatToBfloat>(epilogue, m, n, ld, c, bias);
}

} // namespace hpc::host
