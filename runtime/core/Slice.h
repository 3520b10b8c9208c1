// A plan::Slice at one rank and micro-batch, turned into loops that copy between the global tensor and the local box.
// Built once per instruction, so that a copy allocates nothing.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace hpc {

/// A rank's coordinate, a micro-batch and the step's scalars: the numbers of a ByCoord depend on them.
struct Place {
  int64_t coordinate = 0, microBatch = 0, ranksPerStage = 1;
  const int64_t *stepScalars = nullptr; ///< by input of the plan; null where no number varies by step

  int64_t operator()(const plan::ByCoord &table) const {
    const int64_t value = table.at(coordinate, microBatch, ranksPerStage);
    return table.varies() ? value + table.scale * stepScalars[table.input] : value;
  }
};

class SliceCopy {
public:
  SliceCopy() = default;
  /// The slice must be one that PlanCheck accepts.
  SliceCopy(const plan::Slice &slice, int64_t elementSize, Place place);

  /// Bytes of the local box, padding included.
  int64_t boxBytes() const { return box; }
  /// Whether some of them belong to no element.
  bool hasPadding() const { return padded; }
  /// Whether pieces of it are copied as fast as all at once: it is no loop over single elements.
  bool isQuickInParts() const { return run >= 64; }
  /// Whether it is all of a global tensor of so many bytes, as it lies there.
  bool isWhole(int64_t globalBytes) const {
    return loops.empty() && !padded && globalStart == 0 && run == box && box == globalBytes && box > 0;
  }
  /// Where in the global tensor the byte of the box comes from; of padding the nearest one before it, so that what a part of
  /// the box takes lies between those of its ends. Not of a slice that holds nothing.
  int64_t globalOffsetOf(int64_t local) const;
  /// Fills the whole box: the elements that the rank holds from the global tensor, zeros elsewhere.
  void gather(const std::byte *global, std::byte *local) const;
  /// Copies the elements that the rank holds into the global tensor; padding is not read.
  void scatter(const std::byte *local, std::byte *global) const;
  /// The same for bytes [begin, begin + bytes) of the box alone, which stand at `part`: where a box passes through a
  /// smaller memory.
  void gatherPart(const std::byte *global, std::byte *part, int64_t begin, int64_t bytes) const;
  void scatterPart(const std::byte *part, std::byte *global, int64_t begin, int64_t bytes) const;
  /// visit(at, from, bytes) for what the same bytes of the box hold: `at` counts from `begin`, `from` from the start of
  /// the global tensor. Padding is left out.
  void visitPart(int64_t begin, int64_t bytes, const std::function<void(int64_t, int64_t, int64_t)> &visit) const;

private:
  /// One loop. Strides are in bytes.
  struct Loop {
    int64_t size, globalStride, localStride;
  };
  template <bool IntoLocal> void copy(size_t depth, std::byte *local, std::byte *global) const;
  /// The part of a box: `at` is where in the box the loops of this depth begin.
  struct Part {
    std::byte *data;
    int64_t begin, end;
  };
  template <bool IntoLocal> void copyPart(size_t depth, const Part &part, int64_t at, std::byte *global) const;

  std::vector<Loop> loops; ///< outer to inner, without the innermost run
  int64_t element = 1;     ///< bytes that are copied at once if the innermost loop is strided
  int64_t run = 0;         ///< bytes that lie together on both sides; 0: nothing to copy
  int64_t globalStart = 0, box = 0;
  bool padded = false;
};

/// Which chunks of `chunkBytes` of the global tensor hold an element of the slice: one flag per chunk.
std::vector<bool> touchedChunks(const plan::Slice &slice, int64_t elementSize, Place place, int64_t chunkBytes);

} // namespace hpc
