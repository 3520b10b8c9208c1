// Matrix products in the vectors of x86-64 machines that have AVX2 and nothing wider, sums in f32: what oneDNN has no
// product for (bf16 and f16, and B of i8), and f32 where oneDNN takes twice as long. The bits of an element of C depend
// on its row of A, its column of B and their depth alone.
#pragma once

#include "runtime/backend/host/Product.h"

namespace hpc::host {

/// Whether multiplyVectors() takes the product, on this machine, and is the better way. Depends on types and layouts, on n
/// and k, and of m on whether it is more than fewRows.
bool fitsVectors(const Product &product);

/// Whether it is the better way with B packed once, for all products to come (plan::Operand::packed): f32.
bool wantsPacked(const Product &product);

/// Columns of a panel of B. The panels of an f32 B [k, n] follow each other, each [k, columns] row by row, the last one
/// with the columns that are left.
constexpr int64_t panelColumns = 16;

/// Panels first .. last-1 of b [k, n] to their places in `to`, the beginning of all of them.
void packVectors(const ConstMatrix &b, int64_t k, int64_t n, int64_t first, int64_t last, float *to);

/// Bytes of scratch for any product.
int64_t vectorScratch();

void multiplyVectors(const Product &product, std::vector<std::byte> &scratch);

} // namespace hpc::host
