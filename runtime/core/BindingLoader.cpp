// Buffers are cut into parts, which threads take one by one: a part is checked and then copied while it is in the caches.
#include "runtime/core/BindingLoader.h"

#include <algorithm>
#include <mutex>

namespace hpc {

namespace {

constexpr int64_t partBytes = int64_t(2) << 20; ///< a huge page

class Loader {
public:
  Loader(const Weights &weights, const plan::Stage &stage, Place place, Device &device, const Arena &arena)
      : weights(weights), stage(stage), place(place), device(device), arena(arena) {
    for (size_t i = 0; i < stage.bindings.size(); ++i) {
      const plan::Buffer &buffer = stage.buffers[size_t(stage.bindings[i].buffer)];
      std::optional<Weights::Parts> cut;
      if (device.worksInHostMemory())
        cut = weights.partsOf(stage.bindings[i], buffer, place);
      if (!cut) {
        uncut.push_back(i);
        continue;
      }
      for (int64_t begin = 0; begin < buffer.bytes; begin += partBytes)
        parts.push_back({i, tensors.size(), begin, std::min(partBytes, buffer.bytes - begin)});
      tensors.push_back(std::move(*cut));
    }
  }

  Status load(ThreadPool &threads, double start) {
    // Scales first, which threads of several ranks make side by side: whole weights, and each once.
    const int64_t all = int64_t(stage.bindings.size());
    HPC_RETURN_IF_ERROR(threads.run(all, 1, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const size_t binding = size_t((int64_t(start * double(all)) + i) % all);
        note({binding, 0}, weights.makeScales(stage.bindings[binding]));
      }
      return Status::success();
    }));
    for (size_t i : uncut) {
      const plan::Binding &binding = stage.bindings[i];
      note({i, 0}, weights.load(binding, stage.buffers[size_t(binding.buffer)], place, device,
                                arena.buffer(binding.buffer, 0)));
    }
    const int64_t count = int64_t(parts.size()), first = int64_t(start * double(count));
    // Errors are noted, and the rest is read all the same: which one is told must not be chance.
    HPC_RETURN_IF_ERROR(threads.run(count, 1, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        loadPart(size_t((first + i) % count));
      return Status::success();
    }));
    return error;
  }

private:
  struct Part {
    size_t binding, tensor;
    int64_t begin, bytes;
  };

  void loadPart(size_t index) {
    const Part &part = parts[index];
    std::byte *target = arena.buffer(stage.bindings[part.binding].buffer, 0) + part.begin;
    note({part.binding, index}, weights.loadPart(tensors[part.tensor], part.begin, part.bytes, target));
  }
  /// `where`: binding, part.
  void note(std::pair<size_t, size_t> where, Status status) {
    if (status.ok())
      return;
    std::lock_guard<std::mutex> lock(mutex);
    if (!error.ok() && where >= firstPlace)
      return;
    error = std::move(status);
    firstPlace = where;
  }

  const Weights &weights;
  const plan::Stage &stage;
  const Place place;
  Device &device;
  const Arena &arena;
  std::vector<Weights::Parts> tensors;
  std::vector<Part> parts;
  std::vector<size_t> uncut;
  std::mutex mutex; ///< of the two below
  Status error;
  std::pair<size_t, size_t> firstPlace;
};

} // namespace

Status loadBindings(const Weights &weights, const plan::Stage &stage, Place place, Device &device, const Arena &arena,
                    ThreadPool &threads, double start) {
  return Loader(weights, stage, place, device, arena).load(threads, start);
}

} // namespace hpc
