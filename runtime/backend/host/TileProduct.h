// Matrix products in the tile registers of x86-64 (AMX), sums in f32: of bf16, and of f32 and f16 in pieces of bf16, as
// accurate as f32 (docs/numerics.md); each of them with B of i8 too, which is one piece. The bits of an element of C depend on its row of A, its column of B and their
// depth alone.
#pragma once

#include "runtime/backend/host/Product.h"

namespace hpc::host {

/// Whether this machine has them and the kernel lets this process use them.
bool hasTiles();

/// Whether multiplyTiles() takes the product, and it is large enough to be worth it. Depends on types and extents
/// alone.
bool fitsTiles(const Product &product);

/// Bytes of scratch for any product.
int64_t tileScratch();

/// Returns whether all of C is a number. If not, an infinity in an operand may have become NaN, since infinity * 0 is
/// NaN and the lower pieces of most numbers are 0; C has been written even so.
bool multiplyTiles(const Product &product, std::vector<std::byte> &scratch);

} // namespace hpc::host
