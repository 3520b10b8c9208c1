// dnnl_sgemm for each index of the batch.
#include "runtime/backend/host/Gemm.h"

#include <algorithm>
#include <cstring>
#include <dnnl.h>

// From libgomp, which oneDNN brings along; <omp.h> would need -fopenmp and so a second OpenMP runtime.
extern "C" void omp_set_num_threads(int);

namespace hpc::host {

namespace {

Status multiply(const GemmCall &call, const float *a, const float *b, float *c) {
  const plan::Gemm &plan = call.plan;
  if (call.k == 0) {
    for (int64_t row = 0; !call.addToC && row < call.m; ++row)
      std::memset(c + row * plan.c.ld, 0, size_t(call.n) * sizeof(float));
    return Status::success();
  }
  dnnl_status_t status =
      dnnl_sgemm(plan.a.transpose ? 'T' : 'N', plan.b.transpose ? 'T' : 'N', call.m, call.n, call.k, 1.0f, a, plan.a.ld,
                 b, plan.b.ld, call.addToC ? 1.0f : 0.0f, c, plan.c.ld);
  if (status == dnnl_success)
    return Status::success();
  return Status::error(ErrorKind::Internal, "oneDNN refuses a product of m=" + std::to_string(call.m) +
                                                " n=" + std::to_string(call.n) + " k=" + std::to_string(call.k) +
                                                " (status " + std::to_string(int(status)) + ")");
}

Status multiplyBatch(const GemmCall &call, size_t depth, const float *a, const float *b, float *c) {
  const plan::Gemm &plan = call.plan;
  if (depth == plan.batch.size())
    return multiply(call, a, b, c);
  for (int64_t i = 0; i < plan.batch[depth]; ++i)
    HPC_RETURN_IF_ERROR(multiplyBatch(call, depth + 1, a + i * plan.a.stride[depth], b + i * plan.b.stride[depth],
                                      c + i * plan.c.stride[depth]));
  return Status::success();
}

} // namespace

void useOneThread() { omp_set_num_threads(1); }

Status gemm(const GemmCall &call) {
  // oneDNN 2.6.3 dies of SIGFPE on a zero extent.
  if (call.m == 0 || call.n == 0)
    return Status::success();
  return multiplyBatch(call, 0, call.a, call.b, call.c);
}

int64_t gemmScratchBytes(int64_t m, int64_t n, int64_t k) {
  if (m == 0 || n == 0 || k == 0)
    return 0;
  // oneDNN 2.6.3 packs panels of at most 9984 x 384 and 384 x 384 (row-major products have its m and n swapped), or
  // uses a fixed 72 KiB and no panels. Measured by counting posix_memalign for products from 16^3 to 30000^2 x 128.
  auto roundedUp = [](int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; };
  int64_t depth = std::min<int64_t>(roundedUp(k, 8), 384);
  int64_t panels = std::min<int64_t>(roundedUp(n, 48), 9984) + std::min<int64_t>(roundedUp(m, 8), 384);
  return std::max<int64_t>(80 << 10, panels * depth * 4 + (20 << 10));
}

} // namespace hpc::host
