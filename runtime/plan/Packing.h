// Which weights a device may keep in a form of its own (Operand::packed).
#pragma once

#include "runtime/plan/Access.h"

namespace hpc::plan {

/// B as it is stored: all of its buffer, `k` deep and `n` wide, of which products may leave out the end of k.
struct PackedSize {
  int64_t k = 0, n = 0;
};
PackedSize packedSize(const Stage &stage, const Gemm &gemm);

/// Whether B is all of its buffer, without gaps, and the same for a whole batch. Needs a plan that passed checkStructure.
bool canPack(const Plan &plan, const Stage &stage, const Gemm &gemm);

/// Of two products that may have the same buffer as B packed: whether they want it in the same form.
bool packsAlike(const Gemm &a, const Gemm &b);

} // namespace hpc::plan
