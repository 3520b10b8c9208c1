// Boxes travel with their padding; rank 0 takes the elements out of them by the owner's slice.
#include "runtime/core/OutputTransfer.h"

#include "runtime/plan/PlanStructure.h"

#include <algorithm>

namespace hpc {

const int32_t outputChannel = int32_t(plan::maxChannel) + 1;

void OutputTransfer::addPieces(const plan::Plan &plan, int64_t rank, std::vector<Piece> &pieces) {
  const int64_t ranksPerStage = plan.ranksPerStage();
  const plan::Stage &stage = plan.stages[size_t(rank / ranksPerStage)];
  for (const plan::ScheduleStep &step : stage.schedule)
    for (const plan::Instruction &instruction : stage.programs[size_t(step.program)].instructions)
      if (const auto *store = std::get_if<plan::StoreOutput>(&instruction.action)) {
        Place place{rank % ranksPerStage, step.microBatch, ranksPerStage};
        if (place(store->owner) && place(instruction.when))
          pieces.push_back({rank, store->output,
                            SliceCopy(store->slice, byteSize(plan.outputs[size_t(store->output)].dtype), place),
                            nullptr, instruction.onRequest});
      }
}

Expected<OutputTransfer> OutputTransfer::create(const plan::Plan &plan, RankPlace place, RankRange ranks,
                                                Device &device, Communicator &communicator, int64_t request) {
  OutputTransfer transfer;
  transfer.device = &device;
  transfer.communicator = &communicator;
  transfer.request = request;
  transfer.home = ranks.holds(0);
  int64_t largest = 0;
  if (!transfer.home)
    addPieces(plan, place.rank, transfer.pieces);
  else if (place.rank == 0)
    for (int64_t rank = ranks.count; rank < plan.worldSize(); ++rank)
      addPieces(plan, rank, transfer.pieces);
  for (const Piece &piece : transfer.pieces)
    largest = std::max(largest, piece.slice.boxBytes());
  std::byte *shared = nullptr;
  for (Piece &piece : transfer.pieces) {
    // Rank 0 is done with a box before it receives the next.
    if (!transfer.home || !shared) {
      Expected<std::byte *> memory = device.allocate(
          plan::Space::Device, transfer.home ? largest : piece.slice.boxBytes(), std::byte{0});
      if (!memory.ok())
        return memory.status();
      shared = *memory;
    }
    piece.box = shared;
  }
  return transfer;
}

Status OutputTransfer::keep(const std::byte *source) {
  while (isSkipped(pieces[next]))
    ++next;
  const Piece &piece = pieces[next++];
  return device->copy(piece.box, source, piece.slice.boxBytes());
}

Status OutputTransfer::finish(std::vector<Array> &outputs) {
  for (const Piece &piece : pieces) {
    if (isSkipped(piece))
      continue;
    const int64_t bytes = piece.slice.boxBytes();
    HPC_RETURN_IF_ERROR(home ? communicator->receive(piece.owner, outputChannel, piece.box, bytes, request)
                             : communicator->send(0, outputChannel, piece.box, bytes, request));
    HPC_RETURN_IF_ERROR(communicator->wait(request));
    if (!home)
      continue;
    HPC_RETURN_IF_ERROR(device->scatter(piece.slice, piece.box, outputs[size_t(piece.output)].data.data()));
    HPC_RETURN_IF_ERROR(device->finish()); // the next one comes into the same box
  }
  return Status::success();
}

} // namespace hpc
