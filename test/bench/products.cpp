// Times the host backend's matrix products on one thread. Each line of standard input is a case, "TYPE TRANSPOSE M N K": the
// type of A and B (f32, bf16, f16, bf16-i8), 1 where B is stored as [N, K]. The answer is a line: microseconds, the least of
// many calls. test/bench/products.py drives it.
#include "runtime/backend/host/Gemm.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace hpc;

namespace {

struct Case {
  std::string type;
  int transpose = 0;
  int64_t m = 0, n = 0, k = 0;
};

/// Microseconds: the least of the calls of a fifth of a second, at least 5.
double timed(const std::function<void()> &call) {
  using Clock = std::chrono::steady_clock;
  double least = 1e30, sum = 0;
  for (int i = 0; i < 5 || sum < 2e5; ++i) {
    auto start = Clock::now();
    call();
    double one = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    least = std::min(least, one);
    sum += one;
  }
  return least;
}

double run(const Case &test) {
  DType a = test.type == "f32" ? DType::F32 : test.type == "f16" ? DType::F16 : DType::BF16, b = test.type == "bf16-i8" ? DType::I8 : a;
  plan::Gemm plan;
  plan.a = {{}, a, test.k, false, {}};
  plan.b = {{}, b, test.transpose ? test.k : test.n, test.transpose != 0, {}};
  plan.c = {{}, DType::F32, test.n, false, {}};
  std::vector<std::byte> left(size_t(test.m * test.k * byteSize(a))), right(size_t(test.n * test.k * byteSize(b))), result(size_t(test.m * test.n * 4));
  GemmCall call{plan, test.m, test.n, test.k, false, left.data(), right.data(), result.data()};
  host::Scratch scratch;
  return timed([&] {
    if (!host::gemm(call, scratch).ok())
      std::abort();
  });
}

} // namespace

int main() {
  char type[16];
  Case test;
  while (std::scanf("%15s %d %ld %ld %ld", type, &test.transpose, &test.m, &test.n, &test.k) == 5) {
    test.type = type;
    std::printf("%.1f\n", run(test));
    std::fflush(stdout);
  }
}
