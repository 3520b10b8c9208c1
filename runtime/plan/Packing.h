// Which weights a device may keep in a form of its own (Operand::packed).
#pragma once

#include "runtime/plan/Access.h"

namespace hpc::plan {

/// The operand of a product that may be packed: B, or A where B is windows; its number in BufferAccess::operand.
inline const Operand &packable(const Gemm &gemm) { return gemm.windows ? gemm.a : gemm.b; }
inline Operand &packable(Gemm &gemm) { return gemm.windows ? gemm.a : gemm.b; }
inline int32_t packableNumber(const Gemm &gemm) { return gemm.windows ? 0 : operandB; }

/// B as it is stored: all of its buffer, `k` deep and `n` wide, of which products may leave out the end of k. Of A of
/// windows, `n` are the rows of all groups.
struct PackedSize {
  int64_t k = 0, n = 0;
};
PackedSize packedSize(const Stage &stage, const Gemm &gemm);

/// Whether the operand is all of its buffer, without gaps. B is the same for a whole batch; A [m, k] of windows has another
/// matrix for each group, one after the other. Needs a plan that passed checkStructure.
bool canPack(const Plan &plan, const Stage &stage, const Gemm &gemm);

/// Of two products that may have the same buffer packed: whether they want it in the same form.
bool packsAlike(const Gemm &a, const Gemm &b);

} // namespace hpc::plan
