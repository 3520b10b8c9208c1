// A job is opened, done by whoever comes, and closed. A helper that sleeps through a job never holds it up: the caller
// waits only for those that have entered.
#include "runtime/core/ThreadPool.h"

#include "runtime/base/CountText.h"

#include <algorithm>
#include <system_error>

namespace hpc {

Expected<std::unique_ptr<ThreadPool>> ThreadPool::create(int64_t threads, bool spins) {
  auto pool = std::make_unique<ThreadPool>();
  pool->spins = spins ? WaitWord::spinsOfOwnCore : 0;
  try {
    pool->helpers.reserve(size_t(std::max<int64_t>(0, threads - 1)));
    pool->shares = std::make_unique<Share[]>(size_t(std::max<int64_t>(1, threads)));
    for (int64_t thread = 1; thread < threads; ++thread)
      pool->helpers.emplace_back([raw = pool.get(), thread] { raw->help(thread); });
  } catch (const std::system_error &error) {
    return Status::error(ErrorKind::Capacity, "cannot start " + countText(threads - 1, "helper") + " of a rank (" +
                                                  error.what() + "); use a smaller --threads");
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  leaving.store(true);
  generation.add(1);
  for (std::thread &helper : helpers)
    helper.join();
}

/// The number of the calling thread, which is in a job.
int64_t ThreadPool::threadHere() const {
  for (size_t i = 0; i < helpers.size(); ++i)
    if (helpers[i].get_id() == std::this_thread::get_id())
      return int64_t(i) + 1;
  return 0;
}

Status ThreadPool::run(const Job &given) {
  if (given.items <= 0)
    return Status::success();
  if (running)
    return given.call(given.work, threadHere(), 0, given.items);
  if (helpers.empty() || given.items <= given.grain) {
    running = true;
    struct Ended {
      bool &running;
      ~Ended() { running = false; }
    } ended{running};
    return given.call(given.work, 0, 0, given.items);
  }
  job = given;
  running = true;
  share();
  state.store(open, std::memory_order_release);
  generation.add(1, int(std::min<int64_t>(int64_t(helpers.size()), (given.items - 1) / given.grain)));
  doPieces(0);
  state.fetch_and(~open, std::memory_order_acq_rel);
  waitForHelpers();
  running = false;
  if (!failed.load(std::memory_order_relaxed))
    return Status::success();
  failed.store(false, std::memory_order_relaxed);
  if (std::exception_ptr thrown = std::exchange(exception, nullptr))
    std::rethrow_exception(thrown);
  return std::exchange(error, Status::success());
}

/// Deals out the pieces of the job in their order.
void ThreadPool::share() {
  const int64_t threads = this->threads(), pieces = job.items / job.grain + (job.items % job.grain != 0),
                each = pieces / threads, more = pieces % threads;
  int64_t piece = 0, item = 0;
  for (int64_t thread = 0; thread < threads; ++thread) {
    shares[size_t(thread)].next.store(item, std::memory_order_relaxed);
    piece += each + (thread < more ? 1 : 0);
    item = piece < pieces ? piece * job.grain : job.items; // whose product may be beyond the largest number
    shares[size_t(thread)].end = item;
  }
}

void ThreadPool::doPieces(int64_t thread) {
  auto keep = [&](Status status, std::exception_ptr thrown) {
    std::lock_guard<std::mutex> lock(mutex);
    if (failed.exchange(true, std::memory_order_relaxed))
      return;
    error = std::move(status);
    exception = std::move(thrown);
  };
  for (int64_t passed = 0; passed < threads() && !failed.load(std::memory_order_relaxed);) {
    Share &from = shares[size_t((thread + passed) % threads())];
    const int64_t first = from.next.fetch_add(job.grain, std::memory_order_relaxed);
    if (first >= from.end) {
      ++passed;
      continue;
    }
    try {
      // In this order: items may be close to the largest number.
      const int64_t last = from.end - first > job.grain ? first + job.grain : from.end;
      Status status = job.call(job.work, thread, first, last);
      if (!status.ok())
        keep(std::move(status), nullptr);
    } catch (...) {
      keep(Status::success(), std::current_exception());
    }
  }
}

bool ThreadPool::enter() {
  uint32_t now = state.load(std::memory_order_acquire);
  while (now & open)
    if (state.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel))
      return true;
  return false;
}

void ThreadPool::leave() {
  // 1: closed, and this was the last one inside.
  if (state.fetch_sub(1) == 1 && callerSleeps.load())
    futexWake(state);
}

void ThreadPool::waitForHelpers() {
  for (int spin = 0; spin < spins; ++spin) {
    if (state.load(std::memory_order_acquire) == 0)
      return;
    __builtin_ia32_pause();
  }
  callerSleeps.store(true);
  while (uint32_t inside = state.load())
    futexWait(state, inside);
  callerSleeps.store(false, std::memory_order_relaxed);
}

void ThreadPool::help(int64_t thread) {
  uint32_t seen = 0;
  while (true) {
    seen = generation.waitWhile(seen, spins);
    if (leaving.load())
      return;
    if (enter()) {
      doPieces(thread);
      leave();
    }
  }
}

} // namespace hpc
