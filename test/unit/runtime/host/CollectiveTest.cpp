// Every collective for every type, reduction, group size and count against brute force, in place and not, done at once
// and posted; and groups over several axes.
#include "runtime/backend/host/HostCommunicator.h"
#include "runtime/base/HalfFloat.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace hpc;
using plan::CollectiveKind;
using testing::HasSubstr;

namespace {

using Bytes = std::vector<std::byte>;

plan::Plan planOf(std::vector<plan::Axis> axes, plan::Collective collective) {
  plan::Plan plan;
  plan.axes = std::move(axes);
  plan.stages.resize(1);
  plan.stages[0].programs = {{plan::ProgramKind::Forward, 0, {{std::move(collective), "node"}}}};
  return plan;
}

/// What the ranks of a one-stage plan that has one collective get.
struct Outcome {
  std::vector<Bytes> targets;
  std::vector<Status> statuses;
};

/// One rank's side of a collective.
struct Side {
  const plan::Collective &collective;
  host::HostCommunicator communicator;
  int64_t position = 0, group = 0; ///< that it takes from; what prepare returned
  Bytes source, target;

  Side(host::World &world, const plan::Collective &collective, int64_t rank, Bytes given, int64_t targetBytes)
      : collective(collective), communicator(world, {rank, 0, rank}, 1), source(std::move(given)) {
    if (inPlace())
      target = source;
    target.resize(std::max(inPlace() ? source.size() : 0, size_t(targetBytes)), std::byte{0xff});
  }
  bool inPlace() const { return collective.src.buffer == collective.dst.buffer; }
  const std::byte *from() const { return inPlace() ? target.data() : source.data(); }

  Status prepare() {
    Expected<int64_t> prepared = communicator.prepare(collective);
    group = prepared.ok() ? *prepared : 0;
    return prepared.status();
  }
  Status run() { return communicator.collective(collective, group, from(), target.data(), position); }
  Status post() { return communicator.post(collective, group, from(), target.data(), position, 0); }
};

/// `posted`: all ranks post on one thread before any waits, so a post that waited would hang. Else one thread a rank.
Outcome runCollective(const plan::Plan &plan, const std::vector<Bytes> &sources, int64_t targetBytes,
                      bool posted = false) {
  const plan::Collective &collective = std::get<plan::Collective>(plan.stages[0].programs[0].instructions[0].action);
  host::World world(plan);
  std::vector<std::unique_ptr<Side>> sides;
  Outcome outcome;
  for (size_t rank = 0; rank < sources.size(); ++rank) {
    sides.push_back(std::make_unique<Side>(world, collective, int64_t(rank), sources[rank], targetBytes));
    sides.back()->position = collective.source.at(int64_t(rank), 0, plan.ranksPerStage());
    outcome.statuses.push_back(sides.back()->prepare());
  }
  auto note = [&](size_t rank, Status status) {
    if (!status.ok())
      world.fail(status);
    if (outcome.statuses[rank].ok())
      outcome.statuses[rank] = std::move(status);
  };
  const int times = !outcome.statuses[0].ok() ? 0 : sides[0]->inPlace() ? 1 : 2; // in place the source is gone then
  for (int time = 0; time < times && posted; ++time) {
    for (size_t rank = 0; rank < sides.size(); ++rank)
      note(rank, sides[rank]->post());
    for (size_t rank = 0; rank < sides.size(); ++rank)
      note(rank, sides[rank]->communicator.wait(0));
  }
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < sides.size() && !posted; ++rank)
    threads.emplace_back([&, rank] {
      for (int time = 0; time < times; ++time)
        note(rank, sides[rank]->run());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t rank = 0; rank < sides.size(); ++rank) {
    EXPECT_EQ(sides[rank]->source, sources[rank]) << "a source was written";
    sides[rank]->target.resize(size_t(targetBytes));
    outcome.targets.push_back(std::move(sides[rank]->target));
  }
  return outcome;
}

/// Values that make order and NaN matter: sums of floats depend on their order.
template <typename T> T value(int64_t rank, int64_t i) {
  if constexpr (std::is_floating_point_v<T>) {
    if (i % 7 == 3 && rank == i % 2)
      return std::numeric_limits<T>::quiet_NaN();
    if (i % 7 == 5)
      return (rank + i) % 2 ? T(-0.0) : T(0.0); // which zero is the largest?
    return T(rank == 0 ? 1e8 : 1) * T((i + 1) % 13) + T(rank) * T(0.3) - T(i % 3);
  } else {
    return T((i * 2654435761u + rank * 40503u) >> 3);
  }
}

template <typename T> T reduce(ReduceKind kind, T a, T b) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  if (kind == ReduceKind::Sum)
    return T(Wide(a) + Wide(b));
  if (kind == ReduceKind::Prod)
    return T(Wide(a) * Wide(b));
  if (a != a || b != b)
    return std::is_floating_point_v<T> ? T(NAN) : a;
  if (std::is_floating_point_v<T> && a == b)
    return std::signbit(double(a)) == (kind == ReduceKind::Min) ? a : b;
  return kind == ReduceKind::Max ? std::max(a, b) : std::min(a, b);
}

template <typename T> Bytes toBytes(const std::vector<T> &values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Equal bit by bit, but that any NaN equals any other.
template <typename T> void expectSame(const Bytes &actual, const std::vector<T> &expected, const std::string &what) {
  ASSERT_EQ(actual.size(), expected.size() * sizeof(T)) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    T got;
    std::memcpy(&got, actual.data() + i * sizeof(T), sizeof(T));
    if (expected[i] != expected[i])
      ASSERT_TRUE(got != got) << what << " at " << i;
    else
      ASSERT_EQ(std::memcmp(&got, &expected[i], sizeof(T)), 0) << what << " at " << i << ": " << +got;
  }
}

/// One collective over one axis `tp` of `size` ranks.
template <typename T>
void check(CollectiveKind kind, ReduceKind reduceKind, DType dtype, int64_t size, int64_t count, bool inPlace,
           bool posted) {
  bool sourceBlocks = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
  bool targetBlocks = kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll;
  int64_t sourceCount = count * (sourceBlocks ? size : 1), targetCount = count * (targetBlocks ? size : 1);
  std::vector<std::vector<T>> sources(static_cast<size_t>(size));
  std::vector<Bytes> bytes;
  for (int64_t r = 0; r < size; ++r) {
    for (int64_t i = 0; i < sourceCount; ++i)
      sources[size_t(r)].push_back(dtype == DType::Bool ? T((i + r) % 3 == 0) : value<T>(r, i));
    bytes.push_back(toBytes(sources[size_t(r)]));
  }
  plan::Collective collective;
  collective.kind = kind;
  collective.reduce = reduceKind;
  collective.axes = {"tp"};
  collective.dtype = dtype;
  collective.count = count;
  collective.src = {0, 0};
  collective.dst = {inPlace ? 0 : 1, 0};
  collective.source.values.clear();
  for (int64_t r = 0; r < size; ++r)
    collective.source.values.push_back((r + 1) % size);
  Outcome outcome = runCollective(planOf({{"tp", size}}, collective), bytes, targetCount * int64_t(sizeof(T)), posted);

  auto reduced = [&](int64_t i) {
    T result = sources[0][size_t(i)];
    for (int64_t j = 1; j < size; ++j)
      result = reduce(reduceKind, result, sources[size_t(j)][size_t(i)]);
    return result;
  };
  for (int64_t r = 0; r < size; ++r) {
    ASSERT_TRUE(outcome.statuses[size_t(r)].ok()) << outcome.statuses[size_t(r)].text();
    std::vector<T> expected;
    for (int64_t i = 0; i < targetCount; ++i)
      switch (kind) {
      case CollectiveKind::AllReduce:
        expected.push_back(reduced(i));
        break;
      case CollectiveKind::ReduceScatter:
        expected.push_back(reduced(r * count + i));
        break;
      case CollectiveKind::AllGather:
        expected.push_back(sources[size_t(i / count)][size_t(i % count)]);
        break;
      case CollectiveKind::AllToAll:
        expected.push_back(sources[size_t(i / count)][size_t(r * count + i % count)]);
        break;
      case CollectiveKind::Permute:
        expected.push_back(sources[size_t((r + 1) % size)][size_t(i)]);
        break;
      }
    expectSame(outcome.targets[size_t(r)], expected,
               "kind " + std::to_string(int(kind)) + " reduce " + std::to_string(int(reduceKind)) + " " + name(dtype) +
                   " size " + std::to_string(size) + " count " + std::to_string(count) + " rank " + std::to_string(r));
  }
}

template <typename T> void checkAll(DType dtype) {
  for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                              CollectiveKind::AllToAll, CollectiveKind::Permute})
    for (ReduceKind reduceKind : allReduceKinds) {
      bool reduces = kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
      bool is16 = dtype == DType::F16 || dtype == DType::BF16; // see SixteenBitFloatsAreRoundedOnce
      bool skip =
          reduces ? (dtype == DType::Bool && reduceKind == ReduceKind::Sum) || is16 : reduceKind != ReduceKind::Sum;
      for (int64_t size = 1; size <= 5 && !skip; ++size)
        for (int64_t count : {0, 1, 5, 33})
          for (bool inPlace : {false, true})
            for (bool posted : {false, true})
              check<T>(kind, reduceKind, dtype, size, count, inPlace, posted);
    }
}

} // namespace

TEST(Collective, F32) { checkAll<float>(DType::F32); }
TEST(Collective, F64) { checkAll<double>(DType::F64); }
TEST(Collective, I64) { checkAll<int64_t>(DType::I64); }
TEST(Collective, I32) { checkAll<int32_t>(DType::I32); }
TEST(Collective, I16) { checkAll<int16_t>(DType::I16); }
TEST(Collective, I8) { checkAll<int8_t>(DType::I8); }
TEST(Collective, U8) { checkAll<uint8_t>(DType::U8); }
TEST(Collective, U16) { checkAll<uint16_t>(DType::U16); }
TEST(Collective, U32) { checkAll<uint32_t>(DType::U32); }
TEST(Collective, U64) { checkAll<uint64_t>(DType::U64); }
TEST(Collective, Bool) { checkAll<uint8_t>(DType::Bool); }
TEST(Collective, F16Moves) { checkAll<uint16_t>(DType::F16); }
TEST(Collective, BF16Moves) { checkAll<uint16_t>(DType::BF16); }

TEST(Collective, LargerThanABlock) {
  for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter})
    for (bool inPlace : {false, true})
      for (bool posted : {false, true})
        check<float>(kind, ReduceKind::Sum, DType::F32, 3, 10007, inPlace, posted);
}

// Large results are written past the caches, by whole lines where they are whole.
TEST(Collective, LargerThanTheCaches) {
  for (bool inPlace : {false, true})
    for (bool posted : {false, true})
      check<float>(CollectiveKind::AllReduce, ReduceKind::Sum, DType::F32, 2, (4 << 20) + 5, inPlace, posted);
}

// 16-bit floats: 1 + 2^-9 three times is more than 1 only if the sum is not rounded in between.
TEST(Collective, SixteenBitFloatsAreRoundedOnce) {
  struct Format {
    DType dtype;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
    float small; ///< a quarter of the last place of 1
  };
  for (const Format &format : {Format{DType::F16, halfToFloat, floatToHalf, 0x1p-12f},
                               Format{DType::BF16, bfloatToFloat, floatToBfloat, 0x1p-9f}})
    for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter})
      for (bool inPlace : {false, true})
        for (int64_t count : {1, 4099}) {
          const int64_t size = 4, all = kind == CollectiveKind::AllReduce ? count : count * size;
          std::vector<Bytes> sums, maxima;
          for (int64_t rank = 0; rank < size; ++rank) {
            std::vector<uint16_t> values;
            for (int64_t i = 0; i < all; ++i)
              values.push_back(format.narrow((rank ? format.small : 1.0f) * float(1 << i % 3)));
            sums.push_back(toBytes(values));
            values[0] = format.narrow(rank == 2 ? NAN : float(rank));
            maxima.push_back(toBytes(values));
          }
          plan::Collective collective;
          collective.kind = kind;
          collective.axes = {"tp"};
          collective.dtype = format.dtype;
          collective.count = count;
          collective.src = {0, 0};
          collective.dst = {inPlace ? 0 : 1, 0};
          Outcome outcome = runCollective(planOf({{"tp", size}}, collective), sums, count * 2);
          for (int64_t rank = 0; rank < size; ++rank)
            for (int64_t i = 0; i < count; ++i) {
              uint16_t got;
              std::memcpy(&got, outcome.targets[size_t(rank)].data() + 2 * i, 2);
              int64_t global = kind == CollectiveKind::AllReduce ? i : rank * count + i;
              ASSERT_EQ(format.widen(got), (1 + 4 * format.small) * float(1 << global % 3)) << name(format.dtype);
            }
          collective.reduce = ReduceKind::Max;
          outcome = runCollective(planOf({{"tp", size}}, collective), maxima, count * 2);
          uint16_t got;
          std::memcpy(&got, outcome.targets[0].data(), 2);
          EXPECT_TRUE(std::isnan(format.widen(got)));
        }
}

TEST(Collective, WhatHasNoSumIsRefused) {
  plan::Collective collective;
  collective.axes = {"tp"};
  collective.dtype = DType::Bool;
  Outcome outcome = runCollective(planOf({{"tp", 1}}, collective), {Bytes()}, 0);
  EXPECT_THAT(outcome.statuses[0].text(), HasSubstr("error[unsupported]: a sum of bool over ranks has no meaning"));
}

// Mesh dp=2, tp=3: groups over dp, tp, both, and both in the other order (which changes positions, not members).
TEST(Collective, GroupsOverSeveralAxes) {
  struct Case {
    std::vector<std::string> axes;
    std::function<std::vector<int>(int)> members; ///< of the group of a rank, in order
  };
  std::vector<Case> cases = {
      {{"dp"},
       [](int r) {
         return std::vector<int>{r % 3, r % 3 + 3};
       }},
      {{"tp"},
       [](int r) {
         return std::vector<int>{r / 3 * 3, r / 3 * 3 + 1, r / 3 * 3 + 2};
       }},
      {{"dp", "tp"}, [](int) { return std::vector<int>{0, 1, 2, 3, 4, 5}; }},
      {{"tp", "dp"}, [](int) { return std::vector<int>{0, 3, 1, 4, 2, 5}; }},
      {{}, [](int r) { return std::vector<int>{r}; }},
  };
  for (const Case &test : cases) {
    plan::Collective collective;
    collective.kind = CollectiveKind::AllGather;
    collective.axes = test.axes;
    collective.dtype = DType::U8;
    collective.count = 1;
    collective.src = {0, 0};
    collective.dst = {1, 0};
    std::vector<Bytes> sources;
    for (int r = 0; r < 6; ++r)
      sources.push_back({std::byte(r)});
    Outcome outcome =
        runCollective(planOf({{"dp", 2}, {"tp", 3}}, collective), sources, int64_t(test.members(0).size()));
    for (int r = 0; r < 6; ++r) {
      std::vector<int> members = test.members(r);
      ASSERT_EQ(outcome.targets[size_t(r)].size(), members.size());
      for (size_t j = 0; j < members.size(); ++j)
        EXPECT_EQ(int(outcome.targets[size_t(r)][j]), members[j]) << "rank " << r;
    }
  }
}

// A post that waited for the others would hang here: each rank posts three before any rank waits, and rank 0 waits for
// what comes last while the others still need a message from it.
TEST(Collective, PostsDoNotWait) {
  plan::Collective collective;
  collective.axes = {"tp"};
  collective.dtype = DType::I32;
  collective.count = 1;
  collective.src = collective.dst = {0, 0};
  constexpr int ranks = 3, posts = 3;
  plan::Plan plan = planOf({{"tp", ranks}}, collective);
  host::World world(plan);
  std::vector<std::unique_ptr<host::HostCommunicator>> communicators;
  std::vector<int64_t> groups;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_unique<host::HostCommunicator>(world, RankPlace{rank, 0, rank}, posts));
    groups.push_back(*communicators.back()->prepare(collective));
  }
  int32_t values[ranks][posts];
  for (int round = 0; round < 3; ++round) { // one thread for all ranks: whatever waits, waits for ever
    for (int rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < posts; ++i) {
        values[rank][i] = rank + 10 * i + round;
        auto *place = reinterpret_cast<std::byte *>(&values[rank][i]);
        ASSERT_TRUE(communicators[rank]->post(collective, groups[rank], place, place, 0, i).ok());
      }
    for (int rank = 0; rank < ranks; ++rank)
      for (int i = posts; i-- > 0;) {
        ASSERT_TRUE(communicators[rank]->wait(i).ok());
        EXPECT_EQ(values[rank][i], 3 + 30 * i + 3 * round);
      }
  }
  auto *place = reinterpret_cast<std::byte *>(&values[0][0]);
  ASSERT_TRUE(communicators[0]->post(collective, groups[0], place, place, 0, 0).ok());
  EXPECT_THAT(communicators[0]->post(collective, groups[0], place, place, 0, 0).message(), HasSubstr("posted again"));
}

TEST(Collective, AnUnknownAxisIsAnError) {
  plan::Collective collective;
  collective.axes = {"pp"};
  Outcome outcome = runCollective(planOf({{"tp", 2}}, collective), {Bytes(4), Bytes(4)}, 4);
  EXPECT_THAT(outcome.statuses[0].message(), HasSubstr("axis 'pp'"));
}
