// Walks the batch; the products are Product.cpp's.
#include "runtime/backend/host/Gemm.h"

namespace hpc::host {

namespace {

template <typename Byte> MatrixOf<Byte> matrix(const plan::Operand &operand, Byte *data) {
  return {data, operand.dtype, operand.ld, operand.transpose};
}

Status multiplyBatch(const plan::Gemm &gemm, size_t depth, Product product, std::vector<std::byte> &scratch) {
  if (depth == gemm.batch.size())
    return multiply(product, scratch);
  for (int64_t i = 0; i < gemm.batch[depth]; ++i) {
    HPC_RETURN_IF_ERROR(multiplyBatch(gemm, depth + 1, product, scratch));
    product.a.data += gemm.a.stride[depth] * byteSize(gemm.a.dtype);
    product.b.data += gemm.b.stride[depth] * byteSize(gemm.b.dtype);
    product.c.data += gemm.c.stride[depth] * byteSize(gemm.c.dtype);
  }
  return Status::success();
}

} // namespace

Expected<GemmNeeds> gemmNeeds(const GemmCall &call) {
  const plan::Gemm &gemm = call.plan;
  if (gemm.epilogue != plan::Epilogue::None)
    return Status::error(ErrorKind::Unsupported,
                         "the plan's products add a bias or apply an activation, which the host "
                         "backend leaves to kernels; compile the plan with --target=host");
  Expected<int64_t> scratch = productScratch(gemm.a.dtype, gemm.b.dtype, gemm.c.dtype, gemm.accumulate);
  if (!scratch.ok())
    return scratch.status();
  return GemmNeeds{*scratch, oneDnnScratch(call.m, call.n, call.k)};
}

Status gemm(const GemmCall &call, std::vector<std::byte> &scratch) {
  const plan::Gemm &gemm = call.plan;
  Product product{
      call.m,          call.n,     call.k, matrix(gemm.a, call.a), matrix(gemm.b, call.b), matrix(gemm.c, call.c),
      gemm.accumulate, call.addToC};
  return multiplyBatch(gemm, 0, product, scratch);
}

} // namespace hpc::host
