#include "runtime/cost/CollectiveTime.h"

#include "runtime/plan/Groups.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace hpc::cost {

using namespace plan;

// ---- where a group lies -------------------------------------------------------------------------

GroupShape shapeOf(const Machine &machine, const std::vector<int64_t> &ranks) {
  GroupShape shape;
  shape.ranks = int64_t(ranks.size());
  std::map<int64_t, int64_t> inner; // ranks of the group by block of the link below
  for (int64_t rank : ranks)
    ++inner[rank];
  int64_t innerSize = 1;
  for (size_t index = 0; index < machine.links.size(); ++index) {
    const int64_t size = machine.links[index].ranks;
    std::map<int64_t, int64_t> outer, blocks; // by block of this link
    GroupShape::Level level{index, 1, std::numeric_limits<int64_t>::max(), 0};
    for (auto [block, members] : inner) {
      const int64_t id = size ? block * innerSize / size : 0;
      outer[id] += members;
      level.blocks = std::max(level.blocks, ++blocks[id]);
      level.width = std::min(level.width, members);
    }
    level.hops = int64_t(inner.size()) - int64_t(outer.size());
    if (level.hops)
      shape.levels.push_back(level);
    inner = std::move(outer);
    innerSize = size;
  }
  return shape;
}

GroupShape shapeOf(const Machine &machine, const std::vector<Axis> &axes, const std::vector<std::string> &over, int64_t coordinate, int64_t firstRank) {
  std::vector<int64_t> ranks = {coordinate};
  int64_t stride = 1;
  for (size_t a = axes.size(); a-- > 0; stride *= axes[a].size) {
    if (std::find(over.begin(), over.end(), axes[a].name) == over.end())
      continue;
    const std::vector<int64_t> before = ranks;
    ranks.clear();
    for (int64_t rank : before)
      for (int64_t digit = 0, own = rank / stride % axes[a].size; digit < axes[a].size; ++digit)
        ranks.push_back(rank + (digit - own) * stride);
  }
  for (int64_t &rank : ranks)
    rank += firstRank;
  return shapeOf(machine, ranks);
}

// ---- how long it takes --------------------------------------------------------------------------

namespace {

/// Each rank gets what the others of its ring or tree have: once for a gather, twice for an all-reduce.
struct Pass {
  double latency = 0, secondsPerByte = 0;
  double seconds(double bytes) const { return latency + bytes * secondsPerByte; }
};

/// A group that uses one of the links' protocols.
class Algorithms {
public:
  Algorithms(const Machine &machine, const GroupShape &shape, size_t protocol) : ranks(double(shape.ranks)) {
    double even = 1;
    for (const GroupShape::Level &level : shape.levels) {
      const Link &link = machine.links[level.link];
      const bool insideHost = machine.ranksPerHost == 0 || (link.ranks && link.ranks <= machine.ranksPerHost);
      levels.push_back({link.protocol(protocol), double(level.blocks), double(level.width), double(level.hops), insideHost});
      even *= double(level.blocks);
    }
    byLevels = levels.size() > 1 && even == ranks; // else nothing is gained, or blocks differ in size
  }

  double allReduce(double bytes) const {
    const double start = levels.back().sends.start;
    double best = start + 2 * std::min(ring(0, levels.size()).seconds(bytes), tree(0).seconds(bytes));
    if (byLevels) {
      const double share = bytes / levels.front().blocks;
      best = std::min(best, 2 * (levels.front().sends.start + ring(0, 1).seconds(bytes)) + start +
                                2 * std::min(ring(1, levels.size()).seconds(share), tree(1).seconds(share)));
    }
    return best;
  }

  /// Seconds of an all-gather or a reduce-scatter.
  double gather(double bytes) const {
    const double atOnce = levels.back().sends.start + ring(0, levels.size()).seconds(bytes);
    if (!byLevels)
      return atOnce;
    double inTurn = 0, whole = bytes;
    for (size_t level = 0; level < levels.size(); whole /= levels[level++].blocks)
      inTurn += levels[level].sends.start + ring(level, level + 1).seconds(whole);
    return std::min(atOnce, inTurn);
  }

  double allToAll(double bytes) const {
    Pass pairs, bruck;
    double nearer = 1;
    for (const Level &level : levels) {
      const double there = level.blocks * nearer - nearer; // ranks that are reached over this link
      pairs.latency += there * level.sends.latency;
      pairs.secondsPerByte = std::max(pairs.secondsPerByte, there / ranks / level.sends.bytesPerSecond);
      bruck.latency += std::ceil(std::log2(level.blocks)) * level.sends.latency;
      bruck.secondsPerByte = std::max(bruck.secondsPerByte, std::ceil(std::log2(ranks)) / 2 / level.sends.bytesPerSecond);
      nearer *= level.blocks;
    }
    return levels.back().sends.start + std::min(pairs.seconds(bytes), bruck.seconds(bytes));
  }

  double message(double bytes) const { return messageSeconds(levels.back().sends, bytes); }
  static double messageSeconds(const Protocol &sends, double bytes) { return sends.start + sends.latency + bytes / sends.bytesPerSecond; }

private:
  struct Level {
    Protocol sends;
    double blocks, width, hops;
    bool insideHost;
  };

  /// Bytes a second that a block of ranks sends over the link of a level, if rings or trees begin at level `first`.
  double bandwidth(size_t level, size_t first) const {
    return levels[level].sends.bytesPerSecond * levels[level].width / (first ? levels[first].width : 1);
  }

  /// Through levels first..last - 1. Pieces follow each other, so that all links are busy at once.
  Pass ring(size_t first, size_t last) const {
    double members = 1;
    for (size_t i = first; i < last; ++i)
      members *= levels[i].blocks;
    if (first == 0 && last == levels.size())
      members = ranks;
    Pass pass;
    double rings = members; // of the blocks below, where these are of one size
    for (size_t i = first; i < last; ++i) {
      rings /= levels[i].blocks;
      pass.latency += (byLevels ? (levels[i].blocks - 1) * rings : levels[i].hops) * levels[i].sends.latency;
      pass.secondsPerByte = std::max(pass.secondsPerByte, (members - 1) / members / bandwidth(i, first));
    }
    return pass;
  }

  /// Up or down a tree, a chain inside of hosts. Of a double tree, each half carries half the bytes, up and down at once.
  Pass tree(size_t first) const {
    Pass pass;
    for (size_t i = first; i < levels.size(); ++i) {
      const Level &level = levels[i];
      pass.latency += (level.insideHost ? level.blocks - 1 : std::ceil(std::log2(level.blocks))) *
                      (level.sends.treeLatency ? level.sends.treeLatency : level.sends.latency);
      pass.secondsPerByte = std::max(pass.secondsPerByte, 1 / bandwidth(i, first));
    }
    return pass;
  }

  const double ranks;
  std::vector<Level> levels;
  bool byLevels = false;
};

double secondsBy(const Algorithms &algorithms, CollectiveKind kind, double bytes) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return algorithms.allReduce(bytes);
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    return algorithms.gather(bytes);
  case CollectiveKind::AllToAll:
    return algorithms.allToAll(bytes);
  case CollectiveKind::Permute:
    break;
  }
  return algorithms.message(bytes);
}

/// Ranks that share memory copy with their own processors, each all of its result.
double secondsInMemory(const Machine &machine, const GroupShape &shape, CollectiveKind kind, double bytes) {
  const Link &link = machine.links.front();
  const double ranks = double(shape.ranks), copied = kind == CollectiveKind::ReduceScatter ? bytes * (1 + 1 / ranks) / 2 : bytes;
  return link.start + 2 * (ranks - 1) * link.latency + copied / link.bytesPerSecond;
}

/// Seconds that a rank takes to go on after it slept at a collective, since others had the processors. Where there are more than two for
/// each of these, part of the time goes by while another computes.
double sleepSeconds(const Machine &machine, const Plan &plan) {
  const int64_t ranks = machine.ranksPerHost > 0 ? std::min(machine.ranksPerHost, plan.worldSize()) : plan.worldSize();
  if (machine.cores == 0 || ranks <= machine.cores)
    return 0;
  return machine.wakeSeconds * std::min(1.0, 2 * double(machine.cores) / double(ranks));
}

} // namespace

double collectiveSeconds(const Machine &machine, const GroupShape &shape, CollectiveKind kind, double bytes) {
  if (shape.levels.empty() || bytes == 0)
    return 0;
  if (machine.cores > 0 && shape.levels.size() == 1 && shape.levels.front().link == 0)
    return secondsInMemory(machine, shape, kind, bytes);
  double best = std::numeric_limits<double>::infinity();
  for (size_t protocol = 0; protocol <= machine.links.front().others.size(); ++protocol)
    best = std::min(best, secondsBy(Algorithms(machine, shape, protocol), kind, bytes));
  return best;
}

double messageSeconds(const Machine &machine, int64_t from, int64_t to, double bytes) {
  if (from == to || bytes == 0)
    return 0;
  const Link &link = machine.linkOf(std::min(from, to), std::abs(to - from) + 1);
  double best = std::numeric_limits<double>::infinity();
  for (size_t protocol = 0; protocol <= link.others.size(); ++protocol)
    best = std::min(best, Algorithms::messageSeconds(link.protocol(protocol), bytes));
  return best;
}

// ---- of a plan ----------------------------------------------------------------------------------

double CollectiveClock::seconds(const InstructionRun &run, const Collective &collective) {
  const int64_t group = seatOf(run.plan.axes, run.coordinate, collective.axes).group;
  auto [known, isNew] = shapes.try_emplace({collective.axes, run.stage, group});
  if (isNew)
    known->second = shapeOf(machine, run.plan.axes, collective.axes, run.coordinate, run.stage * run.plan.ranksPerStage());
  double bytes = double(collective.count) * double(byteSize(collective.dtype));
  if (collective.kind != CollectiveKind::AllReduce && collective.kind != CollectiveKind::Permute)
    bytes *= double(known->second.ranks);
  const double seconds = collectiveSeconds(machine, known->second, collective.kind, bytes);
  return seconds > 0 ? seconds + sleepSeconds(machine, run.plan) : 0;
}

double CollectiveClock::seconds(const InstructionRun &run, const Send &send) const {
  const int64_t ranks = run.plan.ranksPerStage(), to = send.peer.at(run.coordinate, run.microBatch, ranks);
  // A stage waits for the other longer than a processor polls.
  return to < 0 ? 0 : messageSeconds(machine, run.stage * ranks + run.coordinate, to, double(send.bytes)) + machine.wakeSeconds;
}

} // namespace hpc::cost
