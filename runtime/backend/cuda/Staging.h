// Pinned memory through which boxes pass between the host's arrays and a GPU, piece by piece. A piece may be used again
// only when the stream has passed it, so when the memory is full its owner waits for the stream and begins anew.
#pragma once

#include "runtime/backend/cuda/Gpu.h"
#include "runtime/core/Slice.h"

#include <vector>

namespace hpc::cuda {

class Staging {
public:
  /// The longest piece.
  static constexpr int64_t pieceBytes = int64_t(4) << 20;
  static Expected<Staging> create(const Gpu &gpu);

  /// Null when the memory is full.
  std::byte *take(int64_t bytes);
  /// Notes that `piece` will hold bytes [begin, begin + bytes) of a box that go to `host`.
  void expect(const SliceCopy &slice, const std::byte *piece, int64_t begin, int64_t bytes, std::byte *host) {
    expected.push_back({&slice, piece, begin, bytes, host});
  }
  /// The stream has passed all pieces: stores the expected bytes.
  void deliver();
  /// Forgets the expected bytes.
  void clear();
  int64_t bytes() const { return totalBytes; }

private:
  static constexpr int64_t totalBytes = 4 * pieceBytes;
  struct Piece {
    const SliceCopy *slice;
    const std::byte *piece;
    int64_t begin, bytes;
    std::byte *host;
  };
  PinnedMemory memory;
  int64_t used = 0;
  std::vector<Piece> expected;
};

} // namespace hpc::cuda
