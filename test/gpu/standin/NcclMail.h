// How ranks of the stand-in for NCCL reach each other, in one process or in several: a file in shared memory, named by
// the communicator's id, with a box for each ordered pair of ranks. Nothing is buffered: who sends is done when the
// receiver has taken the last byte, so whoever relies on a buffer waits for ever, as NCCL's kernels may.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace standin {

/// What both ends of a message have to agree on.
struct Label {
  char call[24];   ///< "AllReduce", "message"
  uint64_t number; ///< of the call, among the communicator's
  uint64_t bytes;
  int32_t type, operation;
};

/// One message of a call, as its rank sees it.
struct Piece {
  int peer = 0;
  bool isSend = false;
  std::byte *data = nullptr;
  Label label;
  uint64_t moved = 0;
  bool isTaken = false; ///< a chunk lies in the box, and has to be taken before the next
  bool isDone = false;
};

class NcclMail {
public:
  /// Joins the file of an id; `place` tells the rank's card from others. An error text where it does not belong.
  static std::string join(const std::string &name, int ranks, int rank, uint64_t place, NcclMail &mail);
  NcclMail() = default;
  NcclMail(NcclMail &&other) noexcept { *this = std::move(other); }
  NcclMail &operator=(NcclMail &&other) noexcept;
  ~NcclMail();

  /// Whether all ranks have joined.
  bool isComplete() const;
  /// Moves all pieces, as fast as the other ends take and give, until they are done or `stop` says so. An error text
  /// where the other end calls something else, or nobody comes for `patience` seconds.
  std::string move(std::vector<Piece> &pieces, const std::function<bool()> &stop, double patience);

private:
  struct Box;
  struct Head;
  Box &box(int from, int to) const;
  /// Whether something moved.
  bool step(Piece &piece, std::string &error);

  std::string path;
  Head *head = nullptr;
  size_t bytes = 0;
  int ranks = 0, rank = 0;
};

} // namespace standin
