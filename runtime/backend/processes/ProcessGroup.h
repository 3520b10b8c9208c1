// A collective whose members are in several processes: those of one process meet in its memory, and one message goes
// from each process to each other, however many members they have. Reductions are in the order of the members if that
// is requested or costs nothing, else in the order of the processes; both give all members the same bits.
#pragma once

#include "runtime/backend/host/World.h"
#include "runtime/backend/processes/Transport.h"

#include <deque>
#include <set>

namespace hpc::processes {

/// The members of a group that one process holds, by position in the group, ascending.
struct Side {
  int64_t process = 0;
  std::vector<int64_t> positions;
};

/// One piece of memory in an order that sender and receiver share.
struct Segment {
  std::byte *address;
  int64_t bytes;
};

class ProcessGroup {
public:
  /// `coordinates`: of the members, by position. `tags`: the first of two tags that are this group's alone.
  ProcessGroup(Transport &transport, std::vector<Side> sides, std::vector<int64_t> coordinates, int64_t ranksPerStage,
               int64_t process, int64_t tags, bool inRankOrder);

  int64_t size() const { return int64_t(coordinates.size()); }
  /// Each member announces every collective of the group before the first post; `number` identifies it.
  void prepare(const plan::Collective &collective, int64_t number, const host::Reduction &reduction);
  /// A member's part in the next collective of the group; `request` is completed when it is done. Members post the
  /// group's collectives in one order, so that the i-th posts of all belong together.
  Status post(const plan::Collective &collective, int64_t number, const host::Reduction &reduction, int64_t position,
              const host::Share &share, host::Request &request);
  /// Continues the collectives in flight. Never waits.
  Status progress();
  bool isIdle() const { return open.empty(); }
  /// Gives up all collectives in flight.
  void reset();
  /// The most memory that its collectives need beside the members' buffers: its own, and that of messages in the engine
  /// for collectives that this process has not begun. The others have no more of those in flight than fit into their
  /// memory, and no process ends one without the others.
  int64_t scratchBytes() const { return window + window / (mostMembers == 1 ? 1 : 2); }

private:
  enum class Phase { Gathering, First, Second, Done };
  struct Meeting {
    const plan::Collective *collective = nullptr;
    int64_t number = 0;
    const host::Reduction *reduction = nullptr;
    std::vector<host::Share> shares;            ///< by member of this process
    std::vector<std::vector<std::byte>> copies; ///< of sources that their targets overlap
    std::vector<host::Request *> requests;
    size_t arrived = 0;
    Phase phase = Phase::Gathering;
    std::vector<std::unique_ptr<Transfer>> transfers;
    int64_t place = 0, reserved = 0; ///< in the group's memory, while it is in flight
    std::byte *in = nullptr;         ///< received data that is not put in place at once; packed data after it
    std::vector<int64_t> incoming;   ///< by side: where its message begins in `in`; -1: it goes to its place at once
  };
  /// Elements first .. first+count-1, which one side reduces.
  struct Part {
    int64_t first, count;
  };

  bool isHere(int64_t position) const { return sideOf[size_t(position)] == mine; }
  const host::Share &share(const Meeting &meeting, int64_t position) const {
    return meeting.shares[memberOf[size_t(position)]];
  }
  bool sendsMembers() const { return inRankOrder || mostMembers == 1; }
  bool isOneRound(const plan::Collective &collective) const;
  Part part(const plan::Collective &collective, size_t side) const;
  int64_t reducedBytes(const plan::Collective &collective, const host::Reduction &reduction, size_t from,
                       size_t to) const;
  bool isTaken(const plan::Collective &collective, int64_t taker, int64_t from, const Meeting &meeting) const;
  std::vector<Segment> outgoing(const Meeting &meeting, size_t to) const;
  std::vector<Segment> arriving(const Meeting &meeting, size_t from) const;
  void presum(const Meeting &meeting, int64_t first, int64_t count, std::byte *target) const;
  void reduceInto(const Meeting &meeting, int64_t first, int64_t block, int64_t count, std::byte *target) const;

  int64_t bytesOf(const plan::Collective &collective, const host::Reduction &reduction) const;
  bool reserve(Meeting &meeting);
  Status start(Meeting &meeting);
  Status startReduction(Meeting &meeting);
  Status startMoves(Meeting &meeting);
  Status finishFirst(Meeting &meeting);
  void finish(Meeting &meeting);
  Status sendTo(Meeting &meeting, size_t side, int64_t tag, const std::byte *source, int64_t bytes);
  Status receiveFrom(Meeting &meeting, size_t side, int64_t tag, std::byte *target, int64_t bytes);

  Transport &transport;
  const std::vector<Side> sides; ///< ascending by process
  const std::vector<int64_t> coordinates;
  const size_t mine;
  const int64_t ranksPerStage, tags;
  const bool inRankOrder;
  size_t mostMembers = 0;                    ///< of a side
  std::vector<size_t> sideOf, memberOf;      ///< by position: its side, and its index there
  std::unique_ptr<std::byte[]> memory;       ///< of collectives in flight; outlives its transfers
  int64_t memoryBytes = 0;
  std::deque<Meeting> open;                  ///< the oldest first
  int64_t finished = 0;                      ///< meetings that are no longer in `open`
  std::vector<int64_t> next;                 ///< by member here: the meeting that its next post belongs to
  int64_t window = 0;                        ///< the most bytes of all collectives in flight
  int64_t postedBytes = 0;                   ///< of collectives with a request, as counted in `window`
  std::set<int64_t> posted;                  ///< their numbers
};

} // namespace hpc::processes
