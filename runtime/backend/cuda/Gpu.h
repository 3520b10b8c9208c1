// One GPU of this machine: its context, and the creation of objects in it. The ranks on the GPU share it; a thread must
// have made the context current before it calls.
#pragma once

#include "runtime/backend/cuda/Handles.h"
#include "runtime/backend/cuda/Library.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace hpc::cuda {

class Gpu {
public:
  /// Makes the GPU's context the calling thread's own.
  static Expected<std::unique_ptr<Gpu>> open(const Driver &driver, int ordinal);
  ~Gpu();
  Gpu(const Gpu &) = delete;

  const Driver &driver() const { return table; }
  DeviceNumber device() const { return number; }
  /// "GPU 0 (NVIDIA H100)"
  const std::string &name() const { return text; }
  /// Tells it from all other cards, and a slice of it from the others (MIG).
  const CardUuid &uuid() const { return cardUuid; }
  /// 80 for compute capability 8.0.
  int capability() const { return computeCapability; }
  int multiprocessors() const { return processors; }

  /// The calling thread's calls go to this GPU from now on.
  Status enter() const { return check(table, table.setContext(context), "entering " + text); }
  /// Lets kernels and copies of this GPU touch memory of `other`.
  Status reach(const Gpu &other) const;
  /// Waits for all its work, whichever thread enqueued it.
  Status drain() const;

  /// An error on a GPU fails all its ranks at once. If instructions take turns, the rank whose turn it was is to blame,
  /// and the others keep silent until it has reported: blame() returns to them when forgive() was called or a second
  /// has passed.
  std::mutex &turns() const { return turn; }
  void blame(const void *rank) const;
  void forgive() const;

  Expected<Stream> makeStream() const;
  Expected<Event> makeEvent() const;
  Expected<DeviceMemory> allocate(int64_t bytes) const;
  Expected<PinnedMemory> allocatePinned(int64_t bytes) const;

private:
  Gpu(const Driver &table, DeviceNumber number) : table(table), number(number) {}

  const Driver &table;
  const DeviceNumber number;
  ContextHandle context = nullptr;
  std::string text;
  CardUuid cardUuid{};
  int computeCapability = 0, processors = 1;
  mutable std::mutex turn;
  mutable std::atomic<const void *> culprit{nullptr};
};

} // namespace hpc::cuda
