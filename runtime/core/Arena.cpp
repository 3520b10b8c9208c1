// Three allocations a rank; buffers are places in them that the plan has fixed.
#include "runtime/core/Arena.h"

#include <algorithm>

namespace hpc {

Expected<Arena> Arena::create(const plan::Stage &stage, Device &device, bool poison) {
  Arena arena;
  std::byte fresh = poison ? poisonByte : std::byte{0};
  // State starts at zero: that is its meaning, not a lack of writing.
  Expected<std::byte *> weights = device.allocate(stage.weightBytes, fresh);
  Expected<std::byte *> state = device.allocate(stage.stateBytes, std::byte{0});
  Expected<std::byte *> work = device.allocate(stage.workBytes, fresh);
  for (const Expected<std::byte *> *memory : {&weights, &state, &work})
    if (!memory->ok())
      return memory->status();
  arena.work = *work;
  arena.workBytes = stage.workBytes;
  arena.totalBytes = stage.weightBytes + stage.stateBytes + stage.workBytes;

  std::vector<Range> slots;
  for (const plan::Buffer &buffer : stage.buffers) {
    bool isSlot = buffer.memory == plan::MemoryClass::Slot, isTemp = buffer.memory == plan::MemoryClass::Temp;
    std::byte *start = isSlot || isTemp ? *work : buffer.memory == plan::MemoryClass::State ? *state : *weights;
    arena.bases.push_back({start + buffer.offset, isSlot && buffer.slots > 1 ? buffer.slotStride : 0});
    if (isSlot)
      slots.push_back({buffer.offset, (buffer.slots - 1) * buffer.slotStride + buffer.bytes});
  }
  for (const plan::Buffer &buffer : stage.buffers)
    if (buffer.memory == plan::MemoryClass::Temp && std::none_of(slots.begin(), slots.end(), [&](const Range &slot) {
          return buffer.offset < slot.offset + slot.bytes && slot.offset < buffer.offset + buffer.bytes;
        }))
      arena.temporaries.push_back({buffer.offset, buffer.bytes});
  return arena;
}

void Arena::poisonTemporaries(Device &device) const {
  for (const Range &range : temporaries)
    device.fill(work + range.offset, poisonByte, range.bytes);
}

} // namespace hpc
