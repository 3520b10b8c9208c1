// Joining, posting and waiting. NcclExchange.cpp maps collectives to NCCL's calls.
#include "runtime/backend/cuda/NcclCommunicator.h"

#include "runtime/plan/Groups.h"

#include <algorithm>
#include <thread>

namespace hpc::cuda {

Expected<std::unique_ptr<NcclCommunicator>> NcclCommunicator::create(const Nccl &nccl, const NcclWorld &world,
                                                                     ControlPlane &plane, const plan::Plan &plan,
                                                                     CudaDevice &device, ReduceKernels &reductions,
                                                                     const RankPlace &place, int64_t requests,
                                                                     bool inRankOrder) {
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(nccl, world, plane, plan, device, reductions, place, requests, inRankOrder));
  const Gpu &gpu = device.gpu();
  made->connections.resize(world.size());
  for (size_t i = 0; i < world.size(); ++i) {
    const std::vector<int64_t> &members = world.membersOf(i);
    auto found = std::find(members.begin(), members.end(), place.rank);
    if (found == members.end())
      continue;
    Connection &connection = made->connections[i];
    connection.position = found - members.begin();
    connection.size = int64_t(members.size());
    Expected<Stream> stream = gpu.makeStream();
    if (!stream.ok())
      return stream.status();
    connection.stream = std::move(*stream);
  }
  for (int64_t request = 0; request <= requests; ++request) {
    Slot slot;
    for (Event *event : {&slot.ready, &slot.done}) {
      Expected<Event> fresh = gpu.makeEvent();
      if (!fresh.ok())
        return fresh.status();
      *event = std::move(*fresh);
    }
    made->slots.push_back(std::move(slot));
  }
  HPC_RETURN_IF_ERROR(made->connect());
  device.watchBy(made.get());
  return made;
}

NcclCommunicator::~NcclCommunicator() {
  device.watchBy(nullptr);
  abort(); // all ranks have agreed that they are done, so nothing of anybody's is cut off
}

/// In the order of the walk: all members of the first incomplete communicator are about to join it.
Status NcclCommunicator::connect() {
  generation = world.generation();
  for (size_t i = 0; i < connections.size(); ++i) {
    Connection &connection = connections[i];
    if (connection.size == 0)
      continue;
    NcclConfig config;
    NcclResult result =
        nccl.init(&connection.handle, int(connection.size), world.id(i), int(connection.position), &config);
    HPC_RETURN_IF_ERROR(settle(connection, result, "joining the other ranks"));
  }
  return Status::success();
}

/// A call returns at once; this returns when it has come into effect.
Status NcclCommunicator::settle(Connection &connection, NcclResult result, const std::string &what) {
  while (result == ncclInProgress) {
    HPC_RETURN_IF_ERROR(plane.failure());
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (NcclResult asked = nccl.asyncError(connection.handle, &result); asked != ncclSuccess)
      result = asked;
  }
  return result == ncclSuccess ? Status::success() : plane.explain(cuda::check(nccl, result, what));
}

Status NcclCommunicator::begin() {
  HPC_RETURN_IF_ERROR(world.end());
  if (generation == world.generation())
    return Status::success();
  device.forgetSteps(false); // a graph would call communicators that are gone
  return connect();
}

Status NcclCommunicator::check() {
  Status failure = plane.failure();
  for (Connection &connection : connections) {
    NcclResult state = ncclSuccess;
    if (!failure.ok() || !connection.handle)
      continue;
    NcclResult asked = nccl.asyncError(connection.handle, &state);
    state = asked != ncclSuccess ? asked : state;
    if (state != ncclSuccess && state != ncclInProgress)
      failure = plane.explain(cuda::check(nccl, state, "talking to the other ranks"));
  }
  if (!failure.ok())
    abort();
  return failure;
}

void NcclCommunicator::abort() {
  for (Connection &connection : connections)
    if (connection.handle) {
      nccl.abort(connection.handle);
      connection.handle = nullptr;
    }
  for (Slot &slot : slots)
    slot.posted = false;
}

Status NcclCommunicator::start(Connection &connection, int64_t request, const std::function<Status()> &call) {
  Slot &slot = slots[size_t(request)];
  if (slot.posted)
    return Status::error(ErrorKind::Plan, "a request is posted again before it was waited for");
  HPC_RETURN_IF_ERROR(plane.failure());
  HPC_RETURN_IF_ERROR(cuda::check(driver, driver.recordEvent(slot.ready.get(), device.stream()), "recording an event"));
  HPC_RETURN_IF_ERROR(
      cuda::check(driver, driver.waitForEvent(connection.stream.get(), slot.ready.get(), 0), "ordering streams"));
  HPC_RETURN_IF_ERROR(call());
  HPC_RETURN_IF_ERROR(
      cuda::check(driver, driver.recordEvent(slot.done.get(), connection.stream.get()), "recording an event"));
  slot.posted = true;
  return Status::success();
}

Status NcclCommunicator::collective(const plan::Collective &collective, int64_t index, const std::byte *source,
                                    std::byte *target, int64_t sourcePosition) {
  HPC_RETURN_IF_ERROR(post(collective, index, source, target, sourcePosition, own));
  return wait(own);
}

Status NcclCommunicator::message(int64_t sender, int64_t receiver, int32_t channel, std::byte *address, int64_t bytes,
                                 int64_t request) {
  const int64_t number = world.messages(sender, receiver, channel);
  if (number < 0)
    return Status::error(ErrorKind::Plan, "a message from rank " + std::to_string(sender) + " to rank " +
                                              std::to_string(receiver) + " that the plan lacks");
  if (bytes == 0)
    return Status::success();
  Connection &connection = connections[size_t(number)];
  const bool isSend = sender == place.rank;
  return start(connection, request, [&] {
    NcclResult result =
        isSend ? nccl.send(address, size_t(bytes), ncclI8, 1, connection.handle, connection.stream.get())
               : nccl.receive(address, size_t(bytes), ncclI8, 0, connection.handle, connection.stream.get());
    return settle(connection, result, isSend ? "sending" : "receiving");
  });
}

Status NcclCommunicator::send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) {
  return message(place.rank, peer, channel, const_cast<std::byte *>(source), bytes, request);
}

Status NcclCommunicator::receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) {
  return message(peer, place.rank, channel, target, bytes, request);
}

Status NcclCommunicator::wait(int64_t request) {
  Slot &slot = slots[size_t(request)];
  if (!slot.posted)
    return Status::success();
  slot.posted = false;
  return device.enqueue([&] {
    return cuda::check(driver, driver.waitForEvent(device.stream(), slot.done.get(), 0), "ordering streams");
  });
}

} // namespace hpc::cuda
