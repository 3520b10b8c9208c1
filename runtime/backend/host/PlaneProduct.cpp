// 64 positions at a time, whose sums stay in registers.
#include "runtime/backend/host/PlaneProduct.h"

#include "runtime/backend/host/WindowColumns.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::host {

namespace {

constexpr int64_t mostRows = 8, mostDepth = 64;
/// A plane of more would not stay in L2.
constexpr int64_t mostElements = 256 << 10;

constexpr int64_t lanes = 16, vectors = 4, block = lanes * vectors;
using Vector = float __attribute__((vector_size(lanes * sizeof(float))));

/// to[i] = sum of weights[x] * from[offsets[x] + i], for i < roundUp(count, block).
[[gnu::always_inline]] inline void addUp(const float *weights, const int64_t *offsets, int64_t terms, const float *from, int64_t count,
                                         float *to) {
  for (int64_t at = 0; at < count; at += block) {
    Vector sums[vectors] = {};
    for (int64_t x = 0; x < terms; ++x) {
      Vector source[vectors]; // of any alignment
      __builtin_memcpy(source, from + offsets[x] + at, sizeof(source));
      for (int64_t v = 0; v < vectors; ++v)
        sums[v] += weights[x] * source[v];
    }
    __builtin_memcpy(to + at, sums, sizeof(sums));
  }
}
using AddUp = void(const float *, const int64_t *, int64_t, const float *, int64_t, float *);
[[gnu::target("avx512f")]] void addUpWide(const float *weights, const int64_t *offsets, int64_t terms, const float *from, int64_t count,
                                          float *to) {
  addUp(weights, offsets, terms, from, count, to);
}
[[gnu::target("avx2,fma")]] void addUpAvx2(const float *weights, const int64_t *offsets, int64_t terms, const float *from, int64_t count,
                                           float *to) {
  addUp(weights, offsets, terms, from, count, to);
}
void addUpPlain(const float *weights, const int64_t *offsets, int64_t terms, const float *from, int64_t count, float *to) {
  addUp(weights, offsets, terms, from, count, to);
}
AddUp *bestAddUp() {
  if (__builtin_cpu_supports("avx512f"))
    return addUpWide;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? addUpAvx2 : addUpPlain;
}

} // namespace

PlaneProduct::PlaneProduct(const GemmCall &call) : windows(*call.plan.windows), m(call.m), k(call.k) {
  const size_t dims = windows.image.size();
  std::vector<int64_t> steps(dims), phaseSteps(dims); // of a position and of a phase along a dim
  lengths.resize(dims);
  phases = windows.strides;
  for (size_t d = dims; d-- > 0;) {
    lengths[d] = windows.counts[d] + (windows.sizes[d] - 1) * windows.dilations[d] / windows.strides[d];
    steps[d] = phase;
    phase *= lengths[d];
    span += (windows.counts[d] - 1) * steps[d];
  }
  span += 1;
  plane = phase;
  for (size_t d = dims; d-- > 0;) {
    phaseSteps[d] = plane;
    plane *= phases[d];
  }
  const int64_t size = windows.rowsOfChannel();
  for (int64_t row = 0; row < k; ++row) {
    int64_t rest = row % size, offset = row / size * plane;
    for (size_t d = dims; d-- > 0; rest /= windows.sizes[d]) {
      const int64_t x = rest % windows.sizes[d] * windows.dilations[d];
      offset += x % windows.strides[d] * phaseSteps[d] + x / windows.strides[d] * steps[d];
    }
    offsets.push_back(offset);
  }
  findLines();
}

std::unique_ptr<PlaneProduct> PlaneProduct::create(const GemmCall &call) {
  const plan::Gemm &gemm = call.plan;
  for (DType type : {gemm.a.dtype, gemm.b.dtype, gemm.c.dtype, gemm.accumulate})
    if (type != DType::F32)
      return nullptr;
  if (gemm.a.transpose || gemm.b.transpose || call.addToC || call.m == 0 || call.m > mostRows || call.k == 0 ||
      call.k > mostDepth || call.n != gemm.windows->columns())
    return nullptr;
  double elements = 1;
  for (size_t d = 0; d < gemm.windows->image.size(); ++d)
    elements *= double(gemm.windows->counts[d] * gemm.windows->strides[d] + gemm.windows->sizes[d] * gemm.windows->dilations[d]);
  if (elements > double(mostElements))
    return nullptr;
  return std::unique_ptr<PlaneProduct>(new PlaneProduct(call));
}

int64_t PlaneProduct::scratch() const {
  const int64_t channels = ceilDiv(k, windows.rowsOfChannel());
  return (channels * plane + roundUp(span, block) + 2 * block) * int64_t(sizeof(float));
}

void PlaneProduct::findLines() {
  const size_t last = windows.image.size() - 1;
  for (int64_t line = 0; line < plane / lengths[last]; ++line) { // of all phases
    int64_t within = line % (phase / lengths[last]), rest = line / (phase / lengths[last]);
    const int64_t ofLast = rest % phases[last];
    rest /= phases[last];
    int64_t at = 0, step = windows.image[last];
    bool isInside = true;
    for (size_t d = last; d-- > 0; within /= lengths[d], rest /= phases[d]) {
      const int64_t x = within % lengths[d] * windows.strides[d] + rest % phases[d] - windows.low[d];
      isInside &= x >= 0 && x < windows.image[d];
      at += x * step;
      step *= windows.image[d];
    }
    lines.push_back({isInside ? at : 0, isInside ? windows.image[last] : 0, ofLast - windows.low[last]});
  }
  for (int64_t line = 0; line < windows.columns() / windows.counts[last]; ++line) {
    int64_t rest = line, from = 0, step = lengths[last];
    for (size_t d = last; d-- > 0; rest /= windows.counts[d]) {
      from += rest % windows.counts[d] * step;
      step *= lengths[d];
    }
    results.push_back(from);
  }
}

void PlaneProduct::multiply(const GemmCall &call, const float *a, const float *image, float *c, Scratch &scratch) const {
  static AddUp *const add = bestAddUp();
  const int64_t size = windows.rowsOfChannel(), channels = ceilDiv(k, size), last = windows.counts.back(), pitch = lengths.back();
  float *const planes = reinterpret_cast<float *>(scratch.data()), *const sums = planes + channels * plane + block;
  const int64_t imageSize = windows.imageSize(), stride = windows.strides.back();
  for (int64_t channel = 0; channel < channels; ++channel, image += imageSize) {
    float *to = planes + channel * plane;
    for (const Line &line : lines) {
      writeRun(image + line.at, line.size, line.first, stride, pitch, to);
      to += pitch;
    }
  }
  for (int64_t row = 0; row < m; ++row) {
    add(a + row * call.plan.a.ld, offsets.data(), k, planes, span, sums);
    float *to = c + row * call.plan.c.ld;
    for (int64_t from : results)
      to = std::copy(sums + from, sums + from + last, to);
  }
}

} // namespace hpc::host
