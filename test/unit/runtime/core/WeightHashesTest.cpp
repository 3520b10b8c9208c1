// The hash of every chunk is checked, in whatever slices a tensor is read: a weight of three and a half chunks, of which one byte
// is flipped in each chunk in turn.
#include "runtime/backend/host/HostDevice.h"
#include "runtime/base/Hash.h"
#include "runtime/core/BindingLoader.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

namespace {

constexpr int64_t rows = 896, columns = 1024, bytes = rows * columns * 4;
static_assert(bytes == hashChunkBytes * 7 / 2);

plan::Slice slice(std::vector<int64_t> view, std::vector<plan::ByCoord> start, std::vector<plan::ByCoord> extent,
                  std::vector<int64_t> box) {
  return {std::move(view), std::move(start), std::move(extent), std::move(box)};
}

struct Layout {
  const char *name;
  plan::Slice slice;
};

/// Cut for two ranks: not at all, by rows, by columns, by few columns (no long runs), by an inner dim of three, unevenly with padding.
std::vector<Layout> layouts() {
  auto two = [](int64_t a, int64_t b) { return TinyPlan::byRank(a, b); };
  return {{"whole", slice({rows, columns}, {0, 0}, {rows, columns}, {rows, columns})},
          {"rows", slice({rows, columns}, {two(0, 448), 0}, {448, columns}, {448, columns})},
          {"columns", slice({rows, columns}, {0, two(0, 512)}, {rows, 512}, {rows, 512})},
          {"three columns", slice({rows, columns}, {0, two(5, 700)}, {rows, 3}, {rows, 3})},
          {"heads", slice({7, 128, columns}, {0, two(0, 64), 0}, {7, 64, columns}, {7, 64, columns})},
          {"uneven rows", slice({rows, columns}, {two(0, 600), 0}, {two(600, 296), columns}, {600, columns})}};
}

/// Whether the slice holds an element of a chunk at a coordinate, by going through all of them.
bool holds(const plan::Slice &cut, int64_t coordinate, size_t chunk) {
  std::vector<int64_t> index(cut.view.size());
  std::function<bool(size_t, int64_t)> any = [&](size_t dim, int64_t element) -> bool {
    if (dim == cut.view.size())
      return size_t(element * 4 / hashChunkBytes) == chunk;
    for (int64_t i = 0; i < cut.extent[dim].at(coordinate, 0, 2); ++i)
      if (any(dim + 1, element * cut.view[dim] + cut.start[dim].at(coordinate, 0, 2) + i))
        return true;
    return false;
  };
  return any(0, 0);
}

struct OneWeight {
  TinyPlan tiny;
  std::string data = std::string(size_t(bytes), 'w');

  OneWeight() {
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = char(i * 7 % 251);
    plan::Weight weight;
    weight.name = "big";
    weight.shape = {rows, columns};
    weight.file = 0;
    weight.bytes = bytes;
    weight.hashes = hashChunks(data.data(), bytes);
    tiny.plan.weights = {weight};
  }

  plan::Stage stageOf(const plan::Slice &cut) const {
    plan::Stage stage;
    plan::Buffer buffer;
    buffer.lifetime = plan::Lifetime::Session;
    buffer.box = cut.box;
    buffer.bytes = 4;
    for (int64_t size : cut.box)
      buffer.bytes *= size;
    buffer.offset = 0;
    stage.sessionBytes = (buffer.bytes + 63) / 64 * 64;
    stage.buffers = {buffer};
    stage.bindings = {{0, cut, plan::StoredWeight{0}, "", {}}};
    return stage;
  }

  /// By one thread through load(), or by several in parts.
  std::string load(const plan::Slice &cut, int64_t coordinate, int64_t threads) const {
    const plan::Stage stage = stageOf(cut);
    Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, ""});
    host::HostDevice device;
    if (threads == 0) {
      std::vector<std::byte> target(size_t(stage.buffers[0].bytes));
      return weights->load(stage.bindings[0], stage.buffers[0], {coordinate, 0, 2}, device, target.data()).text();
    }
    Expected<Arena> arena = Arena::create(stage, device, /*poison=*/false);
    Expected<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads, /*spins=*/false);
    return loadBindings(*weights, stage, {coordinate, 0, 2}, device, *arena, **pool, 0).text();
  }
};

} // namespace

TEST(WeightHashes, EveryChunkThatARankReadsIsChecked) {
  OneWeight one;
  for (size_t chunk = 0; chunk < 4; ++chunk)
    for (size_t within : {size_t(0), size_t(300007)}) {
      std::string damaged = one.data;
      damaged[chunk * size_t(hashChunkBytes) + within] ^= 1;
      one.tiny.folder.write("weights.bin", damaged);
      for (const Layout &layout : layouts())
        for (int64_t coordinate : {0, 1})
          for (int64_t threads : {0, 2}) {
            const std::string error = one.load(layout.slice, coordinate, threads);
            if (holds(layout.slice, coordinate, chunk))
              EXPECT_THAT(error, HasSubstr("(chunk " + std::to_string(chunk) + ") are not those")) << layout.name << " " << coordinate;
            else
              EXPECT_FALSE(testing::Value(error, HasSubstr("are not those"))) << layout.name << " " << coordinate << ": " << error;
          }
    }
}

// One hash a MiB, of each MiB alone: a flipped byte changes the hash of its chunk and no other.
TEST(WeightHashes, EachChunkHasItsOwn) {
  OneWeight one;
  const std::vector<uint64_t> hashes = hashChunks(one.data.data(), bytes);
  ASSERT_EQ(hashes.size(), 4u);
  for (size_t chunk = 0; chunk < 4; ++chunk) {
    const int64_t begin = int64_t(chunk) * hashChunkBytes, end = std::min(begin + hashChunkBytes, bytes);
    EXPECT_EQ(hashes[chunk], hashBytes(one.data.data() + begin, end - begin));
    std::string changed = one.data;
    changed[size_t(end - 1)] ^= 1;
    const std::vector<uint64_t> others = hashChunks(changed.data(), bytes);
    for (size_t each = 0; each < 4; ++each)
      EXPECT_EQ(others[each] != hashes[each], each == chunk);
  }
}
