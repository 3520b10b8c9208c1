// Messages between two processes in a collective: which bytes in which order, the same from both ends, and how running
// sums become results. No waiting and no message in here.
#include "runtime/backend/processes/ProcessGroup.h"

#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <cstring>

namespace hpc::processes {

using plan::CollectiveKind;

/// Below this a second round of messages takes longer than the bytes that it saves.
constexpr int64_t oneRoundBytes = 16 << 10;

bool ProcessGroup::isOneRound(const plan::Collective &collective) const {
  return collective.count * byteSize(collective.dtype) <= oneRoundBytes;
}

/// In whole cache lines, so that no line is written by two.
ProcessGroup::Part ProcessGroup::part(const plan::Collective &collective, size_t side) const {
  if (isOneRound(collective))
    return {0, collective.count};
  int64_t most = roundUp(ceilDiv(collective.count, int64_t(sides.size())), 64 / byteSize(collective.dtype));
  int64_t first = std::min(collective.count, int64_t(side) * most);
  return {first, std::min(most, collective.count - first)};
}

int64_t ProcessGroup::reducedBytes(const plan::Collective &collective, const host::Reduction &reduction, size_t from,
                                   size_t to) const {
  int64_t elements = collective.kind == CollectiveKind::AllReduce
                         ? part(collective, to).count
                         : collective.count * int64_t(sides[to].positions.size());
  return elements *
         (sendsMembers() ? byteSize(collective.dtype) * int64_t(sides[from].positions.size()) : reduction.wideSize);
}

/// Whether member `taker` of a permute takes the data of member `from`. A table by micro-batch does not help here,
/// where the micro-batch is not known: then all data goes to all processes, and each member takes its own.
bool ProcessGroup::isTaken(const plan::Collective &collective, int64_t taker, int64_t from,
                           const Meeting &meeting) const {
  const std::vector<int64_t> &table = collective.source.values;
  const int64_t coordinate = coordinates[size_t(taker)];
  if (table.size() == 1)
    return table[0] == from;
  if (int64_t(table.size()) == ranksPerStage)
    return table[size_t(coordinate)] == from;
  return true;
}

/// Merges neighbours, so that adjacent bytes are sent from their place.
static void append(std::vector<Segment> &list, const std::byte *address, int64_t bytes) {
  if (bytes == 0)
    return;
  if (!list.empty() && list.back().address + list.back().bytes == address)
    list.back().bytes += bytes;
  else
    list.push_back({const_cast<std::byte *>(address), bytes});
}

std::vector<Segment> ProcessGroup::outgoing(const Meeting &meeting, size_t to) const {
  const plan::Collective &collective = *meeting.collective;
  const int64_t elementSize = byteSize(collective.dtype), bytes = collective.count * elementSize;
  const Part wanted = part(collective, to);
  std::vector<Segment> list;
  switch (collective.kind) {
  case CollectiveKind::AllReduce:
    for (const host::Share &share : meeting.shares)
      append(list, share.source + wanted.first * elementSize, wanted.count * elementSize);
    break;
  case CollectiveKind::AllGather:
    for (const host::Share &share : meeting.shares)
      append(list, share.source, bytes);
    break;
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    for (int64_t position : sides[to].positions)
      for (const host::Share &share : meeting.shares)
        append(list, share.source + position * bytes, bytes);
    break;
  case CollectiveKind::Permute:
    for (int64_t taker : sides[to].positions)
      for (int64_t from : sides[mine].positions)
        if (isTaken(collective, taker, from, meeting))
          append(list, share(meeting, from).source, bytes);
    break;
  }
  return list;
}

std::vector<Segment> ProcessGroup::arriving(const Meeting &meeting, size_t from) const {
  const plan::Collective &collective = *meeting.collective;
  const int64_t bytes = collective.count * byteSize(collective.dtype);
  std::vector<Segment> list;
  switch (collective.kind) {
  case CollectiveKind::AllGather:
    for (int64_t position : sides[from].positions)
      append(list, meeting.shares[0].target + position * bytes, bytes);
    break;
  case CollectiveKind::AllToAll:
    for (int64_t taker : sides[mine].positions)
      for (int64_t position : sides[from].positions)
        append(list, share(meeting, taker).target + position * bytes, bytes);
    break;
  case CollectiveKind::Permute:
    for (int64_t taker : sides[mine].positions)
      for (int64_t position : sides[from].positions)
        if (isTaken(collective, taker, position, meeting))
          // Null: the bytes arrive, and no member here takes them.
          list.push_back(
              {share(meeting, taker).sourcePosition == position ? share(meeting, taker).target : nullptr, bytes});
    break;
  case CollectiveKind::AllReduce:
  case CollectiveKind::ReduceScatter:
    break; // they arrive to be reduced
  }
  return list;
}

void ProcessGroup::presum(const Meeting &meeting, int64_t first, int64_t count, std::byte *target) const {
  const host::Reduction &reduction = *meeting.reduction;
  const int64_t elementSize = byteSize(meeting.collective->dtype), step = 8192 / reduction.wideSize;
  for (int64_t at = 0; at < count; at += step) {
    const int64_t elements = std::min(step, count - at), offset = (first + at) * elementSize;
    std::byte *running = target + at * reduction.wideSize;
    reduction.begin(running, meeting.shares[0].source + offset, elements);
    for (size_t i = 1; i < meeting.shares.size(); ++i)
      reduction.add(running, meeting.shares[i].source + offset, elements);
  }
}

/// Elements first .. first+count-1 of this side's sources, and block `block` of `count` elements of the received data.
void ProcessGroup::reduceInto(const Meeting &meeting, int64_t first, int64_t block, int64_t count,
                              std::byte *target) const {
  const host::Reduction &reduction = *meeting.reduction;
  const int64_t elementSize = byteSize(meeting.collective->dtype), wideSize = reduction.wideSize;
  alignas(64) std::byte running[8192], own[8192];
  const int64_t step = int64_t(sizeof(running)) / wideSize;
  for (int64_t at = 0; at < count; at += step) {
    const int64_t elements = std::min(step, count - at);
    if (sendsMembers()) {
      for (int64_t position = 0; position < size(); ++position) {
        const size_t side = sideOf[size_t(position)], member = memberOf[size_t(position)];
        const int64_t members = int64_t(sides[side].positions.size());
        const std::byte *source = side == mine ? meeting.shares[member].source + first * elementSize
                                               : meeting.in + meeting.incoming[side] +
                                                     (block * members + int64_t(member)) * count * elementSize;
        (position == 0 ? reduction.begin : reduction.add)(running, source + at * elementSize, elements);
      }
    } else {
      presum(meeting, first + at, elements, own);
      for (size_t side = 0; side < sides.size(); ++side) {
        const std::byte *sum =
            side == mine ? own : meeting.in + meeting.incoming[side] + (block * count + at) * wideSize;
        if (side == 0)
          std::memcpy(running, sum, size_t(elements * wideSize));
        else
          reduction.merge(running, sum, elements);
      }
    }
    reduction.end(running, elements);
    std::memcpy(target + at * elementSize, running, size_t(elements * elementSize));
  }
}

} // namespace hpc::processes
