// Barriers and mailboxes of the ranks that are threads of one process. The first error wakes everybody: each wait then
// returns that error, so no rank is left waiting for one that failed.
#pragma once

#include "runtime/base/Futex.h"
#include "runtime/base/Status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace hpc::host {

class Rendezvous;

/// A word that threads sleep on until it changes. Its top bit means that the world has failed.
class Signal {
public:
  explicit Signal(Rendezvous &owner);
  Signal(const Signal &) = delete;

  uint32_t value() const { return word.value() & ~failedBit; }
  /// Sets the value and wakes the sleepers. What the caller wrote before is visible to them.
  void set(uint32_t value);
  /// Returns when the value is no longer `seen`, or with the error that ended the step.
  Status waitWhile(uint32_t seen) const;

private:
  friend class Rendezvous;
  static constexpr uint32_t failedBit = 1u << 31;

  Rendezvous &owner;
  WaitWord word;
};

/// The meeting point of a world. Signals register here when they are made and live as long as it.
class Rendezvous {
public:
  /// `spin`: threads look at a word a few thousand times before they sleep; wise when each thread has a core.
  explicit Rendezvous(bool spin) : spinCount(spin ? WaitWord::spinsOfOwnCore : 0) {}

  bool spins() const { return spinCount > 0; }

  /// Keeps the first error and wakes all who wait, now and later.
  void fail(Status error);
  bool failed() const { return hasFailed.load(std::memory_order_acquire); }
  /// Success, or the first error.
  Status status() const;
  /// Makes the rendezvous usable again after a failure. No thread may be inside it.
  void reset();

private:
  friend class Signal;
  mutable std::mutex mutex;
  std::vector<Signal *> signals;
  std::atomic<bool> hasFailed{false};
  Status first;
  const int spinCount;
};

/// A barrier of a fixed number of threads.
class Barrier {
public:
  Barrier(Rendezvous &rendezvous, int size) : generation(rendezvous), size(size) {}
  /// Returns when all have arrived; what each wrote before is then visible to all.
  Status arrive();
  void reset() { arrived = 0; }

private:
  Signal generation;
  std::atomic<int> arrived{0};
  const int size;
};

class PostedCollective;

/// A rank's post: one end of a message, completed when the other end is posted too, or its part in a collective,
/// completed when all have posted theirs and all shares are done.
class Request {
public:
  explicit Request(Rendezvous &rendezvous) : state(rendezvous) {}
  /// Returns when the last post is complete; at once if there is none. Does the remaining shares of a collective that
  /// all have posted.
  Status wait();
  bool pending() const { return state.value() == Posted || state.value() == Open; }
  /// An error if the last post was not waited for.
  Status post();
  void complete() { state.set(Done); }
  void reset();

  /// By the request's rank: the post is its part in `work`.
  void takePart(std::shared_ptr<PostedCollective> work, int64_t position);
  /// Called by the rank that posted last: shares may be done now. complete() must not have been called.
  void open() { state.set(Open); }
  /// By the request's rank: does its own share of a collective that all have posted, if there is one to do.
  void doOwnShare();

private:
  friend class Mailbox;
  enum : uint32_t { Idle, Posted, Open, Done };
  Signal state;
  std::byte *address = nullptr;
  int64_t bytes = 0;
  Request *next = nullptr;
  std::shared_ptr<PostedCollective> work; ///< until it is waited for
  int64_t position = 0;                   ///< in the group that does `work`
};

/// The messages of one (sender, receiver, channel), matched in order and not buffered: the side that posts second
/// copies from the sender's memory to the receiver's.
class Mailbox {
public:
  Status send(const std::byte *source, int64_t bytes, Request &request) {
    return post(const_cast<std::byte *>(source), bytes, request, true);
  }
  Status receive(std::byte *target, int64_t bytes, Request &request) { return post(target, bytes, request, false); }
  void reset() { head = tail = nullptr; }

private:
  Status post(std::byte *address, int64_t bytes, Request &request, bool isSend);

  std::mutex mutex;
  Request *head = nullptr, *tail = nullptr; ///< posts that wait for the other side; all of one kind
  bool headIsSend = false;
};

} // namespace hpc::host
