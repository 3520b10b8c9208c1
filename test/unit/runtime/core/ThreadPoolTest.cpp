// Pools of every size over every number of items: each item once, errors and exceptions out, nothing left behind.
#include "runtime/core/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <numeric>
#include <stdexcept>

using namespace hpc;

namespace {

std::unique_ptr<ThreadPool> poolOf(int64_t threads, bool spins) {
  Expected<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads, spins);
  EXPECT_TRUE(pool.ok());
  return std::move(*pool);
}

/// f(pool) for pools of some sizes that sleep at once, and that look first.
template <typename F> void forPools(F f) {
  for (int64_t threads : {1, 2, 3, 5, 8})
    for (bool spins : {false, true})
      f(*poolOf(threads, spins));
}

} // namespace

// An item that is left out, or done twice, is a wrong number in every product and kernel. More threads than items, and
// no items, are among them.
TEST(ThreadPool, DoesEachItemOnce) {
  forPools([](ThreadPool &pool) {
    for (int64_t items : {0, 1, 2, 3, 7, 64, 1000})
      for (int64_t grain : {1, 2, 7, 64, 5000}) {
        std::vector<std::atomic<int>> times(static_cast<size_t>(items));
        Status status = pool.run(items, grain, [&](int64_t thread, int64_t first, int64_t last) {
          EXPECT_TRUE(thread >= 0 && thread < pool.threads());
          EXPECT_TRUE(first >= 0 && first < last && last <= items && first % grain == 0);
          for (int64_t item = first; item < last; ++item)
            ++times[size_t(item)];
          return Status::success();
        });
        ASSERT_TRUE(status.ok());
        for (const std::atomic<int> &count : times)
          ASSERT_EQ(count, 1) << items << " items by " << grain << " on " << pool.threads() << " threads";
      }
  });
}

// What threads write is there for the caller, and what the caller writes for the next job: a pool that gets either
// order wrong computes with old numbers. Plain memory, so that the thread sanitizer sees it too.
TEST(ThreadPool, ShowsWhatWasWritten) {
  forPools([](ThreadPool &pool) {
    std::vector<int64_t> values(100, 0);
    for (int64_t round = 0; round < 300; ++round) {
      (void)pool.run(100, 3, [&](int64_t, int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i)
          ++values[size_t(i)];
        return Status::success();
      });
      ASSERT_EQ(std::accumulate(values.begin(), values.end(), int64_t(0)), 100 * (2 * round + 1));
      for (int64_t &value : values)
        ++value;
    }
  });
}

// Scratch memory is chosen by the thread's number: two calls with one number at a time would share it.
TEST(ThreadPool, NumbersAreHeldByOneAtATime) {
  forPools([](ThreadPool &pool) {
    std::vector<std::atomic<int>> holders(size_t(pool.threads()));
    (void)pool.run(200, 1, [&](int64_t thread, int64_t, int64_t) {
      EXPECT_EQ(holders[size_t(thread)].fetch_add(1), 0);
      std::this_thread::yield();
      EXPECT_EQ(holders[size_t(thread)].fetch_sub(1), 1);
      return Status::success();
    });
  });
}

// An error ends the job with itself, whichever thread it is on, and the pool works on.
TEST(ThreadPool, TellsAnError) {
  forPools([](ThreadPool &pool) {
    for (int64_t bad : {0, 17, 99}) {
      auto work = [&](int64_t, int64_t first, int64_t last) {
        return first <= bad && bad < last ? Status::error(ErrorKind::Io, "item " + std::to_string(bad)) : Status::success();
      };
      EXPECT_EQ(pool.run(100, 1, work).message(), "item " + std::to_string(bad));
      EXPECT_TRUE(pool.run(bad, 1, work).ok());
    }
  });
}

// Memory that a helper cannot get has to end the rank's step, as where the rank itself cannot get it.
TEST(ThreadPool, ThrowsOnTheCallersThread) {
  forPools([](ThreadPool &pool) {
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> done{0};
      auto work = [&](int64_t, int64_t first, int64_t last) -> Status {
        if (first <= 40 && 40 < last)
          throw std::bad_alloc();
        ++done;
        return Status::success();
      };
      EXPECT_THROW((void)pool.run(100, 20, work), std::bad_alloc);
      EXPECT_LT(done, 5);
      EXPECT_TRUE(pool.run(40, 20, work).ok());
    }
  });
}

// Work that calls on the pool again goes on where it is: a wait for helpers that wait would never end.
TEST(ThreadPool, NestedWorkIsDoneInPlace) {
  forPools([](ThreadPool &pool) {
    std::atomic<int64_t> sum{0};
    Status status = pool.run(20, 1, [&](int64_t thread, int64_t first, int64_t last) {
      for (int64_t item = first; item < last; ++item)
        HPC_RETURN_IF_ERROR(pool.run(30, 1, [&](int64_t inner, int64_t from, int64_t to) {
          EXPECT_EQ(inner, thread);
          sum += to - from;
          return Status::success();
        }));
      return Status::success();
    });
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(sum, 600);
  });
}

// Helpers that are waited for in vain leave the caller hanging; those of an unused pool, too.
TEST(ThreadPool, EndsUnused) {
  for (int round = 0; round < 50; ++round)
    forPools([](ThreadPool &pool) { EXPECT_GE(pool.threads(), 1); });
}
