// Reading what lives across steps: pieces go straight into the whole tensor, those of other processes over the communicator
// with the request that outputs use, which is free between two steps.
#include "runtime/core/OutputTransfer.h"
#include "runtime/core/Session.h"

#include <algorithm>

namespace hpc {

/// Rank 0's part: what ranks of other processes send, in the order of the ranks.
Status Session::receivePieces(Rank &rank, const SavedTensor &tensor, Array &whole) {
  const int64_t request = Executor::requestCount(plan.stages[size_t(rank.place.stage)]) - 1;
  for (const SavedTensor::Piece &piece : tensor.pieces) {
    if (options.ranks.holds(piece.rank))
      continue;
    if (!rank.incoming) {
      int64_t largest = 0;
      for (const SavedTensor &saved : savedList)
        for (const SavedTensor::Piece &other : saved.pieces)
          largest = std::max(largest, other.slice.boxBytes());
      Expected<std::byte *> memory = rank.device->allocate(plan::Space::Device, largest, std::byte{0});
      if (!memory.ok())
        return memory.status();
      rank.incoming = *memory;
    }
    HPC_RETURN_IF_ERROR(
        rank.communicator->receive(piece.rank, outputChannel, rank.incoming, piece.slice.boxBytes(), request));
    HPC_RETURN_IF_ERROR(rank.communicator->wait(request));
    HPC_RETURN_IF_ERROR(rank.device->scatter(piece.slice, rank.incoming, whole.data.data()));
    HPC_RETURN_IF_ERROR(rank.device->finish()); // the next one comes into the same box
  }
  return Status::success();
}

Status Session::readPieces(Rank &rank, const SavedTensor &tensor, Array &whole) {
  HPC_RETURN_IF_ERROR(rank.device->begin());
  const int64_t request = Executor::requestCount(plan.stages[size_t(rank.place.stage)]) - 1;
  for (const SavedTensor::Piece &piece : tensor.pieces) {
    if (piece.rank != rank.place.rank)
      continue;
    std::byte *box = rank.arenas.front().buffer(piece.buffer, 0);
    if (writes()) {
      HPC_RETURN_IF_ERROR(rank.device->scatter(piece.slice, box, whole.data.data()));
      continue;
    }
    HPC_RETURN_IF_ERROR(rank.communicator->send(0, outputChannel, box, piece.slice.boxBytes(), request));
    HPC_RETURN_IF_ERROR(rank.communicator->wait(request));
  }
  if (rank.place.rank == 0)
    HPC_RETURN_IF_ERROR(receivePieces(rank, tensor, whole));
  return rank.device->finish();
}

Status Session::read(size_t index, Array &whole) {
  const SavedTensor &tensor = savedList[index];
  whole = writes() ? Array::zeros(tensor.dtype, tensor.shape) : Array();
  isRunning = true;
  onAllRanks([&](Rank &rank) { return readPieces(rank, tensor, whole); });
  isRunning = false;
  return backend->agree(Status::success());
}

Status Session::agree(const Status &mine) {
  if (!mine.ok())
    backend->fail(mine);
  return backend->agree(mine);
}

} // namespace hpc
