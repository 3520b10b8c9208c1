// Three allocations a rank; buffers are places in them that the plan has fixed.
#include "runtime/core/Arena.h"

#include <algorithm>

namespace hpc {

Expected<Arena> Arena::create(const plan::Stage &stage, Device &device, bool poison) {
  Arena arena;
  std::byte fresh = poison ? poisonByte : std::byte{0};
  std::byte *starts[3];
  const int64_t sizes[3] = {stage.sessionBytes, stage.workBytes, stage.hostBytes};
  for (int kind = 0; kind < 3; ++kind) {
    Expected<std::byte *> memory = device.allocate(
        plan::ArenaKind(kind) == plan::ArenaKind::Host ? plan::Space::Host : plan::Space::Device, sizes[kind], fresh);
    if (!memory.ok())
      return memory.status();
    starts[kind] = *memory;
    arena.totalBytes += sizes[kind];
  }
  arena.work = starts[int(plan::ArenaKind::Work)];
  arena.workBytes = stage.workBytes;

  std::vector<Range> longer; // what lives longer than a program
  for (const plan::Buffer &buffer : stage.buffers) {
    plan::ArenaKind kind = plan::arenaOf(buffer);
    arena.bases.push_back({starts[int(kind)] + buffer.offset, buffer.slots, buffer.slotStride});
    if (kind == plan::ArenaKind::Work && buffer.lifetime != plan::Lifetime::Program)
      longer.push_back({buffer.offset, (buffer.slots - 1) * buffer.slotStride + buffer.bytes});
  }
  for (const plan::Buffer &buffer : stage.buffers)
    if (buffer.lifetime == plan::Lifetime::Program &&
        std::none_of(longer.begin(), longer.end(), [&](const Range &other) {
          return buffer.offset < other.offset + other.bytes && other.offset < buffer.offset + buffer.bytes;
        }))
      arena.temporaries.push_back({buffer.offset, buffer.bytes});
  return arena;
}

Status Arena::poisonTemporaries(Device &device) const {
  for (const Range &range : temporaries)
    HPC_RETURN_IF_ERROR(device.fill(work + range.offset, poisonByte, range.bytes));
  return Status::success();
}

} // namespace hpc
