// One matrix product on the host, C = A * B or C += A * B, for every float type, and B of i8. One thread a call: the
// ranks are the threads. Large ones use tile registers if there are some (TileProduct), few rows FewRows, some on
// machines without tiles VectorProduct; else oneDNN multiplies f32, and narrower types after they are widened block by
// block, so that sums are always f32; f64, which oneDNN 2.6 lacks, is our own loop.
#pragma once

#include "runtime/base/DType.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <vector>

namespace hpc::host {

/// A row-major matrix, or its transpose. `ld`: elements from one stored row to the next.
template <typename Byte> struct MatrixOf {
  Byte *data = nullptr;
  DType dtype = DType::F32;
  int64_t ld = 1;
  bool transpose = false;
  bool packed = false; ///< B in panels (VectorProduct.h): `ld` is their depth
};
using ConstMatrix = MatrixOf<const std::byte>;
using Matrix = MatrixOf<std::byte>;

/// Extents may be 0: without m or n nothing happens, k = 0 is a sum of nothing. C is never transposed.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  ConstMatrix a = {}, b = {};
  Matrix c = {};
  DType accumulate = DType::F32;
  bool addToC = false;
  bool mayUseTiles = true; ///< see TileProduct.h
};

/// Moves a matrix to row `row` and column `column` of the product's operand; a packed one to a panel.
template <typename Byte> void moveTo(MatrixOf<Byte> &matrix, int64_t row, int64_t column) {
  if (matrix.packed) // all of k
    matrix.data += column * matrix.ld * byteSize(matrix.dtype);
  else
    matrix.data += (matrix.transpose ? column * matrix.ld + row : row * matrix.ld + column) * byteSize(matrix.dtype);
}

/// Called once on each thread that will multiply: Debian's oneDNN would otherwise start a pool of its own for each.
void useOneThread();

/// Bytes of scratch for multiply(), or an error for types without a product here.
Expected<int64_t> productScratch(DType a, DType b, DType c, DType accumulate);

/// `scratch` grows as needed.
Status multiply(const Product &product, std::vector<std::byte> &scratch);

/// How deep the parts of k are that threads take of a product of few rows, where they then read B as it lies in memory:
/// whole rows, one after the other, half as fast again as some columns of each (measured). 0: they take columns. With the
/// same bits as multiply().
int64_t depthOfParts(const Product &product);

/// The columns of the parts that threads take of a product of few rows whose columns of B lie in memory as rows; 0 of others.
int64_t columnsOfParts(const Product &product);

/// A part's sums [m, n], without gaps and without what C holds.
void sumDepth(const Product &product, int64_t first, int64_t depth, float *sums);

/// Numbers from the sums of a part to those of the next: of all usual products the same, so that the sums of a part stay in the
/// cache of the thread that takes it in most products.
int64_t sumsOfPart(int64_t m, int64_t n);

/// Columns first .. last-1 of C from the sums of its parts, in their order.
void addParts(const Product &product, const float *sums, int64_t parts, int64_t first, int64_t last);

/// An upper bound of oneDNN's allocations during one product.
int64_t oneDnnScratch(int64_t m, int64_t n, int64_t k);

} // namespace hpc::host
