// Reading what lives across steps: pieces go straight into the whole tensor, those of other processes over the communicator
// with the request that outputs use, which is free between two steps. All ranks go through the list in its order, so no two wait for each other.
#include "runtime/core/OutputTransfer.h"
#include "runtime/core/Session.h"

#include <algorithm>

namespace hpc {

int64_t Session::ownerOf(size_t tensor) const {
  const SavedTensor &saved = savedList[tensor];
  const int64_t ranksPerProcess = options.ranks.count;
  const bool isInOneProcess = std::all_of(saved.pieces.begin(), saved.pieces.end(), [&](const SavedTensor::Piece &piece) {
    return piece.sourceFor(saved.owner) / ranksPerProcess == saved.owner / ranksPerProcess;
  });
  return isInOneProcess || backend->reachesOwners() ? saved.owner : 0;
}

Status Session::receivePiece(Rank &rank, const SavedTensor::Piece &piece, int64_t source, std::byte *whole) {
  const int64_t request = Executor::requestCount(plan.stages[size_t(rank.place.stage)]) - 1;
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
  HPC_RETURN_IF_ERROR(rank.communicator->receive(source, outputChannel, rank.incoming, piece.slice.boxBytes(), request));
  HPC_RETURN_IF_ERROR(rank.communicator->wait(request));
  HPC_RETURN_IF_ERROR(rank.device->scatter(piece.slice, rank.incoming, whole));
  return rank.device->finish(); // the next one comes into the same box
}

Status Session::readPieces(Rank &rank, const Read &read) {
  const int64_t request = Executor::requestCount(plan.stages[size_t(rank.place.stage)]) - 1;
  const bool isHere = options.ranks.holds(read.rank);
  for (const SavedTensor::Piece &piece : savedList[read.tensor].pieces) {
    const int64_t source = piece.sourceFor(read.rank);
    if (source != rank.place.rank) {
      if (read.rank == rank.place.rank && !options.ranks.holds(source))
        HPC_RETURN_IF_ERROR(receivePiece(rank, piece, source, read.whole));
      continue;
    }
    std::byte *box = rank.arenas.front().buffer(piece.buffer, 0);
    if (isHere) {
      HPC_RETURN_IF_ERROR(rank.device->scatter(piece.slice, box, read.whole));
      continue;
    }
    HPC_RETURN_IF_ERROR(rank.communicator->send(read.rank, outputChannel, box, piece.slice.boxBytes(), request));
    HPC_RETURN_IF_ERROR(rank.communicator->wait(request));
  }
  return Status::success();
}

Status Session::read(const std::vector<Read> &list) {
  isRunning = true;
  onAllRanks([&](Rank &rank) {
    HPC_RETURN_IF_ERROR(rank.device->begin());
    for (const Read &read : list)
      HPC_RETURN_IF_ERROR(readPieces(rank, read));
    return rank.device->finish();
  });
  isRunning = false;
  return backend->agree(Status::success());
}

Status Session::read(size_t index, Array &whole) {
  whole = writes() ? Array::zeros(savedList[index].dtype, savedList[index].shape) : Array();
  return read({{index, 0, whole.data.data()}});
}

Status Session::agree(const Status &mine) {
  if (!mine.ok())
    backend->fail(mine);
  return backend->agree(mine);
}

} // namespace hpc
