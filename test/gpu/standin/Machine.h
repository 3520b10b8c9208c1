// The devices and what runs on them: contexts, streams, events, and the rules by which calls are counted and fail.
#pragma once

#include "runtime/backend/cuda/DriverApi.h"
#include "test/gpu/standin/Control.h"
#include "test/gpu/standin/Memory.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <thread>

namespace hpc::cuda {
/// Sessions and streams ask it at the same time.
struct ContextState {
  int device = 0;
  std::atomic<DriverResult> error{0}; ///< once something has gone wrong on the device, all calls say so

  void retain();
  /// False if nobody holds it. When the last one lets go, it reaches no other device any more.
  bool release();
  bool isRetained() const;
  /// From here on it may touch that device's memory; false if it might before.
  bool reach(int other);
  bool reaches(int other) const;

private:
  mutable std::mutex mutex;
  int holders = 0;
  std::set<int> reached;
};
} // namespace hpc::cuda

namespace standin {

struct Capture;
using hpc::cuda::ContextState;
using hpc::cuda::DriverResult;

/// What runs on a stream gets this.
struct Running {
  ContextState &context;
  Clock &clock; ///< of the stream
  Moment moment;
  std::string what;

  /// Where the bytes are, or null after the device has been told that this address is illegal.
  std::byte *access(uint64_t address, uint64_t bytes) const;
  void note(const std::vector<Range> &ranges, bool isWrite) const;
  void fault(DriverResult result) const;
};

/// One event as recorded at one time.
struct Record {
  bool done = false;
  Clock clock;
};

class Machine {
public:
  static Machine &instance();
  /// Programs that do not call configure(): HPC_STANDIN_SEED, HPC_STANDIN_DEVICES, HPC_STANDIN_FAILING_CALL.
  Machine();

  void configure(const Settings &settings);
  /// At the start of each call that can fail: 0, or what it shall return at once.
  int enter(const char *call, int failure);
  int64_t calls();
  std::atomic<int64_t> launchedGraphs{0}, epilogues{0};
  std::string failedCall();
  void misuse(const std::string &text);
  void race(const std::string &text);
  std::vector<std::string> races(), misuses();
  std::string leaks();

  Settings settings() const;
  std::chrono::microseconds delay();
  /// True once in `times`.
  bool chance(uint64_t times);
  int newTimeline();
  /// The host's clock, which knows all that somebody has waited for.
  Clock hostClock();
  void hostLearns(const Clock &clock);
  ContextState *context(int device);
  void count(const std::string &kind, int change);

  std::mutex recordsMutex; ///< of all records
  std::condition_variable recorded;

private:
  mutable std::mutex mutex;
  Settings current;
  std::mt19937_64 random;
  int64_t callCount = 0;
  std::string failed;
  std::vector<std::string> raceTexts, misuseTexts;
  int timelines = 1;
  Clock host;
  std::map<int, ContextState> contexts;
  std::map<std::string, int> live; ///< handles by kind
};

/// The context that the calling thread has made its own, or null.
ContextState *&currentContext();
/// Waits for all streams of a context.
void synchronizeAll(ContextState &context);

} // namespace standin

namespace hpc::cuda {

/// A queue that its own thread works off.
struct StreamState {
  explicit StreamState(ContextState &context);
  ~StreamState(); ///< when all is done
  /// `isOrder`: it only orders streams, and happens even when the device has failed.
  void enqueue(const std::string &what, std::function<void(const standin::Running &)> work, bool isOrder = false);
  /// Waits until all that has been enqueued is done, and the host knows it.
  void synchronize();
  bool idle();
  bool isCapturing() const;

  ContextState &context;
  std::shared_ptr<standin::Capture> capture; ///< null: what it is told is done

private:
  friend void standin::synchronizeAll(ContextState &context);
  struct Op {
    std::string what;
    std::function<void(const standin::Running &)> work;
    standin::Clock host;
    bool isOrder;
  };
  void run();

  const int timeline;
  standin::Clock clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Op> queue;
  bool busy = false, leaving = false;
  std::thread thread;
};

struct EventState {
  ContextState *context = nullptr;
  std::shared_ptr<standin::Record> latest;
  std::shared_ptr<standin::Capture> capture; ///< that it was last recorded in, at `edge`
  size_t edge = 0;
};

} // namespace hpc::cuda
