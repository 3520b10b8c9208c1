// What NCCL makes of the values of two ranks: rounded to the type at every step, and floats' maxima and minima without
// regard for NaN.
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin {

/// Bytes of an element of NCCL's type; 0 where there is none.
size_t ncclBytes(int type);
/// into[i] = into[i] op other[i].
void ncclCombine(int type, int operation, std::byte *into, const std::byte *other, size_t count);

} // namespace standin
