// The cut depends on the shape alone, since the code that multiplies a part may give other bits for other extents.
#include "runtime/backend/host/WindowProduct.h"

#include "runtime/backend/host/WindowColumns.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::host {

namespace {

/// Bytes of a part's columns: they stay near L2, and the weight is not packed too often (measured).
constexpr int64_t columnBytes = 2 << 20;
constexpr int64_t unit = 64;        ///< columns that all products take without waste
constexpr int64_t fewParts = 4;     ///< for threads
constexpr int64_t leastColumns = 256; ///< of a part that is made for them
constexpr int64_t piecesOfEach = 8;   ///< threads, where parts are many and small

/// Columns of C in a part: columns of the windows or, where these are transposed, whole channels of them.
int64_t columnsOfPart(const GemmCall &call, int64_t products) {
  const plan::Operand &b = call.plan.b;
  const int64_t grain = b.transpose ? call.plan.windows->rowsOfChannel() : unit;
  const int64_t fits = columnBytes / std::max<int64_t>(call.k * byteSize(b.dtype), 1) / grain * grain;
  int64_t columns = std::max(fits, grain);
  if (products * ceilDiv(call.n, columns) < fewParts && call.n / fewParts >= (b.transpose ? grain : leastColumns))
    columns = roundUp(ceilDiv(call.n, fewParts), grain);
  return std::min(columns, call.n);
}

int64_t batchSize(const plan::Gemm &gemm) {
  int64_t products = 1;
  for (int64_t size : gemm.batch)
    products = size == 0 ? 0 : products * size;
  return products;
}

} // namespace

Expected<WindowProduct> WindowProduct::create(const GemmCall &call, bool mayUseTiles) {
  const plan::Gemm &gemm = call.plan;
  Expected<int64_t> scratch = productScratch(gemm.a.dtype, gemm.b.dtype, gemm.c.dtype, gemm.accumulate);
  if (!scratch.ok())
    return scratch.status();
  WindowProduct made;
  made.mayUseTiles = mayUseTiles;
  made.convolution = Convolution::create(call, mayUseTiles);
  if (made.convolution) {
    made.need.columns = made.convolution->scratch();
    return made;
  }
  const int64_t products = batchSize(gemm);
  made.planes = PlaneProduct::create(call);
  if (made.planes) {
    made.need.columns = made.planes->scratch();
    made.cut = {products, call.m, call.n, 1, 1};
    return made;
  }
  const int64_t columns = call.n > 0 ? columnsOfPart(call, products) : 0;
  made.cut = {products, call.m, columns, call.m > 0, columns > 0 ? ceilDiv(call.n, columns) : 0};
  made.need.columns = call.k * columns * byteSize(gemm.b.dtype);
  // As of any product of these extents, whose B is in memory.
  plan::Gemm part = gemm;
  part.windows.reset();
  part.b.ld = gemm.b.transpose ? call.k : columns;
  part.batch.clear();
  Expected<GemmNeeds> needs = gemmNeeds({part, call.m, columns, call.k, call.addToC, nullptr, nullptr, nullptr}, mayUseTiles);
  if (!needs.ok())
    return needs.status();
  made.need.scratch = std::max(*scratch, needs->scratch);
  made.need.library = needs->library;
  return made;
}

Status WindowProduct::runPart(const GemmCall &call, int64_t index, Scratch &columns, Scratch &scratch) const {
  const plan::Gemm &gemm = call.plan;
  const ProductPart part = partOf(cut, call.m, call.n, index);
  Product product{call.m, part.columns, call.k, {call.a, gemm.a.dtype, gemm.a.ld, gemm.a.transpose}, {}, {call.c, gemm.c.dtype, gemm.c.ld},
                  gemm.accumulate, call.addToC, mayUseTiles};
  const std::byte *image = call.b;
  int64_t rest = part.product;
  for (size_t d = gemm.batch.size(); d-- > 0; rest /= gemm.batch[d]) {
    const int64_t at = rest % gemm.batch[d];
    product.a.data += at * gemm.a.stride[d] * byteSize(gemm.a.dtype);
    image += at * gemm.b.stride[d] * byteSize(gemm.b.dtype);
    product.c.data += at * gemm.c.stride[d] * byteSize(gemm.c.dtype);
  }
  if (planes) {
    planes->multiply(call, reinterpret_cast<const float *>(product.a.data), reinterpret_cast<const float *>(image),
                     reinterpret_cast<float *>(product.c.data), columns);
    return Status::success();
  }
  moveTo(product.c, 0, part.column);
  const WindowPart wanted = gemm.b.transpose ? WindowPart{part.column, part.columns, 0, call.k}
                                             : WindowPart{0, call.k, part.column, part.columns};
  writeColumns(*gemm.windows, image, byteSize(gemm.b.dtype), wanted, columns.data());
  product.b = {columns.data(), gemm.b.dtype, wanted.columns, gemm.b.transpose};
  return multiply(product, scratch);
}

Status WindowProduct::run(const GemmCall &call, const std::byte *weight, ThreadPool &threads, std::vector<Scratch> &columns,
                          std::vector<Scratch> &scratch) const {
  if (convolution)
    return convolution->run(call, weight, threads, columns);
  const int64_t parts = cut.parts();
  const bool pays = paysForThreads(cut.products, call.m, call.n, call.k);
  const int64_t grain = std::max<int64_t>(pays ? parts / (threads.threads() * piecesOfEach) : parts, 1);
  return threads.run(parts, grain, [&](int64_t thread, int64_t first, int64_t last) {
    if (thread > 0)
      useOneThread();
    for (int64_t part = first; part < last; ++part)
      HPC_RETURN_IF_ERROR(runPart(call, part, columns[size_t(thread)], scratch[size_t(thread)]));
    return Status::success();
  });
}

} // namespace hpc::host
