// Products of matrices whose rows begin at odd addresses, cut so that tensor cores move 16 bytes at a time.
#pragma once

#include "runtime/core/Backend.h"

#include <array>
#include <vector>

namespace hpc::cuda {

/// A product that computes a part of another's result, or adds to it.
struct ProductPiece {
  plan::Gemm plan;
  int64_t m, n, k;
  bool addToC;
  std::array<int64_t, 3> offset; ///< in bytes, behind the other's A, B and C
};

/// Fewer cost about as much in pieces.
constexpr int64_t leastFlopsOfPieces = int64_t(1) << 35;

/// cuBLASLt's fast kernels for 16-bit operands want rows at multiples of 16 bytes, and multiples of 8 in those of C and of
/// operands that are summed along their rows; on an H100 any other product takes four to six times as long
/// (docs/measured.md). Empty where a product is not of that kind, has fewer than `least` flops, or cannot be cut without
/// more roundings. Else the pieces are to be run in this order: one may write over or add to what others have written.
std::vector<ProductPiece> alignedPieces(const GemmCall &call, int64_t least = leastFlopsOfPieces);

} // namespace hpc::cuda
