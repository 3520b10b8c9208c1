// The last to arrive does its own share before it opens the collective to the others: until then no request can
// complete, and so none can be posted anew while it is still being opened.
#include "runtime/backend/host/PostedCollective.h"

#include <algorithm>

namespace hpc::host {

PostedCollective::PostedCollective(const plan::Collective &collective, const Reduction &reduction, int64_t members)
    : collective(collective), reduction(reduction), shares(size_t(members)), copies(size_t(members)),
      requests(size_t(members)), taken(size_t(members)), undone(members) {}

/// A collective that takes less time than to wake a sleeping member: the last to arrive does it all.
bool PostedCollective::isSmall() const {
  constexpr int64_t smallBytes = 64 << 10;
  const int64_t members = int64_t(shares.size());
  return std::max(sourceBytes(collective, members), targetBytes(collective, members)) <= smallBytes;
}

bool PostedCollective::arrive(int64_t position, const Share &share, Request &request) {
  const int64_t members = int64_t(shares.size());
  Share &mine = shares[size_t(position)] = share;
  if (needsCopy(collective, share, members)) {
    std::vector<std::byte> &copy = copies[size_t(position)];
    copy.assign(share.source, share.source + sourceBytes(collective, members));
    mine.source = copy.data();
  }
  requests[size_t(position)] = &request;
  return ++arrived == members;
}

void PostedCollective::open(int64_t position) {
  if (isSmall())
    return doRest();
  take(position);
  for (Request *request : requests)
    request->open();
  work(position);
}

void PostedCollective::work(int64_t position) {
  exchange(collective, reduction, shares, position);
  if (undone.fetch_sub(1, std::memory_order_acq_rel) > 1)
    return;
  for (Request *request : requests)
    request->complete();
}

void PostedCollective::doShare(int64_t position) {
  if (take(position))
    work(position);
}

void PostedCollective::doRest() {
  for (int64_t position = 0; position < int64_t(shares.size()); ++position)
    doShare(position);
}

void PostedQueue::post(const plan::Collective &collective, const Reduction &reduction, int64_t position,
                       const Share &share, Request &request) {
  std::shared_ptr<PostedCollective> posted;
  {
    std::lock_guard<std::mutex> lock(mutex);
    const int64_t members = int64_t(next.size());
    const size_t index = size_t(next[size_t(position)]++ - finished);
    while (open.size() <= index)
      open.push_back(std::make_shared<PostedCollective>(collective, reduction, members));
    posted = open[index];
    request.takePart(posted, position);
    if (!posted->arrive(position, share, request))
      return;
    // All have posted this one, so all have posted those before it: it is the oldest.
    open.pop_front();
    ++finished;
  }
  posted->open(position);
}

void PostedQueue::reset() {
  open.clear();
  finished = 0;
  std::fill(next.begin(), next.end(), 0);
}

} // namespace hpc::host
