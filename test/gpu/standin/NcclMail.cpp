// A box is empty or full; the sender fills it, the receiver empties it.
#include "test/gpu/standin/NcclMail.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace standin {

constexpr size_t chunkBytes = 32 << 10;

struct NcclMail::Box {
  std::atomic<uint32_t> isFull;
  uint32_t filled;
  Label label;
  std::byte data[chunkBytes];
};

struct NcclMail::Head {
  std::atomic<uint32_t> ranks, joined;
  std::atomic<uint64_t> places[64]; ///< of the ranks that have joined, plus 1
};

constexpr size_t headBytes = 4096;

NcclMail::Box &NcclMail::box(int from, int to) const {
  auto *first = reinterpret_cast<Box *>(reinterpret_cast<std::byte *>(head) + headBytes);
  return first[from * ranks + to];
}

std::string NcclMail::join(const std::string &name, int ranks, int rank, uint64_t place, NcclMail &mail) {
  if (ranks > 64 || rank < 0 || rank >= ranks)
    return "no such rank, or more than the stand-in has room for";
  mail.path = "/dev/shm/hpc-nccl-" + name;
  mail.bytes = headBytes + sizeof(Box) * size_t(ranks) * size_t(ranks);
  mail.ranks = ranks;
  mail.rank = rank;
  const int file = ::open(mail.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, off_t(mail.bytes)) != 0) // new pages are zero: nobody there, all boxes empty
    return "no shared memory";
  void *pages = ::mmap(nullptr, mail.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (pages == MAP_FAILED)
    return "no shared memory";
  mail.head = static_cast<Head *>(pages);
  uint32_t none = 0;
  if (!mail.head->ranks.compare_exchange_strong(none, uint32_t(ranks)) && none != uint32_t(ranks))
    return "ranks join one communicator with different sizes";
  for (int other = 0; other < ranks; ++other)
    if (other != rank && mail.head->places[other] == place + 1)
      return "two ranks of a communicator have one card";
  if (mail.head->places[rank].exchange(place + 1) != 0)
    return "two members of a communicator have one rank";
  if (++mail.head->joined == uint32_t(ranks))
    ::unlink(mail.path.c_str());
  return {};
}

NcclMail &NcclMail::operator=(NcclMail &&other) noexcept {
  std::swap(path, other.path);
  std::swap(head, other.head);
  std::swap(bytes, other.bytes);
  std::swap(ranks, other.ranks);
  std::swap(rank, other.rank);
  return *this;
}

NcclMail::~NcclMail() {
  if (!head)
    return;
  if (!isComplete())
    ::unlink(path.c_str());
  ::munmap(head, bytes);
}

bool NcclMail::isComplete() const { return head->joined == uint32_t(ranks); }

bool NcclMail::step(Piece &piece, std::string &error) {
  Box &through = piece.isSend ? box(rank, piece.peer) : box(piece.peer, rank);
  const bool isFull = through.isFull.load(std::memory_order_acquire);
  if (piece.isSend) {
    if (isFull)
      return false;
    if (piece.isTaken && piece.moved == piece.label.bytes) {
      piece.isDone = true;
      return true;
    }
    through.label = piece.label;
    through.filled = uint32_t(std::min<uint64_t>(chunkBytes, piece.label.bytes - piece.moved));
    std::memcpy(through.data, piece.data + piece.moved, through.filled);
    piece.moved += through.filled;
    piece.isTaken = true;
    through.isFull.store(1, std::memory_order_release);
    return true;
  }
  if (!isFull)
    return false;
  const Label &theirs = through.label, &mine = piece.label;
  if (std::strcmp(theirs.call, mine.call) != 0 || theirs.number != mine.number || theirs.bytes != mine.bytes ||
      theirs.type != mine.type || theirs.operation != mine.operation) {
    auto text = [](const Label &label) {
      return std::string(label.call) + " number " + std::to_string(label.number) + " of " +
             std::to_string(label.bytes) + " bytes (type " + std::to_string(label.type) + ", operation " +
             std::to_string(label.operation) + ")";
    };
    error = "ranks of a communicator do different things: rank " + std::to_string(rank) + " " + text(mine) + ", rank " +
            std::to_string(piece.peer) + " " + text(theirs);
    return false;
  }
  std::memcpy(piece.data + piece.moved, through.data, through.filled);
  piece.moved += through.filled;
  piece.isDone = piece.moved == piece.label.bytes;
  through.isFull.store(0, std::memory_order_release);
  return true;
}

std::string NcclMail::move(std::vector<Piece> &pieces, const std::function<bool()> &stop, double patience) {
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  std::string error;
  while (!stop()) {
    bool isDone = true, moved = false;
    for (size_t i = 0; i < pieces.size() && error.empty(); ++i) {
      Piece &piece = pieces[i];
      if (piece.isDone)
        continue;
      isDone = false;
      // Between two ranks messages keep their order.
      const bool isFirst = std::none_of(pieces.begin(), pieces.begin() + long(i), [&](const Piece &before) {
        return !before.isDone && before.peer == piece.peer && before.isSend == piece.isSend;
      });
      if (isFirst)
        moved |= step(piece, error);
    }
    if (isDone || !error.empty())
      return error;
    const auto now = Clock::now();
    if (moved)
      last = now;
    else if (std::chrono::duration<double>(now - last).count() > patience)
      return "rank " + std::to_string(rank) + " of a communicator waits in " + pieces[0].label.call + " number " +
             std::to_string(pieces[0].label.number) + ", and its counterpart does not come";
    if (!moved)
      std::this_thread::sleep_for(std::chrono::microseconds(now - last > std::chrono::milliseconds(1) ? 100 : 10));
  }
  return {};
}

} // namespace standin
