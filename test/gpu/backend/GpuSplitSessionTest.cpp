// Sessions that hold a part of the ranks each, joined by one world: the same results in every split, and an error in
// one of them ends all.
#include "test/gpu/backend/GpuFixture.h"

#include <atomic>
#include <functional>
#include <thread>

using namespace hpc;
using testing::HasSubstr;

namespace {

constexpr int64_t worldSize = 4;

/// One thread per session, each with a plan of its own, as processes would have.
struct Joined : GpuPlan {
  std::vector<RankRange> parts{{0, 1}};
  std::shared_ptr<cuda::PeerWorld> world;
  std::vector<plan::Plan> plans;

  /// A cut after rank i where bit i is set.
  Joined(unsigned cuts, bool posted) {
    for (int64_t rank = 1; rank < worldSize; ++rank)
      if (cuts >> (rank - 1) & 1)
        parts.push_back({rank, 1});
      else
        ++parts.back().count;
    if (posted)
      postTheAllReduce();
    world = std::make_shared<cuda::PeerWorld>(plan);
    plans.assign(parts.size(), plan);
  }
  std::vector<Status> onParts(const std::function<Status(size_t part, Session &)> &work,
                              const Observer &observer = nullptr) {
    std::vector<Status> statuses(parts.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < parts.size(); ++i)
      threads.emplace_back([&, i] {
        SessionOptions own = options;
        own.ranks = parts[i];
        own.observer = observer;
        Expected<std::unique_ptr<Session>> session =
            Session::create(plans[i], cuda::createCudaBackend(onStandIn(), world), own);
        statuses[i] = session.ok() ? work(i, **session) : session.status();
      });
    for (std::thread &thread : threads)
      thread.join();
    return statuses;
  }
  Status runRight(size_t part, Session &session, int64_t seed) {
    Expected<std::vector<Array>> outputs = session.run({input(seed)});
    HPC_RETURN_IF_ERROR(outputs.status());
    if (part == 0)
      expectRight(*outputs, seed);
    else
      EXPECT_TRUE(outputs->empty());
    return Status::success();
  }
};

} // namespace

TEST_F(Gpu, EverySplitComputesTheSame) {
  for (unsigned cuts = 0; cuts < 1u << (worldSize - 1); ++cuts)
    for (bool posted : {false, true}) {
      Joined joined(cuts, posted);
      joined.options.poison = cuts % 2;
      for (const Status &status : joined.onParts([&](size_t part, Session &session) {
             for (int64_t seed : {0, 3, 8})
               HPC_RETURN_IF_ERROR(joined.runRight(part, session, seed));
             return Status::success();
           }))
        EXPECT_TRUE(status.ok()) << status.text();
    }
}

TEST_F(Gpu, AnErrorInOneSessionEndsAllWithOneMessage) {
  for (unsigned cuts = 1; cuts < 1u << (worldSize - 1); ++cuts)
    for (int64_t rank = 0; rank < worldSize; ++rank) {
      Joined joined(cuts, false);
      std::atomic<bool> broken{true};
      std::atomic<size_t> failed{0};
      std::vector<std::string> first(joined.parts.size());
      std::vector<Status> statuses = joined.onParts(
          [&](size_t part, Session &session) {
            first[part] = session.run({GpuPlan::input(0)}).status().text();
            if (++failed == joined.parts.size())
              broken = false;
            while (broken)
              std::this_thread::yield();
            return joined.runRight(part, session, 2);
          },
          [&](const ObservedInstruction &at) {
            bool here = at.place.rank == rank && at.instruction == 3 && at.microBatch == 1;
            return here && broken ? Status::error(ErrorKind::Io, "the disk is gone") : Status::success();
          });
      EXPECT_THAT(first[0], HasSubstr("error[io]: rank " + std::to_string(rank) + " (stage "));
      for (const std::string &text : first)
        EXPECT_EQ(text, first[0]);
      for (const Status &status : statuses)
        EXPECT_TRUE(status.ok()) << status.text();
    }
}
