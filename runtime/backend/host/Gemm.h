// The plan's matrix products on the host: cut into parts, each a Product that one thread computes.
#pragma once

#include "runtime/backend/host/Product.h"
#include "runtime/backend/host/ProductCut.h"
#include "runtime/core/Backend.h"

namespace hpc::host {

/// Bytes that a thread needs beside the operands of a product while it runs: the final size of its `scratch`, and an
/// upper bound of oneDNN's allocations. An error for types that the host cannot multiply.
struct GemmNeeds {
  int64_t scratch = 0, library = 0;
};
Expected<GemmNeeds> gemmNeeds(const GemmCall &call, bool mayUseTiles = true);

/// How a product is done, decided before the run from its types, its extents and the number of threads.
struct GemmMethod {
  bool usesTiles = false, usesVectors = false;
  ProductCut ours;    ///< of these two, whose bits depend on no cut
  ProductCut library; ///< of other methods, and if tiles meet infinities: the same for any number of threads
  int64_t depth = 0;  ///< where not 0, nothing is cut but k, into parts of this; see depthOfParts()
  bool wantsPacked = false;
  int64_t packedDepth = 0; ///< where not 0, of the panels that B is in
};
GemmMethod chooseMethod(const GemmCall &call, int64_t threads, bool mayUseTiles = true);

/// Memory of a thread that multiplies; grows as needed.
using Scratch = std::vector<std::byte>;

/// The method with B in the panels of packVectors(), if the method wants that; packedDepth is still to be set.
GemmMethod methodOfPacked(const GemmCall &call, int64_t threads);

/// `scratch` has one for each of the threads. Of ways that pack panels on the way, oneDNN's prepacked form, measured on
/// gpt2's shapes with AVX-512, is between 0.8 and 1.15 of its sgemm's speed for twice the memory.
Status gemm(const GemmCall &call, const GemmMethod &method, ThreadPool &threads, std::vector<Scratch> &scratch);

/// On the caller's thread alone, with the same bits.
Status gemm(const GemmCall &call, Scratch &scratch, bool mayUseTiles = true);

} // namespace hpc::host
