// The life of a collective: members of this process gather, messages go out and come in, results are put in place. An
// all-reduce of more than a few KiB takes two rounds: each side reduces one part, then sends it to the others.
#include "runtime/backend/processes/ProcessGroup.h"

#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <cstring>

namespace hpc::processes {

using plan::CollectiveKind;

ProcessGroup::ProcessGroup(Transport &transport, std::vector<Side> given, std::vector<int64_t> coordinates,
                           int64_t ranksPerStage, int64_t process, int64_t tags, bool inRankOrder)
    : transport(transport), sides(std::move(given)), coordinates(std::move(coordinates)),
      mine(size_t(std::find_if(sides.begin(), sides.end(), [&](const Side &side) { return side.process == process; }) -
                  sides.begin())),
      ranksPerStage(ranksPerStage), tags(tags), inRankOrder(inRankOrder), sideOf(this->coordinates.size()),
      memberOf(this->coordinates.size()) {
  for (size_t side = 0; side < sides.size(); ++side) {
    mostMembers = std::max(mostMembers, sides[side].positions.size());
    for (size_t i = 0; i < sides[side].positions.size(); ++i) {
      sideOf[size_t(sides[side].positions[i])] = side;
      memberOf[size_t(sides[side].positions[i])] = i;
    }
  }
  next.assign(sides[mine].positions.size(), 0);
}

Status ProcessGroup::post(const plan::Collective &collective, int64_t number, const host::Reduction &reduction,
                          int64_t position, const host::Share &share, host::Request &request) {
  const size_t member = memberOf[size_t(position)], index = size_t(next[member]++ - finished);
  while (open.size() <= index) {
    Meeting &fresh = open.emplace_back();
    fresh.shares.resize(next.size());
    fresh.copies.resize(next.size());
    fresh.requests.resize(next.size());
  }
  Meeting &meeting = open[index];
  if (meeting.arrived > 0 && meeting.number != number)
    return Status::error(ErrorKind::Plan, "the ranks of a group meet in different collectives");
  meeting.number = number;
  meeting.collective = &collective;
  meeting.reduction = &reduction;
  host::Share &shown = meeting.shares[member] = share;
  if (host::needsCopy(collective, share, size())) {
    std::vector<std::byte> &copy = meeting.copies[member];
    copy.assign(share.source, share.source + host::sourceBytes(collective, size()));
    shown.source = copy.data();
  }
  meeting.requests[member] = &request;
  ++meeting.arrived;
  return Status::success();
}

Status ProcessGroup::progress() {
  // In order: messages of one tag are matched by their order alone.
  bool maySecond = true;
  for (Meeting &meeting : open) {
    if (meeting.phase == Phase::Gathering) {
      if (meeting.arrived < next.size() || !reserve(meeting))
        break;
      HPC_RETURN_IF_ERROR(start(meeting));
    }
    while (!meeting.transfers.empty()) {
      Expected<bool> done = meeting.transfers.back()->done();
      if (!done.ok())
        return done.status();
      if (!*done)
        break;
      meeting.transfers.pop_back();
    }
    if (meeting.transfers.empty() && meeting.phase == Phase::First && maySecond)
      HPC_RETURN_IF_ERROR(finishFirst(meeting));
    if (meeting.transfers.empty() && meeting.phase == Phase::Second)
      finish(meeting);
    maySecond &= meeting.phase == Phase::Second || meeting.phase == Phase::Done;
  }
  while (!open.empty() && open.front().phase == Phase::Done) {
    open.pop_front();
    ++finished;
  }
  return Status::success();
}

Status ProcessGroup::sendTo(Meeting &meeting, size_t side, int64_t tag, const std::byte *source, int64_t bytes) {
  if (bytes == 0)
    return Status::success();
  Expected<std::unique_ptr<Transfer>> transfer = transport.send(sides[side].process, tag, source, bytes, SendDone::Read);
  if (!transfer.ok())
    return transfer.status();
  meeting.transfers.push_back(std::move(*transfer));
  return Status::success();
}

Status ProcessGroup::receiveFrom(Meeting &meeting, size_t side, int64_t tag, std::byte *target, int64_t bytes) {
  if (bytes == 0)
    return Status::success();
  Expected<std::unique_ptr<Transfer>> transfer = transport.receive(sides[side].process, tag, target, bytes);
  if (!transfer.ok())
    return transfer.status();
  meeting.transfers.push_back(std::move(*transfer));
  return Status::success();
}

/// Messages begin at multiples of this: vectors sum them from cache lines on, counted from the memory's start.
constexpr int64_t alignment = 64;

/// The reserve of a collective, the same in all processes: the most that one may receive, and may have to pack.
int64_t ProcessGroup::bytesOf(const plan::Collective &collective, const host::Reduction &reduction) const {
  const int64_t most = int64_t(mostMembers), ofMembers = byteSize(collective.dtype) * most;
  int64_t message = 0;
  if (!host::reduces(collective.kind))
    message = collective.count * most * ofMembers;
  else
    message = (collective.kind == CollectiveKind::AllReduce ? part(collective, 0).count : collective.count * most) *
              (sendsMembers() ? ofMembers : reduction.wideSize);
  const int64_t in = (int64_t(sides.size()) - 1) * roundUp(message, alignment);
  return most == 1 ? in : 2 * in; // the data of a single member is contiguous already
}

void ProcessGroup::prepare(const plan::Collective &collective, int64_t number, const host::Reduction &reduction) {
  // Several may be in flight, so that one's second round overlaps another's first, but not all that are posted.
  constexpr int64_t overlapBytes = 32 << 20;
  const int64_t bytes = bytesOf(collective, reduction);
  if (collective.request >= 0 && posted.insert(number).second)
    postedBytes = std::min(overlapBytes, postedBytes + bytes);
  window = std::max({window, bytes, postedBytes});
}

/// Takes the first place that is free. There is one where nothing is under way: so the oldest collective that is not done
/// everywhere, which waits for none before it, is begun by all.
bool ProcessGroup::reserve(Meeting &meeting) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Meeting &other : open)
    if (other.phase == Phase::First || other.phase == Phase::Second)
      taken.push_back({other.place, other.place + other.reserved});
  std::sort(taken.begin(), taken.end());
  if (taken.empty() && memoryBytes < window) {
    memory.reset(new std::byte[size_t(window)]); // not initialised: pages that nothing uses do not come
    memoryBytes = window;
  }
  meeting.reserved = bytesOf(*meeting.collective, *meeting.reduction);
  meeting.place = 0;
  for (const auto &[first, last] : taken) {
    if (meeting.place + meeting.reserved <= first)
      break;
    meeting.place = std::max(meeting.place, last);
  }
  meeting.in = memory.get() + meeting.place;
  return meeting.place + meeting.reserved <= memoryBytes;
}

Status ProcessGroup::start(Meeting &meeting) {
  meeting.phase = Phase::First;
  meeting.incoming.assign(sides.size(), -1);
  return host::reduces(meeting.collective->kind) ? startReduction(meeting) : startMoves(meeting);
}

static int64_t sum(const std::vector<Segment> &list) {
  int64_t bytes = 0;
  for (const Segment &segment : list)
    bytes += segment.bytes;
  return bytes;
}

static void pack(const std::vector<Segment> &list, std::byte *target) {
  for (const Segment &segment : list) {
    std::memcpy(target, segment.address, size_t(segment.bytes));
    target += segment.bytes;
  }
}

Status ProcessGroup::startReduction(Meeting &meeting) {
  const plan::Collective &collective = *meeting.collective;
  int64_t in = 0;
  std::vector<std::vector<Segment>> lists(sides.size());
  for (size_t side = 0; side < sides.size(); ++side)
    if (side != mine) {
      meeting.incoming[side] = in;
      in += roundUp(reducedBytes(collective, *meeting.reduction, side, mine), alignment);
      lists[side] = outgoing(meeting, side);
    }
  for (size_t side = 0; side < sides.size(); ++side)
    if (side != mine)
      HPC_RETURN_IF_ERROR(receiveFrom(meeting, side, tags, meeting.in + meeting.incoming[side],
                                      reducedBytes(collective, *meeting.reduction, side, mine)));
  std::byte *packed = meeting.in + in;
  for (size_t side = 0; side < sides.size(); ++side) {
    if (side == mine)
      continue;
    const int64_t bytes = reducedBytes(collective, *meeting.reduction, mine, side);
    const std::byte *source = packed;
    if (sendsMembers() && lists[side].size() <= 1) {
      source = lists[side].empty() ? nullptr : lists[side][0].address;
    } else {
      if (sendsMembers()) {
        pack(lists[side], packed);
      } else if (collective.kind == CollectiveKind::AllReduce) {
        const Part wanted = part(collective, side);
        presum(meeting, wanted.first, wanted.count, packed);
      } else {
        for (size_t i = 0; i < sides[side].positions.size(); ++i)
          presum(meeting, sides[side].positions[i] * collective.count, collective.count,
                 packed + int64_t(i) * collective.count * meeting.reduction->wideSize);
      }
      packed += roundUp(bytes, alignment);
    }
    HPC_RETURN_IF_ERROR(sendTo(meeting, side, tags, source, bytes));
  }
  return Status::success();
}

Status ProcessGroup::startMoves(Meeting &meeting) {
  int64_t in = 0;
  std::vector<std::vector<Segment>> outgoingBySide(sides.size()), arrivingBySide(sides.size());
  auto isDirect = [](const std::vector<Segment> &list) {
    return list.size() <= 1 && (list.empty() || list[0].address);
  };
  for (size_t side = 0; side < sides.size(); ++side)
    if (side != mine) {
      outgoingBySide[side] = outgoing(meeting, side);
      arrivingBySide[side] = arriving(meeting, side);
      if (!isDirect(arrivingBySide[side])) {
        meeting.incoming[side] = in;
        in += sum(arrivingBySide[side]);
      }
    }
  for (size_t side = 0; side < sides.size(); ++side) {
    const std::vector<Segment> &list = arrivingBySide[side];
    if (!list.empty())
      HPC_RETURN_IF_ERROR(receiveFrom(
          meeting, side, tags,
          meeting.incoming[side] < 0 ? list[0].address : meeting.in + meeting.incoming[side], sum(list)));
  }
  std::byte *packed = meeting.in + in;
  for (size_t side = 0; side < sides.size(); ++side) {
    const std::vector<Segment> &list = outgoingBySide[side];
    if (list.empty())
      continue;
    const std::byte *source = list[0].address;
    if (!isDirect(list)) {
      pack(list, packed);
      source = packed;
      packed += sum(list);
    }
    HPC_RETURN_IF_ERROR(sendTo(meeting, side, tags, source, sum(list)));
  }
  return Status::success();
}

/// All messages of the first round are there, and all of this side's sources are sent.
Status ProcessGroup::finishFirst(Meeting &meeting) {
  const plan::Collective &collective = *meeting.collective;
  const int64_t elementSize = byteSize(collective.dtype), bytes = collective.count * elementSize;
  const std::vector<int64_t> &positions = sides[mine].positions;
  meeting.phase = Phase::Second;
  if (collective.kind == CollectiveKind::AllReduce) {
    const Part own = part(collective, mine);
    std::byte *target = meeting.shares[0].target;
    reduceInto(meeting, own.first, 0, own.count, target + own.first * elementSize);
    for (size_t side = 0; side < sides.size() && !isOneRound(collective); ++side)
      if (const Part theirs = part(collective, side); side != mine)
        HPC_RETURN_IF_ERROR(
            receiveFrom(meeting, side, tags + 1, target + theirs.first * elementSize, theirs.count * elementSize));
    for (size_t side = 0; side < sides.size() && !isOneRound(collective); ++side)
      if (side != mine)
        HPC_RETURN_IF_ERROR(sendTo(meeting, side, tags + 1, target + own.first * elementSize, own.count * elementSize));
    return Status::success();
  }
  if (collective.kind == CollectiveKind::ReduceScatter) {
    for (size_t i = 0; i < positions.size(); ++i)
      reduceInto(meeting, positions[i] * collective.count, int64_t(i), collective.count, meeting.shares[i].target);
    return Status::success();
  }
  for (size_t side = 0; side < sides.size(); ++side)
    if (side != mine && meeting.incoming[side] >= 0) {
      const std::byte *source = meeting.in + meeting.incoming[side];
      for (const Segment &segment : arriving(meeting, side)) {
        if (segment.address)
          std::memcpy(segment.address, source, size_t(segment.bytes));
        source += segment.bytes;
      }
    }
  auto move = [&](std::byte *target, const std::byte *source) {
    if (bytes > 0 && target != source)
      std::memcpy(target, source, size_t(bytes));
  };
  for (int64_t from : positions) {
    const host::Share &source = share(meeting, from);
    if (collective.kind == CollectiveKind::AllGather)
      move(meeting.shares[0].target + from * bytes, source.source);
    for (int64_t to : positions) {
      const host::Share &taker = share(meeting, to);
      if (collective.kind == CollectiveKind::AllToAll)
        move(taker.target + from * bytes, source.source + to * bytes);
      if (collective.kind == CollectiveKind::Permute && taker.sourcePosition == from)
        move(taker.target, source.source);
    }
  }
  return Status::success();
}

void ProcessGroup::finish(Meeting &meeting) {
  const CollectiveKind kind = meeting.collective->kind;
  // These were made once, at the first member of this process.
  if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::AllGather)
    for (size_t i = 1; i < meeting.shares.size(); ++i)
      if (int64_t bytes = host::targetBytes(*meeting.collective, size()); bytes > 0)
        std::memcpy(meeting.shares[i].target, meeting.shares[0].target, size_t(bytes));
  meeting.phase = Phase::Done;
  for (host::Request *request : meeting.requests)
    request->complete();
}

void ProcessGroup::reset() {
  open.clear();
  finished = 0;
  std::fill(next.begin(), next.end(), 0);
}

} // namespace hpc::processes
