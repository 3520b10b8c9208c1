// A collective is a post and a wait.
#include "runtime/backend/processes/ProcessCommunicator.h"

#include "runtime/plan/Groups.h"

#include <set>

namespace hpc::processes {

ProcessCommunicator::ProcessCommunicator(ProcessWorld &world, const RankPlace &place, int64_t requestCount)
    : world(world), place(place), here(world.local(), place, requestCount + 1),
      requests(world.local().makeRequests(place.rank, requestCount + 1)), own(requestCount),
      transfers(world.makeTransfers(place.rank, requestCount)), isOfGroup(size_t(requestCount) + 1) {}

Expected<int64_t> ProcessCommunicator::prepare(const plan::Collective &collective) {
  // Also for collectives between processes: the call numbers them, and refuses those that are impossible.
  Expected<int64_t> number = here.prepare(collective);
  if (!number.ok())
    return number;
  Prepared entry;
  entry.group = world.group(place, collective.axes);
  if (entry.group) {
    entry.position = plan::seatOf(world.meshAxes(), place.coordinate, collective.axes).position;
    if (host::reduces(collective.kind)) {
      Expected<host::Reduction> reduction = host::findReduction(collective.reduce, collective.dtype);
      if (!reduction.ok())
        return reduction.status();
      entry.reduction = *reduction;
    }
    world.prepare(*entry.group, collective, *number, entry.reduction);
  }
  prepared.push_back(entry);
  return number;
}

int64_t ProcessCommunicator::scratchBytes() const {
  std::set<const ProcessGroup *> groups; // each keeps its memory
  for (const Prepared &entry : prepared)
    if (entry.group)
      groups.insert(entry.group);
  int64_t bytes = here.scratchBytes() + world.earlyBytes(place.rank);
  for (const ProcessGroup *group : groups)
    bytes += group->scratchBytes();
  return bytes;
}

Status ProcessCommunicator::collective(const plan::Collective &collective, int64_t index, const std::byte *source,
                                       std::byte *target, int64_t sourcePosition) {
  if (!prepared[size_t(index)].group)
    return here.collective(collective, index, source, target, sourcePosition);
  HPC_RETURN_IF_ERROR(post(collective, index, source, target, sourcePosition, own));
  return wait(own);
}

Status ProcessCommunicator::post(const plan::Collective &collective, int64_t index, const std::byte *source,
                                 std::byte *target, int64_t sourcePosition, int64_t request) {
  const Prepared &entry = prepared[size_t(index)];
  isOfGroup[size_t(request)] = entry.group;
  if (!entry.group)
    return here.post(collective, index, source, target, sourcePosition, request);
  HPC_RETURN_IF_ERROR(host::checkPosition(collective, sourcePosition, entry.group->size()));
  HPC_RETURN_IF_ERROR(requests[size_t(request)]->post());
  return world.post(*entry.group, collective, index, entry.reduction, entry.position, {source, target, sourcePosition},
                    *requests[size_t(request)]);
}

Status ProcessCommunicator::begin(Expected<std::unique_ptr<Transfer>> transfer, int64_t request) {
  if (!transfer.ok())
    return world.engineFailed(transfer.status());
  transfers[size_t(request)] = std::move(*transfer);
  return Status::success();
}

Status ProcessCommunicator::send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes,
                                 int64_t request) {
  if (!isElsewhere(peer))
    return here.send(peer, channel, source, bytes, request);
  int64_t tag = world.tag(place.rank, peer, channel);
  if (tag < 0 || transfers[size_t(request)])
    return Status::error(ErrorKind::Plan, tag < 0 ? "a message to rank " + std::to_string(peer) + " that the plan lacks"
                                                  : "a request is posted again before it was waited for");
  // A stage must not run ahead of the next by more than its own buffers: its messages would pile up there, in memory
  // that no plan counts.
  return begin(world.transport().send(world.processOf(peer), tag, source, bytes, SendDone::Received), request);
}

Status ProcessCommunicator::receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) {
  if (!isElsewhere(peer))
    return here.receive(peer, channel, target, bytes, request);
  int64_t tag = world.tag(peer, place.rank, channel);
  if (tag < 0 || transfers[size_t(request)])
    return Status::error(ErrorKind::Plan, tag < 0
                                              ? "a message from rank " + std::to_string(peer) + " that the plan lacks"
                                              : "a request is posted again before it was waited for");
  return begin(world.transport().receive(world.processOf(peer), tag, target, bytes), request);
}

Status ProcessCommunicator::wait(int64_t request) {
  if (request != own && transfers[size_t(request)]) {
    Status status = world.wait(*transfers[size_t(request)]);
    if (status.ok()) // else it is given up when all processes are, in restart
      transfers[size_t(request)].reset();
    return status;
  }
  return isOfGroup[size_t(request)] ? world.wait(*requests[size_t(request)]) : here.wait(request);
}

} // namespace hpc::processes
