// A collective is: show the others source and target, meet, do one's share, meet. Posted ones: see PostedCollective.h.
#include "runtime/backend/host/HostCommunicator.h"

#include <algorithm>
#include <cstring>

namespace hpc::host {

Expected<int64_t> HostCommunicator::prepare(const plan::Collective &collective) {
  Expected<Seat> seat = world.seat(place, collective.axes);
  if (!seat.ok())
    return seat.status();
  Reduction reduction;
  if (reduces(collective.kind)) {
    Expected<Reduction> found = findReduction(collective.reduce, collective.dtype);
    if (!found.ok())
      return found.status();
    reduction = *found;
  }
  if (collective.kind != plan::CollectiveKind::AllReduce && collective.src.buffer == collective.dst.buffer)
    scratch.resize(std::max(scratch.size(), size_t(sourceBytes(collective, seat->group->size()))));
  // All ranks of a stage prepare the same collectives in the same order, so the index identifies a collective.
  int64_t number = int64_t(prepared.size());
  prepared.push_back({*seat, reduction, &seat->group->posted(number)});
  return number;
}

Status HostCommunicator::collective(const plan::Collective &collective, int64_t index, const std::byte *source,
                                    std::byte *target, int64_t sourcePosition) {
  const Prepared &entry = prepared[size_t(index)];
  Group &group = *entry.seat.group;
  const int64_t position = entry.seat.position;
  HPC_RETURN_IF_ERROR(checkPosition(collective, sourcePosition, group.size()));
  Share share{source, target, sourcePosition};
  if (needsCopy(collective, share, group.size())) {
    const int64_t bytes = sourceBytes(collective, group.size());
    if (int64_t(scratch.size()) < bytes)
      return Status::error(ErrorKind::Plan, "source and target of a collective overlap in two buffers");
    std::memcpy(scratch.data(), source, size_t(bytes));
    share.source = scratch.data();
  }
  group.shares[size_t(position)] = share;
  group.numbers[size_t(position)] = index;
  HPC_RETURN_IF_ERROR(group.barrier.arrive());
  for (int64_t number : group.numbers)
    if (number != index)
      return Status::error(ErrorKind::Plan, "the ranks of a group meet in different collectives");
  exchange(collective, entry.reduction, group.shares, position);
  return group.barrier.arrive();
}

Status HostCommunicator::post(const plan::Collective &collective, int64_t index, const std::byte *source,
                              std::byte *target, int64_t sourcePosition, int64_t request) {
  const Prepared &entry = prepared[size_t(index)];
  HPC_RETURN_IF_ERROR(checkPosition(collective, sourcePosition, entry.seat.group->size()));
  for (const std::unique_ptr<Request> &earlier : requests)
    earlier->doOwnShare();
  HPC_RETURN_IF_ERROR(requests[size_t(request)]->post());
  entry.queue->post(collective, entry.reduction, entry.seat.position, {source, target, sourcePosition},
                    *requests[size_t(request)]);
  return Status::success();
}

Status HostCommunicator::send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) {
  Mailbox *mailbox = world.mailbox(place.rank, peer, channel);
  if (!mailbox)
    return Status::error(ErrorKind::Internal, "no mailbox to rank " + std::to_string(peer));
  return mailbox->send(source, bytes, *requests[size_t(request)]);
}

Status HostCommunicator::receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) {
  Mailbox *mailbox = world.mailbox(peer, place.rank, channel);
  if (!mailbox)
    return Status::error(ErrorKind::Internal, "no mailbox from rank " + std::to_string(peer));
  return mailbox->receive(target, bytes, *requests[size_t(request)]);
}

} // namespace hpc::host
