// Both solvers add up blocks by prefix sums, and compare seconds with the sums that verify forms.
#include "passes/Search/StageProblem.h"

#include <algorithm>
#include <cmath>

namespace hpc::search {

static Status wrongStages(const std::string &why) { return Status::error(ErrorKind::Internal, "stage problem: " + why); }

Status StageProblem::check() const {
  if (stages < 1 || chunks < 1)
    return wrongStages(std::to_string(stages) + " stages of " + std::to_string(chunks) + " chunks");
  if (int64_t(blocks.size()) < parts())
    return wrongStages(std::to_string(blocks.size()) + " blocks for " + std::to_string(parts()) + " parts");
  if (int64_t(inFlight.size()) != parts() || std::any_of(inFlight.begin(), inFlight.end(), [](int64_t count) { return count < 1; }))
    return wrongStages("micro-batches in flight are not given for each part");
  for (const Block &block : blocks)
    if (!(block.seconds >= 0) || !std::isfinite(block.seconds) || block.lasting < 0 || block.kept < 0)
      return wrongStages("a block takes " + std::to_string(block.seconds) + " s, " + std::to_string(block.lasting) + " and " +
                         std::to_string(block.kept) + " bytes");
  return Status::success();
}

double StageProblem::secondsOf(const std::vector<int64_t> &counts, int64_t stage) const {
  double seconds = 0;
  int64_t block = 0;
  for (int64_t part = 0; part < parts(); block += counts[size_t(part++)])
    if (part % stages == stage)
      for (int64_t i = block; i < block + counts[size_t(part)]; ++i)
        seconds += blocks[size_t(i)].seconds;
  return seconds;
}

int64_t StageProblem::memoryOf(const std::vector<int64_t> &counts, int64_t stage) const {
  int64_t bytes = temporaries, block = 0;
  for (int64_t part = 0; part < parts(); block += counts[size_t(part++)])
    if (part % stages == stage)
      for (int64_t i = block; i < block + counts[size_t(part)]; ++i)
        bytes += blocks[size_t(i)].lasting + inFlight[size_t(part)] * blocks[size_t(i)].kept;
  return bytes;
}

double StageProblem::slowest(const std::vector<int64_t> &counts) const {
  double most = 0;
  for (int64_t stage = 0; stage < stages; ++stage)
    most = std::max(most, secondsOf(counts, stage));
  return most;
}

Status StageProblem::verify(const Solution &solution) const {
  int64_t sum = 0;
  for (int64_t count : solution.counts) {
    if (count < 1)
      return wrongStages("a part has no blocks");
    sum += count;
  }
  if (int64_t(solution.counts.size()) != parts() || sum != int64_t(blocks.size()))
    return wrongStages("the solution has " + std::to_string(solution.counts.size()) + " parts of " + std::to_string(sum) + " blocks");
  for (int64_t stage = 0; stage < stages; ++stage)
    if (memoryOf(solution.counts, stage) > memory)
      return wrongStages("stage " + std::to_string(stage) + " takes " + std::to_string(memoryOf(solution.counts, stage)) + " bytes");
  const double most = slowest(solution.counts);
  if (std::abs(most - solution.seconds) > 1e-9 * most || solution.bound > solution.seconds * (1 + 1e-9))
    return wrongStages("the slowest stage takes " + std::to_string(most) + " s, the solution says " + std::to_string(solution.seconds) +
                       " and no less than " + std::to_string(solution.bound));
  return Status::success();
}

namespace {

/// Sums over blocks [first, end).
struct Prefix {
  std::vector<double> seconds{0};
  std::vector<int64_t> lasting{0}, kept{0};
  explicit Prefix(const StageProblem &problem) {
    for (const StageProblem::Block &block : problem.blocks) {
      seconds.push_back(seconds.back() + block.seconds);
      lasting.push_back(lasting.back() + block.lasting);
      kept.push_back(kept.back() + block.kept);
    }
  }
  double secondsOf(size_t first, size_t end) const { return seconds[end] - seconds[first]; }
  int64_t bytesOf(size_t first, size_t end, int64_t inFlight) const { return lasting[end] - lasting[first] + inFlight * (kept[end] - kept[first]); }
};

constexpr double unreachable = std::numeric_limits<double>::infinity();

/// least[s][i]: the slowest of stages s... where they share blocks i...; take[s][i]: the count of stage s then.
struct Table {
  std::vector<std::vector<double>> least;
  std::vector<std::vector<int64_t>> take;
};

Table fillTable(const StageProblem &problem, const Prefix &prefix) {
  const size_t blocks = problem.blocks.size(), stages = size_t(problem.stages);
  Table table{std::vector<std::vector<double>>(stages + 1, std::vector<double>(blocks + 1, unreachable)),
              std::vector<std::vector<int64_t>>(stages, std::vector<int64_t>(blocks + 1, 0))};
  table.least[stages][blocks] = 0;
  for (size_t stage = stages; stage-- > 0;)
    for (size_t first = stage; first < blocks; ++first)
      for (size_t end = first + 1; end <= blocks; ++end) {
        if (prefix.bytesOf(first, end, problem.inFlight[stage]) + problem.temporaries > problem.memory)
          break;
        const double slowest = std::max(prefix.secondsOf(first, end), table.least[stage + 1][end]);
        if (slowest < table.least[stage][first]) {
          table.least[stage][first] = slowest;
          table.take[stage][first] = int64_t(end - first);
        }
      }
  return table;
}

Status noneFits(const StageProblem &problem) {
  return Status::error(ErrorKind::Capacity, "no split of " + std::to_string(problem.blocks.size()) + " blocks over " + std::to_string(problem.stages) +
                                                " stages takes at most " + std::to_string(problem.memory) + " bytes a rank");
}

/// Parts in order, each with every count that may still lead to something better than what is known.
class Branches {
public:
  Branches(const StageProblem &problem, int64_t nodes)
      : problem(problem), prefix(problem), left(nodes), seconds(size_t(problem.stages), 0), bytes(size_t(problem.stages), problem.temporaries),
        counts(size_t(problem.parts()), 0) {
    best.seconds = unreachable;
    best.bound = std::max(prefix.seconds.back() / double(problem.stages), slowestBlock());
  }

  Expected<StageProblem::Solution> run() {
    visit(0, 0);
    if (best.counts.empty())
      return noneFits(problem);
    if (left > 0)
      best.bound = best.seconds;
    return best;
  }

private:
  double slowestBlock() const {
    double most = 0;
    for (const StageProblem::Block &block : problem.blocks)
      most = std::max(most, block.seconds);
    return most;
  }

  void visit(size_t part, size_t first) {
    const size_t parts = counts.size(), blocks = problem.blocks.size(), stage = part % seconds.size();
    if (part == parts) {
      best = {counts, *std::max_element(seconds.begin(), seconds.end()), best.bound};
      best.seconds = problem.slowest(counts);
      return;
    }
    // Counts near an even share come first, so that what is known soon is good.
    const size_t most = blocks - first - (parts - part - 1), least = part + 1 == parts ? most : 1;
    const size_t even = std::clamp<size_t>((blocks - first) / (parts - part), least, most);
    for (size_t step = 0; step <= 2 * (most - least + 1) && left > 0 && best.seconds > best.bound * (1 + 1e-12); ++step) {
      const size_t count = step % 2 ? even - std::min(even, (step + 1) / 2) : even + step / 2;
      if (count < least || count > most)
        continue;
      --left;
      const double more = prefix.secondsOf(first, first + count);
      const int64_t takes = prefix.bytesOf(first, first + count, problem.inFlight[part]);
      if (!(seconds[stage] + more < best.seconds) || bytes[stage] + takes > problem.memory || !mayImprove(stage, more, first + count))
        continue;
      seconds[stage] += more;
      bytes[stage] += takes;
      counts[part] = int64_t(count);
      visit(part + 1, first + count);
      seconds[stage] -= more;
      bytes[stage] -= takes;
    }
  }

  /// Whether the blocks that are left fit below what is known: their mean over what each stage has.
  bool mayImprove(size_t stage, double more, size_t next) const {
    double room = 0;
    for (size_t other = 0; other < seconds.size(); ++other)
      room += best.seconds - seconds[other] - (other == stage ? more : 0);
    return prefix.secondsOf(next, problem.blocks.size()) < room;
  }

  const StageProblem &problem;
  const Prefix prefix;
  int64_t left;
  std::vector<double> seconds; ///< by stage, of the parts so far
  std::vector<int64_t> bytes;
  std::vector<int64_t> counts;
  StageProblem::Solution best;
};

} // namespace

Expected<StageProblem::Solution> splitStages(const StageProblem &problem, int64_t nodes) {
  HPC_RETURN_IF_ERROR(problem.check());
  if (problem.chunks > 1)
    return Branches(problem, nodes).run();
  const Table table = fillTable(problem, Prefix(problem));
  if (table.least[0][0] == unreachable)
    return noneFits(problem);
  StageProblem::Solution solution;
  for (size_t stage = 0, first = 0; stage < size_t(problem.stages); first += size_t(solution.counts[stage++]))
    solution.counts.push_back(table.take[stage][first]);
  solution.seconds = solution.bound = problem.slowest(solution.counts);
  return solution;
}

} // namespace hpc::search
