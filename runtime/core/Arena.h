// The memory of one rank: session, work and host arena, and where in them each buffer of its stage lies.
// Under poison every byte that nothing has written yet is 0xFF, which is NaN in every float type.
#pragma once

#include "runtime/core/Backend.h"

namespace hpc {

constexpr std::byte poisonByte{0xff};

class Arena {
public:
  static Expected<Arena> create(const plan::Stage &stage, Device &device, bool poison);

  /// The place of a Ref for a micro-batch.
  std::byte *at(const plan::Ref &ref, int64_t microBatch) const {
    const Base &base = bases[size_t(ref.buffer)];
    return base.address + (base.slots == 1 ? 0 : microBatch % base.slots * base.slotStride) + ref.byteOffset +
           microBatch * ref.microBatchStride;
  }
  /// From now on the buffer, of one slot, lies at `address`, in memory of somebody else.
  void place(int32_t buffer, std::byte *address) { bases[size_t(buffer)] = {address, 1, 0}; }
  std::byte *buffer(int64_t index, int64_t microBatch) const { return at({int32_t(index), 0}, microBatch); }

  /// Poisons all that a step may not take from the step before: all but the session arena and the host's.
  Status poisonWork(Device &device) const { return device.fill(work, poisonByte, workBytes); }
  /// Zeros there instead.
  Status clearWork(Device &device) const { return device.fill(work, std::byte(0), workBytes); }
  /// Poisons what a program may not take from the program before: its buffers, but for those without a use, which share
  /// their place with one that lives longer.
  Status poisonTemporaries(Device &device) const;

  int64_t bytes() const { return totalBytes; }

private:
  struct Base {
    std::byte *address;
    int64_t slots, slotStride;
  };
  struct Range {
    int64_t offset, bytes;
  };
  std::vector<Base> bases;
  std::vector<Range> temporaries;
  std::byte *work = nullptr;
  int64_t workBytes = 0, totalBytes = 0;
};

} // namespace hpc
