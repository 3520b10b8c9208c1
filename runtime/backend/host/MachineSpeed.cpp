// The best of a few rounds: other work on the machine can only make one slower. Each thread has its own data.
#include "runtime/backend/host/MachineSpeed.h"

#include "runtime/backend/host/HostDevice.h"
#include "runtime/backend/host/Product.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

namespace hpc::host {

namespace {

constexpr int rounds = 5;
constexpr int64_t side = 512;             ///< of a square product: 3 MiB of operands
constexpr int64_t streamBytes = 64 << 20; ///< of each of two streams

#if defined(__x86_64__)
#define HPC_WIDEST_VECTORS __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define HPC_WIDEST_VECTORS
#endif

constexpr int64_t elements = 4096; ///< 16 KiB
constexpr int64_t termsOfSeries = 8;

/// A polynomial of each element, as the functions of kernels are.
HPC_WIDEST_VECTORS void sumSeries(const float *__restrict x, float *__restrict y) {
  for (int64_t i = 0; i < elements; ++i) {
    float sum = 1e-3f;
    for (int64_t term = 0; term < termsOfSeries; ++term)
      sum = sum * x[i] + 0.5f;
    y[i] = sum;
  }
}

template <typename F> double secondsOf(F work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Expected<MachineSpeed> measureOne(bool moves) {
  HostDevice device; // plans run in memory of a device
  const int64_t bytes = moves ? streamBytes : 2 * side * side * 4; // A and B
  Expected<std::byte *> from = device.allocate(plan::Space::Device, bytes, std::byte(0));
  Expected<std::byte *> to = device.allocate(plan::Space::Device, bytes, std::byte(0));
  if (!from.ok() || !to.ok())
    return from.ok() ? to.status() : from.status();
  std::vector<std::byte> scratch;
  MachineSpeed best;
  for (int round = 0; round < rounds; ++round) {
    for (auto [type, flops] : {std::pair{DType::F32, &best.f32}, {DType::BF16, &best.bf16}, {DType::F16, &best.f16}}) {
      Product product{side, side, side};
      product.a = {*from, type, side};
      product.b = {*from + side * side * 4, type, side};
      product.c = {*to, DType::F32, side};
      Status status;
      const double seconds = secondsOf([&] { status = multiply(product, scratch); });
      HPC_RETURN_IF_ERROR(status);
      *flops = std::max(*flops, 2.0 * side * side * side / seconds);
    }
    if (!moves)
      continue;
    const double seconds = secondsOf([&] { std::memcpy(*to, *from, size_t(streamBytes)); });
    best.bytesPerSecond = std::max(best.bytesPerSecond, 2.0 * streamBytes / seconds);
  }
  return best;
}

} // namespace

Expected<MachineSpeed> measureSpeed(int64_t threads, bool moves) {
  std::vector<Expected<MachineSpeed>> speeds(static_cast<size_t>(threads), MachineSpeed());
  std::vector<std::thread> others;
  for (int64_t thread = 1; thread < threads; ++thread)
    others.emplace_back([&, thread] { speeds[size_t(thread)] = measureOne(moves); });
  speeds[0] = measureOne(moves);
  for (std::thread &other : others)
    other.join();
  MachineSpeed mean;
  for (const Expected<MachineSpeed> &speed : speeds) {
    if (!speed.ok())
      return speed.status();
    mean.f32 += speed->f32 / double(threads);
    mean.bf16 += speed->bf16 / double(threads);
    mean.f16 += speed->f16 / double(threads);
    mean.bytesPerSecond += speed->bytesPerSecond / double(threads);
  }
  return mean;
}

double measureElements() {
  constexpr int64_t calls = 200;
  std::vector<float> x(size_t(elements), 0.5f), y(static_cast<size_t>(elements));
  auto now = [] {
    timespec time;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  double best = 0;
  for (int round = 0; round < 4 * rounds; ++round) {
    const double start = now();
    for (int64_t call = 0; call < calls; ++call) {
      sumSeries(x.data(), y.data());
      x[size_t(call)] = y[size_t(call)]; // the next call reads what this one wrote
    }
    best = std::max(best, double(calls * elements * termsOfSeries) / (now() - start));
  }
  return best;
}

} // namespace hpc::host
