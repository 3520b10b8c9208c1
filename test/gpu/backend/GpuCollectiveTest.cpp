// Every collective of ranks on one card and of ranks on a card each, for every type, reduction, group size and count,
// in place and not, done at once and posted, as the host does it; messages; posts that must not wait.
#include "runtime/backend/cuda/LocalControlPlane.h"
#include "runtime/backend/cuda/NcclCommunicator.h"
#include "runtime/backend/cuda/PeerCommunicator.h"
#include "runtime/backend/host/Exchange.h"
#include "runtime/base/HalfFloat.h"
#include "test/gpu/backend/GpuFixture.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

using namespace hpc;
using plan::CollectiveKind;
using testing::HasSubstr;

namespace {

using Bytes = std::vector<std::byte>;

plan::Plan planOf(std::vector<plan::Axis> axes, std::vector<std::string> over) {
  plan::Plan plan;
  plan.axes = std::move(axes);
  plan.stages.resize(1);
  plan.stages[0].requests.assign(12, 1);
  plan::Collective collective;
  collective.axes = std::move(over);
  plan.stages[0].programs = {{plan::ProgramKind::Forward, 0, {{collective, "node"}}}};
  return plan;
}

/// Who brings the ranks together: they themselves on one card, NCCL, or NCCL with sums in the order of the ranks.
enum Engine { Peers, ByNccl, ByNcclInOrder };

/// Ranks, all used by the test's own thread or by one thread each.
struct Ranks {
  static constexpr int64_t requests = 12;
  const plan::Plan plan;
  const Engine engine;
  cuda::Driver driver = *cuda::loadDriver(HPC_STANDIN_FOLDER);
  cuda::Nccl nccl = *cuda::loadNccl(HPC_STANDIN_FOLDER);
  std::vector<std::unique_ptr<cuda::Gpu>> gpus;
  cuda::ReduceKernels reductions{driver};
  std::shared_ptr<cuda::PeerWorld> peers;
  std::unique_ptr<cuda::LocalControlPlane> plane;
  std::unique_ptr<cuda::NcclWorld> ncclWorld;
  std::vector<std::unique_ptr<cuda::CudaDevice>> devices;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<std::byte *> memory; ///< 4 KiB of source and 4 KiB of target each
  static constexpr int64_t half = 4096;

  explicit Ranks(plan::Plan given, Engine engine = Peers)
      : plan(std::move(given)), engine(engine), peers(std::make_shared<cuda::PeerWorld>(plan)) {
    const int64_t size = plan.worldSize();
    if (engine != Peers) {
      standin::Settings settings;
      settings.devices = int(size);
      settings.longestDelay = 20;
      standin::configure(settings);
    }
    for (int64_t i = 0; i < (engine == Peers ? 1 : size); ++i)
      gpus.push_back(std::move(*cuda::Gpu::open(driver, int(i))));
    plane = std::make_unique<cuda::LocalControlPlane>(peers, RankRange{0, size});
    EXPECT_TRUE(plane->join().ok());
    ncclWorld = std::make_unique<cuda::NcclWorld>(nccl, plan, peers->world(), RankRange{0, size}, *plane);
    std::vector<cuda::CardId> cards(static_cast<size_t>(size));
    for (size_t i = 0; i < cards.size(); ++i)
      cards[i][0] = char(i);
    EXPECT_TRUE(ncclWorld->renew(cards).ok());
    communicators.resize(size_t(size));
    for (int64_t rank = 0; rank < size; ++rank) {
      devices.push_back(std::move(*cuda::CudaDevice::create(gpu(size_t(rank)), nullptr, nullptr, reductions, onStandIn())));
      memory.push_back(*devices.back()->allocate(plan::Space::Device, 2 * half, std::byte{0xff}));
    }
    onEach(true, [&](size_t rank) { // whoever joins waits for the others
      const RankPlace place{int64_t(rank), 0, int64_t(rank)};
      if (engine == Peers)
        communicators[rank] =
            std::move(*cuda::PeerCommunicator::create(peers, *devices[rank], reductions, place, requests));
      else
        communicators[rank] = std::move(*cuda::NcclCommunicator::create(
            nccl, *ncclWorld, *plane, plan, *devices[rank], reductions, place, requests, engine == ByNcclInOrder));
      return Status::success();
    });
  }
  const cuda::Gpu &gpu(size_t rank) const { return *gpus[engine == Peers ? 0 : rank]; }
  size_t size() const { return devices.size(); }
  static SliceCopy whole(size_t bytes) {
    return SliceCopy({{int64_t(bytes)}, {0}, {int64_t(bytes)}, {int64_t(bytes)}}, 1, {});
  }
  void upload(size_t rank, int64_t at, const Bytes &content) {
    if (!content.empty())
      EXPECT_TRUE(devices[rank]->gather(whole(content.size()), content.data(), memory[rank] + at).ok());
  }
  Bytes download(size_t rank, int64_t at, size_t bytes) {
    Bytes content(bytes);
    SliceCopy copy = whole(std::max<size_t>(bytes, 1));
    if (bytes > 0)
      EXPECT_TRUE(devices[rank]->scatter(copy, memory[rank] + at, content.data()).ok());
    EXPECT_TRUE(devices[rank]->finish().ok());
    return content;
  }
  /// One after the other on one thread: posts that waited would hang. Or one thread a rank.
  void onEach(bool ownThreads, const std::function<Status(size_t rank)> &work) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < size(); ++rank) {
      auto checked = [&, rank] {
        Status entered = gpu(rank).enter(), status = work(rank);
        EXPECT_TRUE(entered.ok() && status.ok()) << status.text();
      };
      if (ownThreads)
        threads.emplace_back(checked);
      else
        checked();
    }
    for (std::thread &thread : threads)
      thread.join();
  }
};

/// Bytes that make order, signs of zeros and NaN matter in every type.
Bytes content(DType dtype, int64_t elements, int64_t rank) {
  Bytes bytes(size_t(elements * byteSize(dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    std::byte *at = bytes.data() + i * byteSize(dtype);
    double number = i % 7 == 3 && rank == i % 2 ? NAN
                    : i % 7 == 5                ? ((rank + i) % 2 ? -0.0 : 0.0)
                                 : (rank == 0 ? 1e4 : 1) * double((i + 1) % 13) + double(rank) * 0.3 - double(i % 3);
    float narrow = float(number);
    uint16_t bits = dtype == DType::F16 ? floatToHalf(narrow) : floatToBfloat(narrow);
    uint64_t whole = dtype == DType::Bool ? (i + rank) % 3 == 0 : uint64_t(i * 2654435761u + rank * 40503u) >> 3;
    const void *from = dtype == DType::F64                           ? static_cast<const void *>(&number)
                       : dtype == DType::F32                         ? &narrow
                       : dtype == DType::F16 || dtype == DType::BF16 ? static_cast<const void *>(&bits)
                                                                     : &whole;
    std::memcpy(at, from, size_t(byteSize(dtype)));
  }
  return bytes;
}

/// Any NaN is as good as another.
void canonical(DType dtype, Bytes &bytes) {
  auto each = [&](auto type, auto isNan) {
    using T = decltype(type);
    for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + i, sizeof(T));
      if (isNan(value))
        std::memset(bytes.data() + i, 0xff, sizeof(T));
    }
  };
  if (dtype == DType::F32)
    each(float(), [](float x) { return std::isnan(x); });
  else if (dtype == DType::F64)
    each(double(), [](double x) { return std::isnan(x); });
  else if (dtype == DType::F16)
    each(uint16_t(), [](uint16_t x) { return std::isnan(halfToFloat(x)); });
  else if (dtype == DType::BF16)
    each(uint16_t(), [](uint16_t x) { return std::isnan(bfloatToFloat(x)); });
}

/// Whether two results are the same but for the order of a sum or product: 8 bits less than the type has.
bool isNear(DType dtype, const Bytes &got, const Bytes &wanted) {
  const double bound = dtype == DType::F64   ? 0x1p-44
                       : dtype == DType::F32 ? 0x1p-16
                       : dtype == DType::F16 ? 0x1p-8
                                             : 0x1p-5;
  auto value = [&](const Bytes &bytes, size_t i) {
    double wide;
    float narrow;
    uint16_t bits;
    const std::byte *at = bytes.data() + i * size_t(byteSize(dtype));
    std::memcpy(&bits, at, 2);
    if (dtype == DType::F64)
      return std::memcpy(&wide, at, 8), wide;
    if (dtype == DType::F32)
      return std::memcpy(&narrow, at, 4), double(narrow);
    return double(dtype == DType::F16 ? halfToFloat(bits) : bfloatToFloat(bits));
  };
  for (size_t i = 0; i < wanted.size() / size_t(byteSize(dtype)); ++i) {
    const double a = value(got, i), b = value(wanted, i);
    if (std::isnan(a) != std::isnan(b) || (!std::isnan(a) && a != b && !(std::abs(a - b) <= bound * std::abs(b))))
      return false;
  }
  return true;
}

void check(Ranks &ranks, plan::Collective collective, bool inPlace, bool posted) {
  collective.request = posted ? 0 : -1;
  collective.source.values.clear();
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    collective.source.values.push_back(int64_t((rank + 1) % ranks.size()));
  const int64_t size = int64_t(ranks.size());
  collective.src = {0, 0};
  collective.dst = {inPlace ? 0 : 1, 0};
  const int64_t sourceBytes = host::sourceBytes(collective, size), targetBytes = host::targetBytes(collective, size);
  std::vector<Bytes> sources, targets;
  std::vector<host::Share> shares;
  for (int64_t rank = 0; rank < size; ++rank) {
    sources.push_back(content(collective.dtype, sourceBytes / byteSize(collective.dtype), rank));
    targets.emplace_back(size_t(targetBytes));
  }
  for (int64_t rank = 0; rank < size; ++rank)
    shares.push_back({sources[size_t(rank)].data(), targets[size_t(rank)].data(), (rank + 1) % size});
  host::Reduction reduction;
  if (host::reduces(collective.kind))
    reduction = *host::findReduction(collective.reduce, collective.dtype);
  for (int64_t rank = 0; rank < size; ++rank)
    host::exchange(collective, reduction, shares, rank);

  const int64_t targetAt = inPlace ? 0 : Ranks::half;
  std::vector<int64_t> groups(static_cast<size_t>(size));
  ranks.onEach(false, [&](size_t rank) {
    ranks.upload(rank, 0, sources[rank]);
    Expected<int64_t> group = ranks.communicators[rank]->prepare(collective);
    groups[rank] = group.ok() ? *group : 0;
    return group.status();
  });
  auto from = [&](size_t rank) { return ranks.memory[rank]; };
  if (posted) {
    ranks.onEach(false, [&](size_t rank) {
      return ranks.communicators[rank]->post(collective, groups[rank], from(rank), from(rank) + targetAt,
                                             shares[rank].sourcePosition, 0);
    });
    ranks.onEach(false, [&](size_t rank) { return ranks.communicators[rank]->wait(0); });
  } else {
    ranks.onEach(true, [&](size_t rank) {
      return ranks.communicators[rank]->collective(collective, groups[rank], from(rank), from(rank) + targetAt,
                                                   shares[rank].sourcePosition);
    });
  }
  ranks.onEach(false, [&](size_t rank) {
    Bytes got = ranks.download(rank, targetAt, size_t(targetBytes));
    canonical(collective.dtype, got);
    canonical(collective.dtype, targets[rank]);
    const bool isInexact = ranks.engine == ByNccl && isFloat(collective.dtype) && host::reduces(collective.kind) &&
                           (collective.reduce == ReduceKind::Sum || collective.reduce == ReduceKind::Prod);
    EXPECT_TRUE(got == targets[rank] || (isInexact && isNear(collective.dtype, got, targets[rank])))
        << "engine " << ranks.engine << ", kind " << int(collective.kind) << " " << name(collective.reduce) << " of "
        << name(collective.dtype) << ", " << collective.count << " elements, " << size << " ranks, in place " << inPlace
        << ", posted " << posted << ", rank " << rank;
    return Status::success();
  });
}

} // namespace

TEST_F(Gpu, CollectivesAsOnTheHost) {
  for (const auto &[engine, size] :
       {std::pair(Peers, 1), {Peers, 2}, {Peers, 3}, {ByNccl, 1}, {ByNccl, 2}, {ByNccl, 3}, {ByNcclInOrder, 3}}) {
    Ranks ranks(planOf({{"tp", size}}, {"tp"}), engine);
    for (int type = 0; type < numDTypes; ++type)
      for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                                  CollectiveKind::AllToAll, CollectiveKind::Permute})
        for (ReduceKind reduce : allReduceKinds) {
          plan::Collective collective;
          collective.kind = kind;
          collective.reduce = reduce;
          collective.axes = {"tp"};
          collective.dtype = DType(type);
          if (host::reduces(kind) ? collective.dtype == DType::Bool && reduce == ReduceKind::Sum
                                  : reduce != ReduceKind::Sum)
            continue;
          // Products of 16 bits overflow, or not, by their order.
          if (engine == ByNccl && reduce == ReduceKind::Prod && byteSize(DType(type)) == 2 && isFloat(DType(type)))
            continue;
          for (bool inPlace : {false, true}) {
            collective.count = 67;
            check(ranks, collective, inPlace, (type + int(reduce)) % 2);
            collective.count = type % 2;
            check(ranks, collective, inPlace, (type + int(reduce)) % 2 == 0);
          }
        }
  }
}

namespace {

/// A dozen all-reduces in place, 512 bytes apart, of numbers that have one sum in any order.
struct Dozen {
  static constexpr int64_t apart = 512, count = 67;
  Ranks &ranks;
  plan::Collective collective;
  std::vector<std::vector<int64_t>> groups; ///< by rank and collective

  explicit Dozen(Ranks &ranks) : ranks(ranks), groups(ranks.size()) {
    collective.axes = {"tp"};
    collective.count = count;
    collective.src = collective.dst = {0, 0};
    for (int64_t i = 0; i < Ranks::requests; ++i) {
      collective.request = int32_t(i);
      ranks.onEach(false, [&](size_t rank) {
        Expected<int64_t> group = ranks.communicators[rank]->prepare(collective);
        groups[rank].push_back(group.ok() ? *group : 0);
        return group.status();
      });
    }
  }
  static float value(size_t rank, int64_t i, int64_t element) { return float(int64_t(rank) * 100 + i * 7 + element); }
  void upload(size_t rank) {
    for (int64_t i = 0; i < Ranks::requests; ++i) {
      Bytes bytes(count * 4);
      for (int64_t element = 0; element < count; ++element)
        reinterpret_cast<float *>(bytes.data())[element] = value(rank, i, element);
      ranks.upload(rank, i * apart, bytes);
    }
  }
  Status post(size_t rank, int64_t i) {
    std::byte *place = ranks.memory[rank] + i * apart;
    return ranks.communicators[rank]->post(collective, groups[rank][size_t(i)], place, place, 0, i);
  }
  void expectSums(size_t rank) {
    for (int64_t i = 0; i < Ranks::requests; ++i) {
      Bytes bytes = ranks.download(rank, i * apart, count * 4);
      for (int64_t element = 0; element < count; ++element) {
        float wanted = 0;
        for (size_t other = 0; other < ranks.size(); ++other)
          wanted += value(other, i, element);
        EXPECT_EQ(reinterpret_cast<const float *>(bytes.data())[element], wanted) << "rank " << rank << ", post " << i;
      }
    }
  }
};

} // namespace

// Buckets of gradients: a dozen in flight, waited for in another order on each rank. Their memory beside the buffers, in
// rank order by NCCL, is that of one: they run one after the other.
TEST_F(Gpu, ADozenPostedInPlace) {
  for (const auto &[engine, size] : {std::pair(Peers, 2), {Peers, 3}, {ByNccl, 2}, {ByNccl, 3}, {ByNcclInOrder, 3}}) {
    Ranks ranks(planOf({{"tp", size}}, {"tp"}), engine);
    Dozen dozen(ranks);
    for (int round = 0; round < 2; ++round) {
      ranks.onEach(true, [&](size_t rank) {
        dozen.upload(rank);
        for (int64_t i = 0; i < Ranks::requests; ++i)
          if (Status status = dozen.post(rank, i); !status.ok())
            return status;
        for (int64_t i = 0; i < Ranks::requests; ++i)
          if (Status status = ranks.communicators[rank]->wait((i * 5 + int64_t(rank)) % Ranks::requests); !status.ok())
            return status;
        dozen.expectSums(rank);
        return Status::success();
      });
    }
    EXPECT_EQ(ranks.communicators[0]->scratchBytes(), engine == ByNcclInOrder ? size * Dozen::count * 4 : 0);
  }
}

// A rank that fails between its posts: the others' waits end, and after the world has begun anew nothing of the old
// posts is matched with new ones.
TEST_F(Gpu, AFailureForgetsWhatWasPosted) {
  Ranks ranks(planOf({{"tp", 2}}, {"tp"}));
  Dozen dozen(ranks);
  for (int64_t posts : {0, 1, 6, 11}) {
    for (int64_t i = 0; i < Ranks::requests; ++i)
      ASSERT_TRUE(dozen.post(0, i).ok());
    for (int64_t i = 0; i < posts; ++i)
      ASSERT_TRUE(dozen.post(1, i).ok());
    ranks.peers->world().fail(Status::error(ErrorKind::Io, "the disk is gone"));
    for (int64_t i = 0; i < Ranks::requests; ++i)
      EXPECT_EQ(ranks.communicators[0]->wait(i).ok(), i < posts) << i;
    for (const auto &device : ranks.devices)
      ASSERT_TRUE(device->finish().ok());
    ranks.peers->world().restart();

    for (size_t rank : {0, 1})
      dozen.upload(rank);
    for (int64_t i = 0; i < Ranks::requests; ++i)
      ASSERT_TRUE(dozen.post(1, i).ok() && dozen.post(0, i).ok());
    for (size_t rank : {0, 1}) {
      for (int64_t i = Ranks::requests; i-- > 0;)
        ASSERT_TRUE(ranks.communicators[rank]->wait(i).ok());
      dozen.expectSums(rank);
    }
  }
}

// Positions follow the axes as listed, not the ranks.
TEST_F(Gpu, GroupsOverSeveralAxes) {
  for (Engine engine : {Peers, ByNccl}) {
    Ranks ranks(planOf({{"dp", 2}, {"tp", 3}}, {"tp", "dp"}), engine);
    plan::Collective collective;
    collective.kind = CollectiveKind::AllGather;
    collective.axes = {"tp", "dp"};
    collective.dtype = DType::U8;
    collective.count = 1;
    collective.src = {0, 0};
    collective.dst = {1, 0};
    ranks.onEach(true, [&](size_t rank) {
      ranks.upload(rank, 0, {std::byte(rank)});
      int64_t group = *ranks.communicators[rank]->prepare(collective);
      return ranks.communicators[rank]->collective(collective, group, ranks.memory[rank],
                                                   ranks.memory[rank] + Ranks::half, 0);
    });
    for (size_t rank = 0; rank < 6; ++rank)
      EXPECT_EQ(ranks.download(rank, Ranks::half, 6),
                (Bytes{std::byte{0}, std::byte{3}, std::byte{1}, std::byte{4}, std::byte{2}, std::byte{5}}));
  }
}

// Messages match by sender, receiver and channel, in order; both ends may be posted long before the other, and waited
// for in any order.
TEST_F(Gpu, MessagesMatchInOrder) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    standin::Settings settings;
    settings.seed = seed;
    standin::configure(settings);
    {
      Ranks ranks(planOf({{"tp", 2}}, {"tp"}));
      Communicator *zero = ranks.communicators[0].get(), *one = ranks.communicators[1].get();
      std::byte *from = ranks.memory[0], *to = ranks.memory[1];
      ranks.upload(0, 0, Bytes(64, std::byte{1}));
      ranks.upload(0, 64, Bytes(64, std::byte{2}));
      ranks.upload(0, 128, Bytes(64, std::byte{3}));
      ASSERT_TRUE(zero->send(1, 7, from, 64, 0).ok());
      ASSERT_TRUE(one->receive(0, 8, to, 64, 0).ok());
      ASSERT_TRUE(one->receive(0, 7, to + 64, 64, 1).ok());
      ASSERT_TRUE(zero->send(1, 7, from + 64, 64, 1).ok());
      ASSERT_TRUE(one->receive(0, 7, to + 128, 64, 2).ok());
      ASSERT_TRUE(zero->send(1, 8, from + 128, 64, 2).ok());
      for (int64_t request : {2, 0, 1, 3})
        ASSERT_TRUE(one->wait(request).ok() && zero->wait(request).ok());
      Bytes got = ranks.download(1, 0, 192);
      EXPECT_EQ(got[0], std::byte{3});
      EXPECT_EQ(got[64], std::byte{1});
      EXPECT_EQ(got[191], std::byte{2});
      ASSERT_TRUE(ranks.devices[0]->finish().ok());

      ASSERT_TRUE(zero->send(1, 7, from, 64, 0).ok());
      EXPECT_THAT(one->receive(0, 7, to, 32, 0).text(), HasSubstr("differ in size: 64 and 32 bytes"));
    }
    expectClean("seed " + std::to_string(seed));
  }
}

TEST_F(Gpu, CollectivesThatMeanNothing) {
  for (Engine engine : {Peers, ByNccl}) {
    Ranks ranks(planOf({{"tp", 2}}, {"tp"}), engine);
    plan::Collective collective;
    collective.axes = {"tp"};
    collective.dtype = DType::Bool;
    EXPECT_THAT(ranks.communicators[0]->prepare(collective).status().text(),
                HasSubstr("error[unsupported]: a sum of bool over ranks has no meaning"));
    collective.axes = {"pp"};
    EXPECT_THAT(ranks.communicators[0]->prepare(collective).status().text(), HasSubstr("axis 'pp'"));
  }
}
