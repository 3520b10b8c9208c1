// A request is posted again when it was waited for, so each of its slots is one message at most.
#include "runtime/backend/processes/EarlyMessages.h"

#include "runtime/core/SavedTensors.h"

#include <algorithm>
#include <set>

namespace hpc::processes {

namespace {

/// Whom a rank sends to, in any micro-batch.
std::set<int64_t> receivers(const plan::ByCoord &peers, int64_t coordinate, int64_t ranksPerStage) {
  const int64_t microBatches = std::max<int64_t>(1, int64_t(peers.values.size()) / ranksPerStage);
  std::set<int64_t> found;
  for (int64_t m = 0; m < microBatches; ++m)
    found.insert(peers.at(coordinate, m, ranksPerStage));
  return found;
}

/// Boxes of outputs and of saved values go to rank 0 one after the other.
int64_t largestBox(const plan::Plan &plan, const plan::Stage &stage) {
  int64_t largest = 0;
  for (const plan::Program &program : stage.programs)
    for (const plan::Instruction &instruction : program.instructions)
      if (const auto *store = std::get_if<plan::StoreOutput>(&instruction.action)) {
        int64_t bytes = byteSize(plan.outputs[size_t(store->output)].dtype);
        for (int64_t size : store->slice.box)
          bytes *= size;
        largest = std::max(largest, bytes);
      }
  for (const plan::Binding &binding : stage.bindings)
    if (!binding.saved.empty())
      largest = std::max(largest, stage.buffers[size_t(binding.buffer)].bytes);
  return largest;
}

} // namespace

std::map<int64_t, int64_t> earlyMessageBytes(const plan::Plan &plan, RankRange own) {
  std::map<int64_t, int64_t> early;
  const int64_t ranksPerStage = plan.ranksPerStage();
  for (int64_t sender = 0; sender < plan.worldSize(); ++sender) {
    if (own.holds(sender))
      continue;
    const plan::Stage &stage = plan.stages[size_t(sender / ranksPerStage)];
    std::map<std::pair<int64_t, int32_t>, int64_t> largest; // by receiver and request
    for (const plan::Program &program : stage.programs)
      for (const plan::Instruction &instruction : program.instructions)
        if (const auto *send = std::get_if<plan::Send>(&instruction.action))
          for (int64_t receiver : receivers(send->peer, sender % ranksPerStage, ranksPerStage))
            if (own.holds(receiver)) // none is -1
              largest[{receiver, send->request}] = std::max(largest[{receiver, send->request}], send->bytes);
    for (const auto &[key, bytes] : largest)
      early[key.first] += bytes * stage.requests[size_t(key.second)];
    if (own.holds(0))
      if (int64_t bytes = largestBox(plan, stage); bytes > 0)
        early[0] += bytes;
  }
  // Saved tensors go to the other owners likewise.
  std::map<std::pair<int64_t, int64_t>, int64_t> saved; // largest box, by owner and sender
  for (const SavedTensor &tensor : savedTensors(plan))
    for (const SavedTensor::Piece &piece : tensor.pieces)
      if (int64_t sender = piece.sourceFor(tensor.owner); tensor.owner != 0 && own.holds(tensor.owner) && !own.holds(sender))
        saved[{tensor.owner, sender}] = std::max(saved[{tensor.owner, sender}], piece.slice.boxBytes());
  for (const auto &[key, bytes] : saved)
    early[key.first] += bytes;
  return early;
}

} // namespace hpc::processes
