// The cut of a product into parts that threads compute on their own: over its batch, rows and columns of C, never over
// k. If the bits of an element depend on the extents of the call that computes it, the cut depends on the shape alone;
// if not, also on the number of threads.
#pragma once

#include <cstdint>

namespace hpc::host {

struct ProductCut {
  int64_t products = 1;          ///< of the batch
  int64_t rows = 0, columns = 0; ///< of C in a part; the last ones may be smaller
  int64_t rowParts = 0, columnParts = 0;

  int64_t parts() const { return products * rowParts * columnParts; }
};

/// A part: its place in the batch and in C.
struct ProductPart {
  int64_t product = 0, row = 0, column = 0, rows = 0, columns = 0;
};
ProductPart partOf(const ProductCut &cut, int64_t m, int64_t n, int64_t index);

/// Few parts that are large enough for a library: it packs its operands anew for each. The same for any number of
/// threads.
ProductCut cutByShape(int64_t products, int64_t m, int64_t n, int64_t k);

/// Whether helpers of a rank would have woken before the product is done.
bool paysForThreads(int64_t products, int64_t m, int64_t n, int64_t k);

/// For TileProduct.h: the cut that takes `threads` threads least time.
ProductCut cutByThreads(int64_t products, int64_t m, int64_t n, int64_t k, int64_t threads);

} // namespace hpc::host
