// Collectives that members post and wait for later. The work is divided: each member does its own share when it next
// posts or waits, and a wait does all remaining shares, so that no member waits for one that computes.
#pragma once

#include "runtime/backend/host/Exchange.h"
#include "runtime/backend/host/Rendezvous.h"

#include <atomic>
#include <deque>
#include <memory>

namespace hpc::host {

/// One collective from the first post to the last share. Shares are done by anybody, each by one thread; which one is
/// chance and changes no bit. Done, it completes the requests of all.
class PostedCollective {
public:
  PostedCollective(const plan::Collective &collective, const Reduction &reduction, int64_t members);

  /// A member's post, by one at a time. True where it was the last.
  bool arrive(int64_t position, const Share &share, Request &request);
  /// Once, by the last to arrive: lets all do their shares, and does its own.
  void open(int64_t position);
  /// A member's share, unless somebody has taken it. Only after open().
  void doShare(int64_t position);
  /// Does all shares that nobody has taken.
  void doRest();

private:
  bool isSmall() const;
  bool take(int64_t position) { return !taken[size_t(position)].exchange(true, std::memory_order_relaxed); }
  void work(int64_t position);

  const plan::Collective &collective;
  const Reduction reduction;
  std::vector<Share> shares;                  ///< by position, as all below
  std::vector<std::vector<std::byte>> copies; ///< of sources that their targets overlap
  std::vector<Request *> requests;
  std::vector<std::atomic<bool>> taken; ///< shares that somebody does or has done
  int64_t arrived = 0;
  std::atomic<int64_t> undone; ///< shares
};

/// Posts of one instruction that not all members have posted yet, the oldest first. Members post in the same order, so
/// the i-th posts of all belong together.
class PostedQueue {
public:
  explicit PostedQueue(int64_t members) : next(size_t(members), 0) {}
  /// `request` must have been posted. Never waits; the last to post does its own share of the work, or all of little.
  void post(const plan::Collective &collective, const Reduction &reduction, int64_t position, const Share &share,
            Request &request);
  void reset();

private:
  std::mutex mutex;
  std::deque<std::shared_ptr<PostedCollective>> open;
  int64_t finished = 0;      ///< collectives that are no longer in `open`
  std::vector<int64_t> next; ///< by position: the collective that its next post belongs to
};

} // namespace hpc::host
