// Seconds of collectives and messages on a machine, by latency and bytes (alpha-beta) over the links that they cross. All groups of a
// collective run at once: each rank has its own share of every link, and the ranks of a group in one host bring their shares together.
#pragma once

#include "runtime/cost/Machine.h"
#include "runtime/plan/InstructionRun.h"

#include <map>
#include <memory>
#include <tuple>

namespace hpc::cost {

/// How the ranks of a group lie on a machine.
struct GroupShape {
  /// Blocks of ranks that meet over one link: single ranks over the innermost, hosts over the network.
  struct Level {
    size_t link = 0;    ///< of Machine::links
    int64_t blocks = 1; ///< that meet in one place; the most of any
    int64_t width = 1;  ///< ranks of the group in each of them; the least of any
    int64_t hops = 0;   ///< of a ring through all ranks that cross this link, but for the one that closes it
  };
  std::vector<Level> levels; ///< from the innermost; those that the group crosses
  int64_t ranks = 1;
};

/// `ranks`: different ranks of the machine, in any order.
GroupShape shapeOf(const Machine &machine, const std::vector<int64_t> &ranks);
/// The group over the axes `over` that the coordinate belongs to, where coordinate 0 is rank `firstRank` (runtime/plan/Groups.h).
GroupShape shapeOf(const Machine &machine, const std::vector<plan::Axis> &axes, const std::vector<std::string> &over, int64_t coordinate = 0,
                   int64_t firstRank = 0);

/// Seconds of one collective of a group. `bytes`: of the whole that one rank has before or after it: what is reduced, the result of an
/// AllGather, the source of a ReduceScatter or AllToAll, the message of a Permute.
///
/// The fastest of these, and of the links' protocols:
/// - AllReduce: ring, double binary tree (a chain inside of hosts), ring or tree between hosts with a reduce-scatter before and a gather
///   after it inside of them. AllGather, ReduceScatter: ring, or one level after the other.
/// - AllToAll: pairwise, or Bruck's with log2(n) steps. Permute: a message over the outermost link.
/// Steps and bytes are those of Thakur, Rabenseifner and Gropp 2005 and of NCCL's src/graph/tuning.cc.
/// Within a host whose ranks share processors, and so memory: each rank copies all of its result, of a ReduceScatter also what it reads.
double collectiveSeconds(const Machine &machine, const GroupShape &shape, plan::CollectiveKind kind, double bytes);

/// Seconds of a message from one rank to another.
double messageSeconds(const Machine &machine, int64_t from, int64_t to, double bytes);

/// Seconds of the collectives and messages of a plan. It remembers the shapes of groups: one thread at a time.
class CollectiveClock {
public:
  explicit CollectiveClock(const Machine &machine) : machine(machine) {}
  double seconds(const plan::InstructionRun &run, const plan::Collective &collective);
  double seconds(const plan::InstructionRun &run, const plan::Send &send) const;

private:
  Machine machine;
  std::map<std::tuple<std::vector<std::string>, int64_t, int64_t>, GroupShape> shapes; ///< by axes, stage, group
};

} // namespace hpc::cost
