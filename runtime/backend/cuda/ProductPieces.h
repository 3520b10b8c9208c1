// Products whose results have rows at odd addresses, cut so that tensor cores store 16 bytes at a time.
#pragma once

#include "runtime/core/Backend.h"

#include <array>
#include <vector>

namespace hpc::cuda {

/// A product that computes a part of another's result.
struct ProductPiece {
  plan::Gemm plan;
  int64_t m, n, k;
  std::array<int64_t, 3> offset; ///< in bytes, behind the other's A, B and C
};

/// Fewer cost about as much in pieces.
constexpr int64_t leastFlopsOfPieces = int64_t(1) << 35;

/// cuBLASLt's fast kernels for 16-bit operands want a multiple of 8 columns of C, and its rows at multiples of 16 bytes; on
/// an H100 any other product takes six times as long (docs/measured.md). Empty where a product is not of that kind, has
/// fewer than `least` flops, or cannot be cut. Else the pieces are to be run in this order: the last one writes over others.
std::vector<ProductPiece> alignedPieces(const GemmCall &call, int64_t least = leastFlopsOfPieces);

} // namespace hpc::cuda
