// Matrix products by cuBLASLt, whose matrices are column-major: a row-major C = A B is its C' = B' A' without a
// transposition, so operands change places. The constant parts of a product are made once, in prepare().
#pragma once

#include "runtime/backend/cuda/CudaOptions.h"
#include "runtime/backend/cuda/Gpu.h"
#include "runtime/backend/cuda/ProductPieces.h"

#include <array>
#include <vector>

namespace hpc::cuda {

class Products {
public:
  /// `tf32`: f32 operands may be rounded to 10 bits of mantissa on their way into the tensor cores.
  /// Products of `leastOfPieces` flops or more are cut where that makes them faster.
  static Expected<Products> create(const CublasLt &blas, const Gpu &gpu, bool tf32,
                                   int64_t leastOfPieces = leastFlopsOfPieces);

  /// On `stream`, which products run on later, where something has to be written beforehand.
  Expected<GemmHandle> prepare(const GemmCall &call, StreamHandle stream);
  /// Whether the epilogue is one of `wanted`, and cuBLASLt offers it for this product.
  Expected<bool> fuses(const GemmCall &call, Epilogues wanted, StreamHandle stream);
  Status run(GemmHandle handle, const GemmCall &call, StreamHandle stream);
  int64_t workspaceBytes() const { return reserved + zeroBytes; }

private:
  /// Byte offsets of A, B and C.
  using Offsets = std::array<int64_t, 3>;
  struct Prepared {
    enum { Nothing, Zeros, Multiply, Pieces } what = Nothing;
    bool isOfZeros = false; ///< A and B are rows of zeros, whatever the plan's are
    ProductDescriptor product;
    Layout a, b, c;
    BlasAlgorithm algorithm;
    int64_t workspace = 0;
    std::vector<Offsets> rounds; ///< one call each: batch dims that do not fit in one
    std::vector<std::pair<ProductPiece, GemmHandle>> pieces; ///< of Pieces
  };
  struct Batch;
  Expected<GemmHandle> prepareEpilogueOfNothing(const GemmCall &call, StreamHandle stream);
  Expected<GemmHandle> prepareWhole(const GemmCall &call, StreamHandle stream);
  Status describe(const GemmCall &call, const Batch &batch, Prepared &entry) const;
  Status choose(const GemmCall &call, const Batch &batch, Prepared &entry) const;

  Products(const CublasLt &blas, const Gpu &gpu, bool tf32, int64_t leastOfPieces)
      : blas(&blas), gpu(&gpu), tf32(tf32), leastOfPieces(leastOfPieces) {}
  const CublasLt *blas;
  const Gpu *gpu;
  bool tf32;
  int64_t leastOfPieces;
  Blas handle;
  DeviceMemory workspace, zeros;
  int64_t reserved = 0, zeroBytes = 0;
  std::vector<Prepared> prepared;
};

} // namespace hpc::cuda
