// Queues of meetings, made at their first use.
#include "runtime/backend/cuda/Peers.h"

#include <algorithm>

namespace hpc::cuda {

std::vector<Party> Meetings::arrive(int64_t position, const Party &party) {
  const size_t index = size_t(next[size_t(position)]++ - finished);
  while (open.size() <= index)
    open.emplace_back().parties.resize(next.size());
  Meeting &meeting = open[index];
  meeting.parties[size_t(position)] = party;
  if (++meeting.arrived < next.size())
    return {};
  // All ranks have arrived here, so all have arrived at the meetings before: it is the oldest.
  std::vector<Party> parties = std::move(meeting.parties);
  open.pop_front();
  ++finished;
  return parties;
}

void Meetings::reset() {
  open.clear();
  finished = 0;
  std::fill(next.begin(), next.end(), 0);
}

PeerWorld::PeerWorld(const plan::Plan &plan) : hostWorld(plan) {
  hostWorld.onReset([this] { reset(); });
}

Meetings &PeerWorld::collective(const host::Group &group, int64_t number) {
  return collectives.try_emplace({&group, number}, group.size()).first->second;
}

Meetings &PeerWorld::transfer(int64_t sender, int64_t receiver, int32_t channel) {
  return transfers.try_emplace({sender, receiver, channel}, 2).first->second;
}

void PeerWorld::reset() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &[key, meetings] : collectives)
    meetings.reset();
  for (auto &[key, meetings] : transfers)
    meetings.reset();
}

} // namespace hpc::cuda
