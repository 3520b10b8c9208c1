// One sparse file, mapped twice.
#include "test/gpu/standin/Memory.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace standin {

std::map<uint64_t, History::Piece>::iterator History::splitAt(uint64_t address) {
  auto after = pieces.upper_bound(address);
  if (after == pieces.begin())
    return after;
  auto before = std::prev(after);
  if (before->first == address)
    return before;
  if (before->second.end <= address)
    return after;
  Piece rest = before->second;
  before->second.end = address;
  return pieces.emplace(address, std::move(rest)).first;
}

std::string History::add(Range range, bool isWrite, const Access &access, const Clock &clock) {
  std::string race;
  const uint64_t end = range.begin + range.bytes;
  splitAt(end);
  uint64_t at = range.begin;
  for (auto piece = splitAt(at); at < end;) {
    if (piece == pieces.end() || piece->first > at) { // a gap that nobody has touched
      const uint64_t until = piece == pieces.end() ? end : std::min(end, piece->first);
      piece = pieces.emplace(at, Piece{until, {}, {}}).first;
    }
    Piece &here = piece->second;
    auto compare = [&](const Access &other) {
      if (race.empty() && other.moment.time > 0 && !clock.knows(other.moment))
        race = other.what;
    };
    compare(here.write);
    if (isWrite) {
      for (const Access &read : here.reads)
        compare(read);
      here.write = access;
      here.reads.clear();
    } else {
      bool found = false;
      for (Access &read : here.reads)
        if (read.moment.timeline == access.moment.timeline) {
          read = access;
          found = true;
        }
      if (!found)
        here.reads.push_back(access);
    }
    at = here.end;
    ++piece;
  }
  return race;
}

Memory &Memory::instance() {
  static Memory *memory = new Memory; // streams may outlive static destruction
  return *memory;
}

Memory::Memory() {
  file = ::memfd_create("gpu", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, off_t(spaceBytes)) != 0)
    std::abort();
  void *guarded = ::mmap(nullptr, spaceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void *open = ::mmap(nullptr, spaceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (guarded == MAP_FAILED || open == MAP_FAILED)
    std::abort();
  reserved = static_cast<std::byte *>(guarded);
  alias = static_cast<std::byte *>(open);
}

uint64_t Memory::allocate(int device, uint64_t bytes, uint64_t limit) {
  if (used(device) + bytes > limit)
    return 0;
  std::lock_guard<std::mutex> lock(mutex);
  const uint64_t room = (bytes + 8191) / 4096 * 4096; // and a page that belongs to nobody
  if (next + room > spaceBytes)
    return 0;
  Allocation allocation;
  allocation.begin = uint64_t(reinterpret_cast<uintptr_t>(reserved)) + next;
  allocation.bytes = bytes;
  allocation.device = device;
  allocation.data = alias + next;
  std::memset(allocation.data, 0xa5, bytes); // as a card leaves it: not zero
  next += room;
  const uint64_t begin = allocation.begin;
  allocations.emplace(begin, std::move(allocation));
  return begin;
}

void *Memory::allocateHost(uint64_t bytes) {
  void *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::lock_guard<std::mutex> lock(mutex);
  Allocation allocation;
  allocation.begin = uint64_t(reinterpret_cast<uintptr_t>(data));
  allocation.bytes = bytes;
  allocation.data = static_cast<std::byte *>(data);
  const uint64_t begin = allocation.begin;
  allocations.emplace(begin, std::move(allocation));
  return data;
}

bool Memory::free(uint64_t address, bool isHost) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = allocations.find(address);
  if (found == allocations.end() || (found->second.device < 0) != isHost)
    return false;
  if (isHost)
    std::free(found->second.data);
  else
    ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(found->second.data - alias),
                off_t((found->second.bytes + 4095) / 4096 * 4096));
  allocations.erase(found);
  return true;
}

Allocation *Memory::findAllocation(uint64_t address, uint64_t bytes) {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin())
    return nullptr;
  Allocation &allocation = std::prev(after)->second;
  const uint64_t offset = address - allocation.begin;
  return offset <= allocation.bytes && bytes <= allocation.bytes - offset ? &allocation : nullptr;
}

std::byte *Memory::find(uint64_t address, uint64_t bytes, int &device, uint64_t *begin, uint64_t *end) {
  std::lock_guard<std::mutex> lock(mutex);
  Allocation *allocation = findAllocation(address, bytes);
  if (!allocation)
    return nullptr;
  device = allocation->device;
  if (begin)
    *begin = allocation->begin;
  if (end)
    *end = allocation->begin + allocation->bytes;
  return allocation->data + (address - allocation->begin);
}

std::vector<std::string> Memory::note(const std::vector<Range> &ranges, bool isWrite, const History::Access &access,
                                      const Clock &clock) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string> races;
  for (const Range &range : ranges) {
    Allocation *allocation = range.bytes == 0 ? nullptr : findAllocation(range.begin, range.bytes);
    if (!allocation)
      continue;
    std::string other = allocation->history.add(range, isWrite, access, clock);
    if (!other.empty() && races.empty())
      races.push_back(access.what + (isWrite ? " writes" : " reads") + " what '" + other +
                      "' touches, and nothing orders the two");
  }
  return races;
}

uint64_t Memory::used(int device) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t bytes = 0;
  for (const auto &[begin, allocation] : allocations)
    bytes += allocation.device == device ? allocation.bytes : 0;
  return bytes;
}

std::string Memory::leaks() {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  for (const auto &[begin, allocation] : allocations)
    text +=
        (allocation.device < 0 ? "pinned memory, " : "device memory, ") + std::to_string(allocation.bytes) + " bytes\n";
  return text;
}

} // namespace standin
