// Finds a part's operands; the products are Product.cpp's, TileProduct.cpp's and VectorProduct.cpp's.
#include "runtime/backend/host/Gemm.h"

#include "runtime/backend/host/TileProduct.h"
#include "runtime/backend/host/VectorProduct.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::host {

namespace {

template <typename Byte> MatrixOf<Byte> matrix(const plan::Operand &operand, Byte *data) {
  return {data, operand.dtype, operand.ld, operand.transpose};
}

/// For one index of the batch; tiles are chosen or refused for all of it, before it is cut.
Product productOf(const GemmCall &call) {
  const plan::Gemm &gemm = call.plan;
  return {call.m,          call.n,      call.k, matrix(gemm.a, call.a), matrix(gemm.b, call.b), matrix(gemm.c, call.c),
          gemm.accumulate, call.addToC, false};
}

int64_t batchSize(const plan::Gemm &gemm) {
  int64_t products = 1;
  if (std::find(gemm.batch.begin(), gemm.batch.end(), 0) != gemm.batch.end())
    return 0; // however large the others are
  for (int64_t size : gemm.batch)
    products *= size;
  return products;
}

Product productOf(const GemmCall &call, const ProductPart &part, int64_t packedDepth) {
  Product product = productOf(call);
  if (packedDepth > 0)
    product.b = {product.b.data, product.b.dtype, packedDepth, false, true};
  const plan::Gemm &gemm = call.plan;
  int64_t rest = part.product;
  for (size_t d = gemm.batch.size(); d-- > 0; rest /= gemm.batch[d]) {
    const int64_t index = rest % gemm.batch[d];
    product.a.data += index * gemm.a.stride[d] * byteSize(gemm.a.dtype);
    product.b.data += index * gemm.b.stride[d] * byteSize(gemm.b.dtype);
    product.c.data += index * gemm.c.stride[d] * byteSize(gemm.c.dtype);
  }
  moveTo(product.a, part.row, 0);
  moveTo(product.b, 0, part.column);
  moveTo(product.c, part.row, part.column);
  product.m = part.rows;
  product.n = part.columns;
  return product;
}

/// compute(product, scratch) for all parts.
template <typename Compute>
Status eachPart(const GemmCall &call, const ProductCut &cut, int64_t packedDepth, ThreadPool &threads,
                std::vector<Scratch> &scratch, const Compute &compute) {
  // The parts do not depend on the number of threads; only their assignment to threads does.
  const int64_t grain = paysForThreads(batchSize(call.plan), call.m, call.n, call.k) ? 1 : std::max<int64_t>(cut.parts(), 1);
  return threads.run(cut.parts(), grain, [&](int64_t thread, int64_t first, int64_t last) {
    if (thread > 0)
      useOneThread();
    for (int64_t index = first; index < last; ++index) {
      const ProductPart part = partOf(cut, call.m, call.n, index);
      Product product = productOf(call, part, packedDepth);
      HPC_RETURN_IF_ERROR(compute(product, scratch[size_t(thread)]));
    }
    return Status::success();
  });
}

/// Threads take parts of k, whose sums are then added in order. `memory` has room for them.
Status multiplyInDepths(const GemmCall &call, int64_t depth, ThreadPool &threads, Scratch &memory) {
  const Product product = productOf(call);
  const int64_t parts = ceilDiv(call.k, depth), size = sumsOfPart(call.m, call.n);
  memory.resize(std::max(memory.size(), size_t(parts * size) * sizeof(float)));
  float *const sums = reinterpret_cast<float *>(memory.data());
  const int64_t grain = paysForThreads(1, call.m, call.n, call.k) ? 1 : parts;
  HPC_RETURN_IF_ERROR(threads.run(parts, grain, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part)
      sumDepth(product, part * depth, std::min(depth, call.k - part * depth), sums + part * size);
    return Status::success();
  }));
  constexpr int64_t leastShared = 8192, line = 16; // numbers that take as long as waking a helper; those of a cache line
  const int64_t pieces = std::clamp<int64_t>(parts * call.m * call.n / leastShared, 1, threads.threads());
  return threads.run(call.n, roundUp(ceilDiv(call.n, pieces), line), [&](int64_t, int64_t first, int64_t last) {
    addParts(product, sums, parts, first, last);
    return Status::success();
  });
}

Product productOf(const GemmCall &call, bool mayUseTiles) {
  Product product = productOf(call);
  product.mayUseTiles = mayUseTiles;
  return product;
}

} // namespace

Expected<GemmNeeds> gemmNeeds(const GemmCall &call, bool mayUseTiles) {
  const plan::Gemm &gemm = call.plan;
  Expected<int64_t> scratch = productScratch(gemm.a.dtype, gemm.b.dtype, gemm.c.dtype, gemm.accumulate);
  if (!scratch.ok())
    return scratch.status();
  const GemmMethod method = chooseMethod(call, 1, mayUseTiles);
  if (method.depth > 0)
    return GemmNeeds{ceilDiv(call.k, method.depth) * sumsOfPart(call.m, call.n) * int64_t(sizeof(float)), 0};
  const int64_t ours = method.usesTiles ? tileScratch() : method.usesVectors ? vectorScratch(gemm.c.dtype) : 0;
  return GemmNeeds{std::max(*scratch, ours),
                   oneDnnScratch(method.library.rows, method.library.columns, call.k)};
}

GemmMethod chooseMethod(const GemmCall &call, int64_t threads, bool mayUseTiles) {
  const int64_t products = batchSize(call.plan);
  GemmMethod method;
  const Product product = productOf(call, mayUseTiles);
  method.usesTiles = fitsTiles(product);
  method.usesVectors = !method.usesTiles && fitsVectors(product);
  if (method.usesTiles || method.usesVectors)
    method.ours = cutByThreads(products, call.m, call.n, call.k, threads);
  method.library = cutByShape(products, call.m, call.n, call.k);
  if (const int64_t columns = columnsOfParts(product); columns > 0 && method.library.parts() > 0)
    method.library = {products, call.m, columns, 1, ceilDiv(call.n, columns)};
  if (call.plan.batch.empty())
    method.depth = depthOfParts(product);
  method.wantsPacked = !method.usesTiles && call.plan.b.packed && wantsPacked(product);
  return method;
}

GemmMethod methodOfPacked(const GemmCall &call, int64_t threads) {
  GemmMethod method;
  method.usesVectors = true;
  method.ours = cutByThreads(batchSize(call.plan), call.m, call.n, call.k, threads);
  return method;
}

Status gemm(const GemmCall &call, const GemmMethod &method, ThreadPool &threads, std::vector<Scratch> &scratch) {
  if (method.depth > 0)
    return multiplyInDepths(call, method.depth, threads, scratch[0]);
  if (method.usesTiles) {
    std::atomic<bool> isNumber{true};
    HPC_RETURN_IF_ERROR(eachPart(call, method.ours, 0, threads, scratch, [&](const Product &product, Scratch &memory) {
      if (!multiplyTiles(product, memory))
        isNumber.store(false, std::memory_order_relaxed);
      return Status::success();
    }));
    // Tiles may have turned infinities into NaN; if C held no sum before, the code below computes all of C again, so
    // that its bits do not depend on the cut.
    if (isNumber || call.addToC)
      return Status::success();
  }
  if (method.usesVectors)
    return eachPart(call, method.ours, method.packedDepth, threads, scratch, [](const Product &product, Scratch &memory) {
      multiplyVectors(product, memory);
      return Status::success();
    });
  return eachPart(call, method.library, 0, threads, scratch,
                  [](const Product &product, Scratch &memory) { return multiply(product, memory); });
}

Status gemm(const GemmCall &call, Scratch &scratch, bool mayUseTiles) {
  ThreadPool alone;
  std::vector<Scratch> memory(1);
  memory[0].swap(scratch);
  Status status = gemm(call, chooseMethod(call, 1, mayUseTiles), alone, memory);
  memory[0].swap(scratch);
  return status;
}

} // namespace hpc::host
