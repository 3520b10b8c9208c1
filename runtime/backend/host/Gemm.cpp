// Walks the batch; the products are Product.cpp's, what follows them Epilogue.cpp's.
#include "runtime/backend/host/Gemm.h"

#include "runtime/backend/host/Epilogue.h"
#include "runtime/backend/host/TileProduct.h"

#include <algorithm>

namespace hpc::host {

namespace {

template <typename Byte> MatrixOf<Byte> matrix(const plan::Operand &operand, Byte *data) {
  return {data, operand.dtype, operand.ld, operand.transpose};
}

Status multiplyBatch(const GemmCall &call, size_t depth, Product product, std::vector<std::byte> &scratch) {
  const plan::Gemm &gemm = call.plan;
  if (depth == gemm.batch.size()) {
    HPC_RETURN_IF_ERROR(multiply(product, scratch));
    applyEpilogue(gemm.epilogue, gemm.c.dtype, product.m, product.n, gemm.c.ld, product.c.data, call.bias);
    return Status::success();
  }
  for (int64_t i = 0; i < gemm.batch[depth]; ++i) {
    HPC_RETURN_IF_ERROR(multiplyBatch(call, depth + 1, product, scratch));
    product.a.data += gemm.a.stride[depth] * byteSize(gemm.a.dtype);
    product.b.data += gemm.b.stride[depth] * byteSize(gemm.b.dtype);
    product.c.data += gemm.c.stride[depth] * byteSize(gemm.c.dtype);
  }
  return Status::success();
}

} // namespace

static Product productOf(const GemmCall &call, bool mayUseTiles) {
  const plan::Gemm &gemm = call.plan;
  return {call.m,          call.n,     call.k, matrix(gemm.a, call.a), matrix(gemm.b, call.b), matrix(gemm.c, call.c),
          gemm.accumulate, call.addToC, mayUseTiles};
}

Expected<GemmNeeds> gemmNeeds(const GemmCall &call, bool mayUseTiles) {
  const plan::Gemm &gemm = call.plan;
  Expected<int64_t> scratch = productScratch(gemm.a.dtype, gemm.b.dtype, gemm.c.dtype, gemm.accumulate);
  if (!scratch.ok())
    return scratch.status();
  return GemmNeeds{std::max(*scratch, fitsTiles(productOf(call, mayUseTiles)) ? tileScratch() : 0),
                   oneDnnScratch(call.m, call.n, call.k)};
}

Status gemm(const GemmCall &call, std::vector<std::byte> &scratch, bool mayUseTiles) {
  return multiplyBatch(call, 0, productOf(call, mayUseTiles), scratch);
}

} // namespace hpc::host
