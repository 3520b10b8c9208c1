// A stack that is emptied as a whole.
#include "runtime/backend/cuda/Staging.h"

#include "runtime/base/IntegerMath.h"

namespace hpc::cuda {

Expected<Staging> Staging::create(const Gpu &gpu) {
  Expected<PinnedMemory> memory = gpu.allocatePinned(totalBytes);
  if (!memory.ok())
    return memory.status();
  Staging staging;
  staging.memory = std::move(*memory);
  return staging;
}

std::byte *Staging::take(int64_t bytes) {
  if (used + bytes > totalBytes)
    return nullptr;
  std::byte *piece = static_cast<std::byte *>(memory.get()) + used;
  used = roundUp(used + bytes, 64);
  return piece;
}

void Staging::deliver() {
  for (const Piece &piece : expected)
    piece.slice->scatterPart(piece.piece, piece.host, piece.begin, piece.bytes);
  clear();
}

void Staging::clear() {
  expected.clear();
  used = 0;
}

} // namespace hpc::cuda
