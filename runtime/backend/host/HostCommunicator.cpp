// Every collective is: show the others source and target, meet, move data, meet. Between the two meetings a rank writes
// only memory that no other rank reads or writes, which is why an all-reduce may have its result in place.
#include "runtime/backend/host/HostCommunicator.h"

#include <algorithm>
#include <cstring>

namespace hpc::host {

namespace {

using plan::CollectiveKind;

bool reduces(CollectiveKind kind) { return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter; }

/// Bytes of a rank's source and target.
int64_t sourceBytes(const plan::Collective &collective, int64_t members) {
  bool blocks = collective.kind == CollectiveKind::ReduceScatter || collective.kind == CollectiveKind::AllToAll;
  return collective.count * byteSize(collective.dtype) * (blocks ? members : 1);
}
int64_t targetBytes(const plan::Collective &collective, int64_t members) {
  bool blocks = collective.kind == CollectiveKind::AllGather || collective.kind == CollectiveKind::AllToAll;
  return collective.count * byteSize(collective.dtype) * (blocks ? members : 1);
}

void copyBytes(std::byte *target, const std::byte *source, int64_t bytes) {
  if (bytes > 0 && target != source)
    std::memcpy(target, source, size_t(bytes));
}

/// Reduces elements first .. first+count-1 of all sources and calls store(address, first element, elements) on pieces.
template <typename F>
void reduceRange(const std::vector<Group::Member> &members, Accumulate accumulate, int64_t elementSize, int64_t first,
                 int64_t count, F store) {
  alignas(64) std::byte block[8192];
  const int64_t step = int64_t(sizeof(block)) / elementSize;
  for (int64_t at = first; at < first + count; at += step) {
    int64_t elements = std::min(step, first + count - at);
    std::memcpy(block, members[0].source + at * elementSize, size_t(elements * elementSize));
    for (size_t j = 1; j < members.size(); ++j)
      accumulate(block, members[j].source + at * elementSize, elements);
    store(block, at, elements);
  }
}

} // namespace

Expected<int64_t> HostCommunicator::prepare(const plan::Collective &collective) {
  Expected<Seat> seat = world.seat(place, collective.axes);
  if (!seat.ok())
    return seat.status();
  Accumulate accumulate = nullptr;
  if (reduces(collective.kind)) {
    Expected<Accumulate> found = findAccumulate(collective.reduce, collective.dtype);
    if (!found.ok())
      return found.status();
    accumulate = *found;
  }
  if (collective.kind != CollectiveKind::AllReduce && collective.src.buffer == collective.dst.buffer)
    scratch.resize(std::max(scratch.size(), size_t(sourceBytes(collective, seat->group->size()))));
  prepared.push_back({*seat, accumulate});
  return int64_t(prepared.size()) - 1;
}

void HostCommunicator::exchange(const plan::Collective &collective, const Prepared &prepared, std::byte *target,
                                int64_t sourcePosition) const {
  const std::vector<Group::Member> &members = prepared.seat.group->members;
  const int64_t elementSize = byteSize(collective.dtype), count = collective.count, bytes = count * elementSize;
  const int64_t size = int64_t(members.size()), me = prepared.seat.position;
  switch (collective.kind) {
  case CollectiveKind::AllReduce: {
    // Each rank reduces one part, in whole cache lines, and writes it to all.
    int64_t line = 64 / elementSize, part = ((count + size - 1) / size + line - 1) / line * line;
    int64_t first = std::min(count, me * part);
    reduceRange(members, prepared.accumulate, elementSize, first, std::min(part, count - first),
                [&](const std::byte *block, int64_t at, int64_t elements) {
                  for (const Group::Member &member : members)
                    std::memcpy(member.target + at * elementSize, block, size_t(elements * elementSize));
                });
    return;
  }
  case CollectiveKind::ReduceScatter:
    reduceRange(members, prepared.accumulate, elementSize, me * count, count,
                [&](const std::byte *block, int64_t at, int64_t elements) {
                  std::memcpy(target + (at - me * count) * elementSize, block, size_t(elements * elementSize));
                });
    return;
  case CollectiveKind::AllGather:
    for (int64_t j = 0; j < size; ++j)
      copyBytes(target + j * bytes, members[size_t(j)].source, bytes);
    return;
  case CollectiveKind::AllToAll:
    for (int64_t j = 0; j < size; ++j)
      copyBytes(target + j * bytes, members[size_t(j)].source + me * bytes, bytes);
    return;
  case CollectiveKind::Permute:
    copyBytes(target, members[size_t(sourcePosition)].source, bytes);
    return;
  }
}

Status HostCommunicator::collective(const plan::Collective &collective, int64_t index, const std::byte *source,
                                    std::byte *target, int64_t sourcePosition) {
  const Prepared &entry = prepared[size_t(index)];
  Group &group = *entry.seat.group;
  const int64_t size = group.size();
  if (collective.kind == CollectiveKind::Permute && (sourcePosition < 0 || sourcePosition >= size))
    return Status::error(ErrorKind::Plan, "a permute takes from position " + std::to_string(sourcePosition) +
                                              " of a group of " + std::to_string(size));
  // A target over the source would overwrite what others still read; an all-reduce writes each place once, after all
  // reading of it.
  const int64_t bytes = sourceBytes(collective, size);
  if (collective.kind != CollectiveKind::AllReduce && source < target + targetBytes(collective, size) &&
      target < source + bytes) {
    if (int64_t(scratch.size()) < bytes)
      return Status::error(ErrorKind::Plan, "source and target of a collective overlap in two buffers");
    copyBytes(scratch.data(), source, bytes);
    source = scratch.data();
  }
  group.members[size_t(entry.seat.position)] = {&collective, source, target};
  HPC_RETURN_IF_ERROR(group.barrier.arrive());
  for (const Group::Member &member : group.members)
    if (member.collective != &collective)
      return Status::error(ErrorKind::Plan, "the ranks of a group meet in different collectives");
  exchange(collective, entry, target, sourcePosition);
  return group.barrier.arrive();
}

Status HostCommunicator::send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) {
  Mailbox *mailbox = world.mailbox(place.rank, peer, channel);
  if (!mailbox)
    return Status::error(ErrorKind::Internal, "no mailbox to rank " + std::to_string(peer));
  return mailbox->send(source, bytes, world.request(place.rank, request));
}

Status HostCommunicator::receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) {
  Mailbox *mailbox = world.mailbox(peer, place.rank, channel);
  if (!mailbox)
    return Status::error(ErrorKind::Internal, "no mailbox from rank " + std::to_string(peer));
  return mailbox->receive(target, bytes, world.request(place.rank, request));
}

} // namespace hpc::host
