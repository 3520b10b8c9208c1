// Waiting by futex. A failure changes every word before it wakes the sleepers, so that no one can fall asleep on the
// old value after it.
#include "runtime/backend/host/Rendezvous.h"

#include "runtime/backend/host/PostedCollective.h"
#include "runtime/base/CountText.h"

#include <cstring>

namespace hpc::host {

Signal::Signal(Rendezvous &owner) : owner(owner) {
  std::lock_guard<std::mutex> lock(owner.mutex);
  owner.signals.push_back(this);
  if (owner.hasFailed)
    word.set(failedBit);
}

void Signal::set(uint32_t value) {
  // Keeps the failed bit, which another thread may be setting.
  word.change([&](std::atomic<uint32_t> &bits) {
    uint32_t old = bits.load(std::memory_order_relaxed);
    while (!bits.compare_exchange_weak(old, (old & failedBit) | value))
      ;
  });
}

Status Signal::waitWhile(uint32_t seen) const {
  uint32_t now = word.waitWhile(seen, owner.spinCount);
  return (now & ~failedBit) != seen ? Status::success() : owner.status();
}

void Rendezvous::fail(Status error) {
  std::lock_guard<std::mutex> lock(mutex);
  if (hasFailed)
    return;
  first = std::move(error);
  hasFailed.store(true, std::memory_order_release);
  for (Signal *signal : signals) {
    signal->word.change([](std::atomic<uint32_t> &bits) { bits.fetch_or(Signal::failedBit); });
  }
}

Status Rendezvous::status() const {
  std::lock_guard<std::mutex> lock(mutex);
  return first;
}

void Rendezvous::reset() {
  std::lock_guard<std::mutex> lock(mutex);
  hasFailed = false;
  first = Status::success();
  for (Signal *signal : signals)
    signal->word.set(0);
}

Status Barrier::arrive() {
  uint32_t seen = generation.value();
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < size)
    return generation.waitWhile(seen);
  arrived.store(0, std::memory_order_relaxed);
  generation.set((seen + 1) & 0xffff);
  return Status::success();
}

Status Request::wait() {
  if (state.value() == Idle)
    return Status::success();
  HPC_RETURN_IF_ERROR(state.waitWhile(Posted));
  if (state.value() == Open) {
    work->doRest();
    HPC_RETURN_IF_ERROR(state.waitWhile(Open)); // for shares that others are doing
  }
  reset();
  return Status::success();
}

void Request::reset() {
  work.reset();
  state.set(Idle);
}

void Request::takePart(std::shared_ptr<PostedCollective> given, int64_t at) {
  work = std::move(given);
  position = at;
}

void Request::doOwnShare() {
  if (state.value() == Open)
    work->doShare(position);
}

Status Request::post() {
  if (pending())
    return Status::error(ErrorKind::Plan, "a request is posted again before it was waited for");
  state.set(Posted);
  return Status::success();
}

Status Mailbox::post(std::byte *address, int64_t bytes, Request &request, bool isSend) {
  HPC_RETURN_IF_ERROR(request.post());
  request.address = address;
  request.bytes = bytes;
  request.next = nullptr;
  Request *other = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (head && headIsSend != isSend) {
      other = head;
      head = head->next;
    } else {
      (head ? tail->next : head) = &request;
      tail = &request;
      headIsSend = isSend;
      return Status::success();
    }
  }
  if (other->bytes != bytes)
    return Status::error(ErrorKind::Plan, "a send and its receive differ in size: " + countText(bytes, "byte") +
                                              " here, " + std::to_string(other->bytes) + " there");
  if (bytes > 0)
    std::memcpy(isSend ? other->address : address, isSend ? address : other->address, size_t(bytes));
  other->complete();
  request.complete();
  return Status::success();
}

} // namespace hpc::host
