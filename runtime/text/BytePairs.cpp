#include "runtime/text/BytePairs.h"

#include "runtime/base/Hash.h"

#include <cstring>
#include <queue>

namespace hpc::text {

Expected<BytePairs> BytePairs::create(std::vector<std::string> tokens, const std::vector<std::pair<int32_t, int32_t>> &merges,
                                      bool takesWholePieces) {
  BytePairs pairs;
  pairs.tokensById = std::move(tokens);
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < pairs.tokensById.size(); ++id)
    if (!pairs.tokensById[id].empty())
      ids.emplace(pairs.tokensById[id], int32_t(id));
  for (int byte = 0; byte < 256; ++byte) {
    const char text = char(byte);
    const auto found = ids.find(std::string_view(&text, 1));
    if (found == ids.end())
      return Status::error(ErrorKind::Model, "the vocabulary has no token for byte " + std::to_string(byte) + "; a byte-level one has all 256");
    pairs.ofByte[size_t(byte)] = found->second;
  }
  pairs.merges.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = merges[rank];
    const std::string joined = pairs.tokensById[size_t(left)] + pairs.tokensById[size_t(right)];
    const auto found = ids.find(joined);
    if (found == ids.end())
      return Status::error(ErrorKind::Model, "merge " + std::to_string(rank) + " makes a token that the vocabulary does not have");
    pairs.merges.emplace(uint64_t(left) << 32 | uint32_t(right), Merge{int32_t(rank), found->second});
  }
  if (takesWholePieces)
    pairs.whole = std::move(ids);
  return pairs;
}

const BytePairs::Merge *BytePairs::find(int32_t left, int32_t right) const {
  const auto found = merges.find(uint64_t(left) << 32 | uint32_t(right));
  return found == merges.end() ? nullptr : &found->second;
}

/// In O(n log n): the candidates are in a heap, parts in a doubly linked list.
void BytePairs::merge(std::string_view piece, std::vector<int32_t> &ids) const {
  struct Part {
    int32_t id, previous, next; ///< id < 0: joined to the part before
  };
  struct Candidate {
    int32_t rank, place, left, right, result;
    bool operator<(const Candidate &other) const { return rank != other.rank ? rank > other.rank : place > other.place; }
  };
  thread_local std::vector<Part> parts;
  std::priority_queue<Candidate> candidates;
  const int32_t count = int32_t(piece.size());
  parts.resize(piece.size());
  for (int32_t i = 0; i < count; ++i)
    parts[size_t(i)] = {ofByte[uint8_t(piece[size_t(i)])], i - 1, i + 1 < count ? i + 1 : -1};
  auto consider = [&](int32_t place) {
    const int32_t next = place < 0 ? -1 : parts[size_t(place)].next;
    if (next < 0)
      return;
    const int32_t left = parts[size_t(place)].id, right = parts[size_t(next)].id;
    if (const Merge *merge = find(left, right))
      candidates.push({merge->rank, place, left, right, merge->result});
  };
  for (int32_t i = 0; i < count; ++i)
    consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Part &part = parts[size_t(best.place)];
    if (part.id != best.left || part.next < 0 || parts[size_t(part.next)].id != best.right)
      continue; // an earlier merge took one of the two
    Part &joined = parts[size_t(part.next)];
    part.id = best.result;
    joined.id = -1;
    part.next = joined.next;
    if (part.next >= 0)
      parts[size_t(part.next)].previous = best.place;
    consider(part.previous);
    consider(best.place);
  }
  for (int32_t place = 0; place >= 0 && count > 0; place = parts[size_t(place)].next)
    ids.push_back(parts[size_t(place)].id);
}

void BytePairs::encode(std::string_view piece, std::vector<int32_t> &ids, Cache &cache) const {
  if (!whole.empty())
    if (const auto found = whole.find(piece); found != whole.end()) {
      ids.push_back(found->second);
      return;
    }
  if (piece.size() == 1) {
    ids.push_back(ofByte[uint8_t(piece[0])]);
    return;
  }
  if (piece.empty() || piece.size() > sizeof(Cache::Slot::piece))
    return merge(piece, ids);
  Cache::Slot &slot = cache.slots[hashBytes(piece.data(), int64_t(piece.size())) % cache.slots.size()];
  if (slot.bytes == piece.size() && std::memcmp(slot.piece, piece.data(), piece.size()) == 0) {
    ids.insert(ids.end(), slot.ids, slot.ids + slot.count);
    return;
  }
  const size_t before = ids.size();
  merge(piece, ids);
  if (const size_t count = ids.size() - before; count <= std::size(slot.ids)) {
    slot.bytes = uint8_t(piece.size()), slot.count = uint8_t(count);
    std::memcpy(slot.piece, piece.data(), piece.size());
    std::memcpy(slot.ids, ids.data() + before, count * sizeof(int32_t));
  }
}

} // namespace hpc::text
