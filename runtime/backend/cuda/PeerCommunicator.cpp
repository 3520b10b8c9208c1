// An exchange on the GPU: every share waits until all parties are ready; every party waits until all shares are done.
#include "runtime/backend/cuda/PeerCommunicator.h"

#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::cuda {

using plan::CollectiveKind;

Expected<std::unique_ptr<PeerCommunicator>> PeerCommunicator::create(std::shared_ptr<PeerWorld> peers,
                                                                     CudaDevice &device, ReduceKernels &reductions,
                                                                     const RankPlace &place, int64_t requests) {
  const Gpu &gpu = device.gpu();
  std::unique_ptr<PeerCommunicator> made(new PeerCommunicator(std::move(peers), device, reductions, place, requests));
  Expected<Stream> messages = gpu.makeStream();
  if (!messages.ok())
    return messages.status();
  made->messages = std::move(*messages);
  for (int64_t request = 0; request <= requests; ++request) {
    Slot slot;
    for (Event *event : {&slot.ready, &slot.shared, &slot.done}) {
      Expected<Event> fresh = gpu.makeEvent();
      if (!fresh.ok())
        return fresh.status();
      *event = std::move(*fresh);
    }
    made->slots.push_back(std::move(slot));
  }
  return made;
}

Expected<int64_t> PeerCommunicator::prepare(const plan::Collective &collective) {
  Expected<host::Seat> seat = peers->world().seat(place, collective.axes);
  if (!seat.ok())
    return seat.status();
  Prepared entry{*seat, nullptr, nullptr};
  const int size = int(seat->group->size());
  if (host::reduces(collective.kind)) {
    Expected<host::Reduction> meaning = host::findReduction(collective.reduce, collective.dtype);
    if (!meaning.ok())
      return meaning.status();
    Expected<KernelObject> kernel = reductions.find(collective.reduce, collective.dtype, size,
                                                    collective.kind == CollectiveKind::AllReduce ? size : 1);
    if (!kernel.ok())
      return kernel.status();
    entry.kernel = *kernel;
  }
  Stream &stream = streams[collective.axes];
  if (!stream) {
    Expected<Stream> fresh = device.gpu().makeStream();
    if (!fresh.ok())
      return fresh.status();
    stream = std::move(*fresh);
  }
  entry.stream = stream.get();
  prepared.push_back(entry);
  return int64_t(prepared.size()) - 1;
}

Status PeerCommunicator::follow(StreamHandle stream, EventHandle event) const {
  return check(driver, driver.waitForEvent(stream, event, 0), "ordering streams");
}

Status PeerCommunicator::record(EventHandle event, StreamHandle stream) const {
  return check(driver, driver.recordEvent(event, stream), "recording an event");
}

Expected<Party> PeerCommunicator::arrive(int64_t request, StreamHandle stream) {
  Slot &slot = slots[size_t(request)];
  HPC_RETURN_IF_ERROR(hostRequests[size_t(request)]->post());
  slot.posted = true;
  HPC_RETURN_IF_ERROR(record(slot.ready.get(), device.stream()));
  Party party;
  party.gpu = &device.gpu();
  party.stream = stream;
  party.ready = slot.ready.get();
  party.shared = slot.shared.get();
  party.done = slot.done.get();
  party.request = hostRequests[size_t(request)].get();
  return party;
}

Status PeerCommunicator::copySource(int64_t request, const std::byte *&source, int64_t bytes) {
  Slot &slot = slots[size_t(request)];
  if (slot.copyBytes < bytes) {
    Expected<DeviceMemory> memory = device.gpu().allocate(bytes);
    if (!memory.ok())
      return memory.status();
    slot.copy = std::move(*memory);
    copiesBytes += bytes - slot.copyBytes;
    slot.copyBytes = bytes;
  }
  auto *copy = reinterpret_cast<std::byte *>(uintptr_t(slot.copy.get()));
  HPC_RETURN_IF_ERROR(device.copy(copy, source, bytes));
  source = copy;
  return Status::success();
}

Status PeerCommunicator::share(const plan::Collective &collective, KernelObject kernel,
                               const std::vector<Party> &parties, int64_t me) {
  const int64_t element = byteSize(collective.dtype), count = collective.count, bytes = count * element;
  const int64_t size = int64_t(parties.size());
  const Party &mine = parties[size_t(me)];
  auto copy = [&](int64_t targetOffset, const std::byte *source) {
    if (bytes == 0 || mine.target + targetOffset == source)
      return Status::success();
    return check(driver,
                 driver.copyAsync(pointer(mine.target + targetOffset), pointer(source), size_t(bytes), mine.stream),
                 "copying between ranks");
  };
  auto reduce = [&](int64_t first, int64_t elements, bool toAll) {
    std::vector<const std::byte *> sources;
    std::vector<std::byte *> targets;
    for (const Party &party : parties) {
      sources.push_back(party.source + first * element);
      if (toAll)
        targets.push_back(party.target + first * element);
    }
    if (!toAll)
      targets = {mine.target};
    return reductions.launch(kernel, *mine.gpu, mine.stream, sources, targets, elements);
  };
  switch (collective.kind) {
  case CollectiveKind::AllReduce: {
    // Each member reduces one part, in whole lines of memory, and writes it to all: so results may be in place.
    const int64_t part = roundUp(ceilDiv(count, size), 128 / element), first = std::min(count, me * part);
    return reduce(first, std::min(part, count - first), true);
  }
  case CollectiveKind::ReduceScatter:
    return reduce(me * count, count, false);
  case CollectiveKind::AllGather:
    for (int64_t j = 0; j < size; ++j)
      HPC_RETURN_IF_ERROR(copy(j * bytes, parties[size_t(j)].source));
    return Status::success();
  case CollectiveKind::AllToAll:
    for (int64_t j = 0; j < size; ++j)
      HPC_RETURN_IF_ERROR(copy(j * bytes, parties[size_t(j)].source + me * bytes));
    return Status::success();
  case CollectiveKind::Permute:
    return copy(0, parties[size_t(mine.sourcePosition)].source);
  }
  return Status::success();
}

Status PeerCommunicator::exchange(const plan::Collective &collective, KernelObject kernel,
                                  const std::vector<Party> &parties) {
  for (size_t me = 0; me < parties.size(); ++me) {
    const Party &mine = parties[me];
    HPC_RETURN_IF_ERROR(mine.gpu->enter());
    for (const Party &party : parties)
      HPC_RETURN_IF_ERROR(follow(mine.stream, party.ready));
    HPC_RETURN_IF_ERROR(share(collective, kernel, parties, int64_t(me)));
    HPC_RETURN_IF_ERROR(record(mine.shared, mine.stream));
  }
  for (const Party &mine : parties) {
    for (const Party &party : parties)
      if (party.stream != mine.stream)
        HPC_RETURN_IF_ERROR(follow(mine.stream, party.shared));
    HPC_RETURN_IF_ERROR(record(mine.done, mine.stream));
  }
  HPC_RETURN_IF_ERROR(device.gpu().enter());
  for (const Party &party : parties)
    party.request->complete();
  return Status::success();
}

Status PeerCommunicator::post(const plan::Collective &collective, int64_t index, const std::byte *source,
                              std::byte *target, int64_t sourcePosition, int64_t request) {
  const Prepared &entry = prepared[size_t(index)];
  const int64_t size = entry.seat.group->size();
  if (collective.kind == CollectiveKind::Permute && (sourcePosition < 0 || sourcePosition >= size))
    return Status::error(ErrorKind::Plan, "a permute takes from position " + std::to_string(sourcePosition) +
                                              " of a group of " + std::to_string(size));
  if (host::needsCopy(collective, {source, target, sourcePosition}, size))
    HPC_RETURN_IF_ERROR(copySource(request, source, host::sourceBytes(collective, size)));
  Expected<Party> party = arrive(request, entry.stream);
  if (!party.ok())
    return party.status();
  party->source = source;
  party->target = target;
  party->sourcePosition = sourcePosition;
  std::lock_guard<std::mutex> lock(peers->enqueueing());
  std::vector<Party> parties = peers->collective(*entry.seat.group, index).arrive(entry.seat.position, *party);
  return parties.empty() ? Status::success() : exchange(collective, entry.kernel, parties);
}

Status PeerCommunicator::collective(const plan::Collective &collective, int64_t index, const std::byte *source,
                                    std::byte *target, int64_t sourcePosition) {
  HPC_RETURN_IF_ERROR(post(collective, index, source, target, sourcePosition, own));
  return wait(own);
}

Status PeerCommunicator::transfer(const Party &sender, const Party &receiver) {
  if (sender.bytes != receiver.bytes)
    return Status::error(ErrorKind::Plan, "a send and its receive differ in size: " + std::to_string(sender.bytes) +
                                              " and " + std::to_string(receiver.bytes) + " bytes");
  HPC_RETURN_IF_ERROR(receiver.gpu->enter());
  HPC_RETURN_IF_ERROR(follow(receiver.stream, sender.ready));
  HPC_RETURN_IF_ERROR(follow(receiver.stream, receiver.ready));
  if (sender.bytes > 0)
    HPC_RETURN_IF_ERROR(
        check(driver,
              driver.copyAsync(pointer(receiver.target), pointer(sender.source), size_t(sender.bytes), receiver.stream),
              "copying between ranks"));
  HPC_RETURN_IF_ERROR(record(receiver.shared, receiver.stream));
  HPC_RETURN_IF_ERROR(record(receiver.done, receiver.stream));
  // An event of its own: the receiver may use its again before the sender waits.
  HPC_RETURN_IF_ERROR(follow(sender.stream, receiver.shared));
  HPC_RETURN_IF_ERROR(record(sender.done, sender.stream));
  HPC_RETURN_IF_ERROR(device.gpu().enter());
  sender.request->complete();
  receiver.request->complete();
  return Status::success();
}

Status PeerCommunicator::send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) {
  Expected<Party> party = arrive(request, messages.get());
  if (!party.ok())
    return party.status();
  party->source = source;
  party->bytes = bytes;
  std::lock_guard<std::mutex> lock(peers->enqueueing());
  std::vector<Party> parties = peers->transfer(place.rank, peer, channel).arrive(0, *party);
  return parties.empty() ? Status::success() : transfer(parties[0], parties[1]);
}

Status PeerCommunicator::receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) {
  Expected<Party> party = arrive(request, messages.get());
  if (!party.ok())
    return party.status();
  party->target = target;
  party->bytes = bytes;
  std::lock_guard<std::mutex> lock(peers->enqueueing());
  std::vector<Party> parties = peers->transfer(peer, place.rank, channel).arrive(1, *party);
  return parties.empty() ? Status::success() : transfer(parties[0], parties[1]);
}

Status PeerCommunicator::wait(int64_t request) {
  Slot &slot = slots[size_t(request)];
  HPC_RETURN_IF_ERROR(hostRequests[size_t(request)]->wait());
  if (!slot.posted)
    return Status::success();
  slot.posted = false;
  return device.enqueue([&] { return follow(device.stream(), slot.done.get()); });
}

} // namespace hpc::cuda
