// The plan's matrix products on the host: a Product for each index of the batch.
#pragma once

#include "runtime/backend/host/Product.h"
#include "runtime/core/Backend.h"

namespace hpc::host {

/// Bytes that a product needs beside its operands while it runs: what `scratch` will grow to, and an upper bound of
/// what oneDNN allocates. An error for what the host cannot multiply.
struct GemmNeeds {
  int64_t scratch = 0, library = 0;
};
Expected<GemmNeeds> gemmNeeds(const GemmCall &call, bool mayUseTiles = true);

/// `packed` operands are taken as they are: all ways pack panels on the way, and oneDNN's prepacked form, measured on
/// gpt2's shapes, is between 0.8 and 1.15 of its sgemm's speed for twice the memory.
Status gemm(const GemmCall &call, std::vector<std::byte> &scratch, bool mayUseTiles = true);

} // namespace hpc::host
