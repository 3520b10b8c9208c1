// Memory of devices, and pinned memory of the host. A device address is reserved and not accessible: who follows it on
// the host gets a segmentation fault; the stand-in itself works through a second mapping of the same pages. Freed
// addresses are not used again, so late accesses are found.
#pragma once

#include "test/gpu/standin/Clock.h"

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace standin {

/// Bytes [begin, begin + bytes) that something on a device touches.
struct Range {
  uint64_t begin = 0, bytes = 0;
};

/// What was last done to bytes of an allocation, in pieces that grow apart as accesses do.
class History {
public:
  struct Access {
    Moment moment;
    std::string what;
  };
  /// Adds an access; the text of the first earlier one that it is not ordered after, or nothing.
  std::string add(Range range, bool isWrite, const Access &access, const Clock &clock);

private:
  struct Piece {
    uint64_t end = 0;
    Access write;
    std::vector<Access> reads;
  };
  std::map<uint64_t, Piece> pieces; ///< by first byte
  std::map<uint64_t, Piece>::iterator splitAt(uint64_t address);
};

struct Allocation {
  uint64_t begin = 0, bytes = 0;
  int device = -1; ///< -1: pinned memory of the host
  std::byte *data = nullptr;
  History history;
};

/// Locks itself.
class Memory {
public:
  static Memory &instance();

  /// 0 when there is no room.
  uint64_t allocate(int device, uint64_t bytes, uint64_t limit);
  void *allocateHost(uint64_t bytes);
  bool free(uint64_t address, bool isHost);
  /// Where the bytes are, or null where they do not all lie in one allocation. `device` gets the owner.
  std::byte *find(uint64_t address, uint64_t bytes, int &device, uint64_t *begin = nullptr, uint64_t *end = nullptr);
  /// Notes accesses and returns what they race with.
  std::vector<std::string> note(const std::vector<Range> &ranges, bool isWrite, const History::Access &access,
                                const Clock &clock);
  uint64_t used(int device);
  std::string leaks();

private:
  Memory();
  Allocation *findAllocation(uint64_t address, uint64_t bytes);

  static constexpr uint64_t spaceBytes = uint64_t(1) << 38;
  std::mutex mutex;
  int file = -1;
  std::byte *reserved = nullptr, *alias = nullptr;
  uint64_t next = 1 << 20;
  std::map<uint64_t, Allocation> allocations; ///< by first byte
};

} // namespace standin
