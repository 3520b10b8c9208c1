// Matrix products in the vectors of x86-64 machines that have AVX2 or AVX-512 and no tile registers, sums in f32: for
// types that oneDNN does not multiply (bf16 and f16, and B of i8), and f32 if oneDNN takes longer. C of 16 bits is
// rounded once. The bits of an element of C depend on its row of A, its column of B and their depth alone.
#pragma once

#include "runtime/backend/host/VectorWay.h"

namespace hpc::host {

/// Whether multiplyVectors() takes the product, on this machine, and is the better way. Depends on types, layouts and
/// extents alone.
bool fitsVectors(const Product &product);

/// Whether it is the better way with B packed once, for all products to come (plan::Operand::packed).
bool wantsPacked(const Product &product);

/// The panels of a packed B [k, n] follow each other, each [steps of k, way.panelColumns] row by row, the last one with
/// the remaining columns. Numbers keep their type, so they take as many bytes as B, and k is a multiple of
/// way.depthOfStep; a step narrower than a word is widened when it is multiplied.

/// Panels first .. last-1 of b [k, n] to their places in `to`, the beginning of all of them.
void packVectors(const VectorWay &way, const ConstMatrix &b, int64_t k, int64_t n, int64_t first, int64_t last,
                 std::byte *to);

/// Bytes of scratch for any product into C of this type.
int64_t vectorScratch(DType c);

/// In the best way that the machine has, or `way`, which takes the types and which the machine has.
void multiplyVectors(const Product &product, std::vector<std::byte> &scratch, const VectorWay *way = nullptr);

namespace vectors {

/// C = or += A * B where the columns of B lie in memory as rows, with the bits of the other way. Scratch: `left` has
/// room for rowsAtOnce lines, `right` for columnsAtOnce, all depthAtOnce deep.
void multiplyTransposed(const Product &product, const VectorWay &way, float *left, float *right);

} // namespace vectors

} // namespace hpc::host
