// Each collective in terms of NCCL. Three reductions run here, over values that NCCL gathers, as NCCL's differ from the plan's:
// maxima and minima of floats, which must pass NaN on; integers of 16 bits; and all of them, where the order of the ranks
// is required.
#include "runtime/backend/cuda/NcclCommunicator.h"
#include "runtime/plan/Groups.h"

#include <algorithm>

namespace hpc::cuda {

using plan::CollectiveKind;

namespace {

/// -1: NCCL has no such type.
int typeOf(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return ncclF32;
  case DType::F64:
    return ncclF64;
  case DType::F16:
    return ncclF16;
  case DType::BF16:
    return ncclBF16;
  case DType::I64:
    return ncclI64;
  case DType::I32:
    return ncclI32;
  case DType::I8:
    return ncclI8;
  case DType::U64:
    return ncclU64;
  case DType::U32:
    return ncclU32;
  case DType::U8:
  case DType::Bool:
    return ncclU8;
  case DType::I16:
  case DType::U16:
    return -1;
  }
  return -1;
}

int operationOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return ncclSum;
  case ReduceKind::Prod:
    return ncclProd;
  case ReduceKind::Max:
    return ncclMax;
  case ReduceKind::Min:
    return ncclMin;
  }
  return ncclSum;
}

/// Whether each member knows its counterparts, because the table does not depend on the micro-batch.
bool knowsTakers(const plan::Collective &collective, int64_t ranksPerStage) {
  const size_t entries = collective.source.values.size();
  return entries == 1 || int64_t(entries) == ranksPerStage;
}

} // namespace

bool NcclCommunicator::isOurs(const plan::Collective &collective) const {
  if (!host::reduces(collective.kind))
    return false;
  const bool isExtremum = collective.reduce == ReduceKind::Max || collective.reduce == ReduceKind::Min;
  return inRankOrder || typeOf(collective.dtype) < 0 || (isExtremum && isFloat(collective.dtype));
}

int64_t NcclCommunicator::memoryFor(const plan::Collective &collective) const {
  const int64_t size = plan::groupSize(plan, collective.axes);
  const bool inPlace =
      collective.src.buffer == collective.dst.buffer && collective.src.byteOffset == collective.dst.byteOffset;
  if (size < 2)
    return 0;
  if (isOurs(collective) ||
      (collective.kind == CollectiveKind::Permute && !knowsTakers(collective, plan.ranksPerStage())))
    return size * collective.count * byteSize(collective.dtype);
  return inPlace && collective.kind != CollectiveKind::AllReduce ? host::sourceBytes(collective, size) : 0;
}

Expected<int64_t> NcclCommunicator::prepare(const plan::Collective &collective) {
  for (const std::string &used : collective.axes)
    if (std::none_of(plan.axes.begin(), plan.axes.end(), [&](const plan::Axis &axis) { return axis.name == used; }))
      return Status::error(ErrorKind::Plan, "a collective goes over axis '" + used + "', which the plan does not have");
  Prepared entry;
  const plan::GroupSeat seat = plan::seatOf(plan.axes, place.coordinate, collective.axes);
  const int64_t number = world.group(place.stage, collective.axes, seat.group);
  if (seat.size > 1 && number < 0)
    return Status::error(ErrorKind::Internal, "a collective that is not in the plan");
  if (number >= 0)
    entry.connection = &connections[size_t(number)];
  if (host::reduces(collective.kind)) {
    Expected<host::Reduction> meaning = host::findReduction(collective.reduce, collective.dtype);
    if (!meaning.ok())
      return meaning.status();
    entry.type = typeOf(collective.dtype);
    if (isOurs(collective) && seat.size > 1) {
      Expected<KernelObject> kernel = reductions.find(collective.reduce, collective.dtype, int(seat.size), 1);
      if (!kernel.ok())
        return kernel.status();
      entry.kernel = *kernel;
    }
  }
  // Memory is made now: while other ranks' messages are under way, making or freeing some could wait for them.
  if (const int64_t bytes = memoryFor(collective); bytes > 0 && entry.connection->bytes < bytes) {
    Expected<DeviceMemory> memory = device.gpu().allocate(bytes);
    if (!memory.ok())
      return memory.status();
    entry.connection->memory = std::move(*memory);
    scratch += bytes - entry.connection->bytes;
    entry.connection->bytes = bytes;
  }
  prepared.push_back(entry);
  return int64_t(prepared.size()) - 1;
}

Status NcclCommunicator::copy(Connection &connection, std::byte *target, const std::byte *source, int64_t bytes) {
  if (bytes == 0 || target == source)
    return Status::success();
  return cuda::check(driver, driver.copyAsync(pointer(target), pointer(source), size_t(bytes), connection.stream.get()),
                     "copying beside a collective");
}

Status NcclCommunicator::gather(Connection &connection, const std::byte *source, std::byte *target, int64_t bytes) {
  return settle(connection,
                nccl.allGather(source, target, size_t(bytes), ncclI8, connection.handle, connection.stream.get()),
                "gathering");
}

/// All pieces at once, in one group: each waits for its counterpart. Null: no piece in that direction.
Status NcclCommunicator::exchange(Connection &connection, int64_t bytes,
                                  const std::function<const std::byte *(int64_t)> &toPeer,
                                  const std::function<std::byte *(int64_t)> &fromPeer) {
  NcclResult result = nccl.groupStart();
  if (result != ncclSuccess)
    return settle(connection, result, "beginning a group of messages");
  for (int64_t peer = 0; peer < connection.size; ++peer) {
    if (peer == connection.position)
      continue;
    if (const std::byte *source = toPeer(peer); source && result == ncclSuccess)
      result = nccl.send(source, size_t(bytes), ncclI8, int(peer), connection.handle, connection.stream.get());
    if (std::byte *target = fromPeer(peer); target && result == ncclSuccess)
      result = nccl.receive(target, size_t(bytes), ncclI8, int(peer), connection.handle, connection.stream.get());
  }
  NcclResult ended = nccl.groupEnd(); // whatever was before: a group that is begun has to end
  return settle(connection, result == ncclSuccess ? ended : result, "exchanging messages");
}

Status NcclCommunicator::reduce(const plan::Collective &collective, const Prepared &entry, const std::byte *source,
                                std::byte *target, std::byte *memory) {
  Connection &connection = *entry.connection;
  const int64_t count = collective.count, bytes = count * byteSize(collective.dtype);
  const bool scatters = collective.kind == CollectiveKind::ReduceScatter;
  if (!entry.kernel) {
    const int operation = operationOf(collective.reduce);
    if (scatters && source == target) {
      HPC_RETURN_IF_ERROR(copy(connection, memory, source, connection.size * bytes));
      source = memory;
    }
    return settle(connection,
                  scatters ? nccl.reduceScatter(source, target, size_t(count), entry.type, operation, connection.handle,
                                                connection.stream.get())
                           : nccl.allReduce(source, target, size_t(count), entry.type, operation, connection.handle,
                                            connection.stream.get()),
                  "reducing");
  }
  if (scatters) {
    const int64_t me = connection.position;
    HPC_RETURN_IF_ERROR(exchange(
        connection, bytes, [&](int64_t peer) { return source + peer * bytes; },
        [&](int64_t peer) { return memory + peer * bytes; }));
    HPC_RETURN_IF_ERROR(copy(connection, memory + me * bytes, source + me * bytes, bytes));
  } else {
    HPC_RETURN_IF_ERROR(gather(connection, source, memory, bytes));
  }
  std::vector<const std::byte *> sources;
  for (int64_t position = 0; position < connection.size; ++position)
    sources.push_back(memory + position * bytes);
  return reductions.launch(entry.kernel, device.gpu(), connection.stream.get(), sources, {target}, count);
}

Status NcclCommunicator::move(const plan::Collective &collective, const Prepared &entry, const std::byte *source,
                              std::byte *target, int64_t sourcePosition, std::byte *memory) {
  Connection &connection = *entry.connection;
  const int64_t bytes = collective.count * byteSize(collective.dtype), me = connection.position;
  const bool gathersAll = collective.kind == CollectiveKind::Permute && !knowsTakers(collective, plan.ranksPerStage());
  if (source == target && !gathersAll) {
    HPC_RETURN_IF_ERROR(copy(connection, memory, source, host::sourceBytes(collective, connection.size)));
    source = memory;
  }
  if (collective.kind == CollectiveKind::AllGather)
    return gather(connection, source, target, bytes);
  if (collective.kind == CollectiveKind::AllToAll) {
    HPC_RETURN_IF_ERROR(exchange(
        connection, bytes, [&](int64_t peer) { return source + peer * bytes; },
        [&](int64_t peer) { return target + peer * bytes; }));
    return copy(connection, target + me * bytes, source + me * bytes, bytes);
  }
  if (gathersAll) {
    HPC_RETURN_IF_ERROR(gather(connection, source, memory, bytes));
    return copy(connection, target, memory + sourcePosition * bytes, bytes);
  }
  const std::vector<int64_t> &members = world.membersOf(size_t(&connection - connections.data()));
  auto takesFrom = [&](int64_t position) {
    const int64_t ranksPerStage = plan.ranksPerStage();
    return collective.source.at(members[size_t(position)] % ranksPerStage, 0, ranksPerStage);
  };
  HPC_RETURN_IF_ERROR(exchange(
      connection, bytes, [&](int64_t peer) { return takesFrom(peer) == me ? source : nullptr; },
      [&](int64_t peer) { return sourcePosition == peer ? target : nullptr; }));
  return sourcePosition == me ? copy(connection, target, source, bytes) : Status::success();
}

Status NcclCommunicator::post(const plan::Collective &collective, int64_t index, const std::byte *source,
                              std::byte *target, int64_t sourcePosition, int64_t request) {
  const Prepared &entry = prepared[size_t(index)];
  HPC_RETURN_IF_ERROR(
      host::checkPosition(collective, sourcePosition, entry.connection ? entry.connection->size : int64_t(1)));
  if (collective.count == 0)
    return Status::success();
  if (!entry.connection) // alone: for every kind of collective the source is the result
    return source == target ? Status::success()
                            : device.copy(target, source, collective.count * byteSize(collective.dtype));
  auto *memory = reinterpret_cast<std::byte *>(uintptr_t(entry.connection->memory.get()));
  return start(*entry.connection, request, [&] {
    return host::reduces(collective.kind) ? reduce(collective, entry, source, target, memory)
                                          : move(collective, entry, source, target, sourcePosition, memory);
  });
}

} // namespace hpc::cuda
