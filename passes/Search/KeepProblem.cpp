// The price of a byte is found by bisection; choices at that price are near the optimum on both sides of the memory. The lists then hold only
// what may still beat the one that fits.
#include "passes/Search/KeepProblem.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace hpc::search {

static Status wrongKeep(const std::string &why) { return Status::error(ErrorKind::Internal, "keep problem: " + why); }

Status KeepProblem::check() const {
  for (const Layers &each : layers) {
    if (each.options.empty() || each.count < 1)
      return wrongKeep(std::to_string(each.count) + " layers with " + std::to_string(each.options.size()) + " options");
    for (const Option &option : each.options)
      if (!(option.seconds >= 0) || !std::isfinite(option.seconds) || option.bytes < 0)
        return wrongKeep("'" + option.name + "' takes " + std::to_string(option.seconds) + " s and " + std::to_string(option.bytes) + " bytes");
  }
  return Status::success();
}

double KeepProblem::boundAt(double price) const {
  double sum = price > 0 ? -price * double(memory) : 0;
  for (const Layers &each : layers) {
    double least = std::numeric_limits<double>::infinity();
    for (const Option &option : each.options)
      least = std::min(least, option.seconds + price * double(option.bytes));
    sum += double(each.count) * least;
  }
  return sum;
}

Status KeepProblem::verify(const Solution &solution) const {
  if (solution.chosen.size() != layers.size())
    return wrongKeep("the solution has choices for " + std::to_string(solution.chosen.size()) + " kinds of layers");
  double seconds = 0;
  int64_t bytes = 0;
  for (size_t kind = 0; kind < layers.size(); ++kind) {
    int64_t count = 0;
    if (solution.chosen[kind].size() != layers[kind].options.size())
      return wrongKeep("the solution does not choose among all options");
    for (size_t option = 0; option < layers[kind].options.size(); ++option) {
      const int64_t times = solution.chosen[kind][option];
      if (times < 0)
        return wrongKeep("an option is taken a negative number of times");
      count += times;
      seconds += double(times) * layers[kind].options[option].seconds;
      bytes += times * layers[kind].options[option].bytes;
    }
    if (count != layers[kind].count)
      return wrongKeep(std::to_string(count) + " of " + std::to_string(layers[kind].count) + " layers choose");
  }
  const double tolerance = 1e-9 * std::max(seconds, 1e-12);
  if (bytes > memory || bytes != solution.bytes || std::abs(seconds - solution.seconds) > tolerance)
    return wrongKeep("the choices take " + std::to_string(seconds) + " s and " + std::to_string(bytes) + " bytes of " + std::to_string(memory));
  if (std::abs(boundAt(solution.price) - solution.bound) > tolerance || solution.bound > solution.seconds + tolerance)
    return wrongKeep("no less than " + std::to_string(solution.bound) + " s is not the bound at its price");
  return Status::success();
}

namespace {

struct Sum {
  double seconds = 0;
  int64_t bytes = 0;
};

/// A choice of some layers, and how it came about.
struct State {
  Sum sum;
  int32_t before = -1; ///< index into the states one layer earlier
  int32_t option = -1;
};

/// The cheapest options at a price; of equally cheap ones those with the fewest bytes.
std::vector<size_t> cheapestAt(const KeepProblem &problem, double price) {
  std::vector<size_t> chosen;
  for (const KeepProblem::Layers &each : problem.layers) {
    size_t best = 0;
    for (size_t option = 1; option < each.options.size(); ++option) {
      const auto costOf = [&](size_t index) { return each.options[index].seconds + price * double(each.options[index].bytes); };
      if (costOf(option) < costOf(best) || (costOf(option) == costOf(best) && each.options[option].bytes < each.options[best].bytes))
        best = option;
    }
    chosen.push_back(best);
  }
  return chosen;
}

Sum sumOf(const KeepProblem &problem, const std::vector<size_t> &chosen) {
  Sum sum;
  for (size_t kind = 0; kind < chosen.size(); ++kind) {
    const KeepProblem::Option &option = problem.layers[kind].options[chosen[kind]];
    sum.seconds += double(problem.layers[kind].count) * option.seconds;
    sum.bytes += problem.layers[kind].count * option.bytes;
  }
  return sum;
}

/// The least price at which the cheapest options fit, by ratios of differences: an upper end that certainly fits, then halves.
double priceOf(const KeepProblem &problem) {
  if (sumOf(problem, cheapestAt(problem, 0)).bytes <= problem.memory)
    return 0;
  double high = 1e-15;
  while (sumOf(problem, cheapestAt(problem, high)).bytes > problem.memory && high < 1e30)
    high *= 4;
  double low = 0;
  for (int halves = 0; halves < 100; ++halves) {
    const double middle = (low + high) / 2;
    (sumOf(problem, cheapestAt(problem, middle)).bytes <= problem.memory ? high : low) = middle;
  }
  return high;
}

/// One layer of a kind takes another option.
struct Move {
  size_t kind = 0, from = 0, to = 0;
  Sum change;
};

/// Single moves and pairs of them that save the most within the memory, until none does: a good choice, against which the lists are cut.
double improve(const KeepProblem &problem, const std::vector<size_t> &start) {
  Sum sum = sumOf(problem, start);
  std::vector<std::vector<int64_t>> count;
  for (size_t kind = 0; kind < start.size(); ++kind) {
    count.emplace_back(problem.layers[kind].options.size(), 0);
    count.back()[start[kind]] = problem.layers[kind].count;
  }
  for (;;) {
    std::vector<Move> moves{{}}; // the first moves nothing
    for (size_t kind = 0; kind < count.size(); ++kind)
      for (size_t from = 0; from < count[kind].size(); ++from)
        for (size_t to = 0; count[kind][from] > 0 && to < count[kind].size(); ++to) {
          const KeepProblem::Option &one = problem.layers[kind].options[from], &other = problem.layers[kind].options[to];
          if (to != from)
            moves.push_back({kind, from, to, {other.seconds - one.seconds, other.bytes - one.bytes}});
        }
    std::optional<std::pair<size_t, size_t>> best;
    double saved = -1e-12 * sum.seconds;
    for (size_t one = 0; one < moves.size(); ++one)
      for (size_t other = one + 1; other < moves.size(); ++other) {
        const Sum change{moves[one].change.seconds + moves[other].change.seconds, moves[one].change.bytes + moves[other].change.bytes};
        const bool isTwice = one > 0 && moves[one].kind == moves[other].kind && moves[one].from == moves[other].from &&
                             count[moves[one].kind][moves[one].from] < 2;
        if (change.seconds < saved && sum.bytes + change.bytes <= problem.memory && !isTwice) {
          saved = change.seconds;
          best = {one, other};
        }
      }
    if (!best)
      return sum.seconds;
    for (size_t each : {best->first, best->second}) {
      const Move &move = moves[each];
      sum = {sum.seconds + move.change.seconds, sum.bytes + move.change.bytes};
      if (each > 0) {
        --count[move.kind][move.from];
        ++count[move.kind][move.to];
      }
    }
  }
}

/// Layers one by one: each adds one of its options to each list entry; what is beaten, does not fit with the least that the others take, or
/// cannot beat `known` at the price is left out.
class Lists {
public:
  Lists(const KeepProblem &problem, double price, double known) : problem(problem), price(price), known(known) {}

  KeepProblem::Solution run() {
    std::vector<std::vector<State>> all{{State{}}};
    std::vector<size_t> kinds;
    double restSeconds = problem.boundAt(price) + (price > 0 ? price * double(problem.memory) : 0);
    int64_t restBytes = leastBytes();
    for (size_t kind = 0; kind < problem.layers.size(); ++kind) {
      const KeepProblem::Layers &layers = problem.layers[kind];
      double cheapest = std::numeric_limits<double>::infinity();
      int64_t smallest = std::numeric_limits<int64_t>::max();
      for (const KeepProblem::Option &option : layers.options) {
        cheapest = std::min(cheapest, option.seconds + price * double(option.bytes));
        smallest = std::min(smallest, option.bytes);
      }
      for (int64_t layer = 0; layer < layers.count; ++layer) {
        restSeconds -= cheapest;
        restBytes -= smallest;
        all.push_back(extend(all.back(), layers, restSeconds, restBytes));
        kinds.push_back(kind);
      }
    }
    return trace(all, kinds);
  }

private:
  int64_t leastBytes() const {
    int64_t sum = 0;
    for (const KeepProblem::Layers &each : problem.layers) {
      int64_t least = std::numeric_limits<int64_t>::max();
      for (const KeepProblem::Option &option : each.options)
        least = std::min(least, option.bytes);
      sum += each.count * least;
    }
    return sum;
  }

  std::vector<State> extend(const std::vector<State> &states, const KeepProblem::Layers &layers, double restSeconds, int64_t restBytes) const {
    std::vector<State> next;
    for (size_t index = 0; index < states.size(); ++index)
      for (size_t option = 0; option < layers.options.size(); ++option) {
        const Sum sum{states[index].sum.seconds + layers.options[option].seconds, states[index].sum.bytes + layers.options[option].bytes};
        const double least = sum.seconds + restSeconds + price * (double(sum.bytes) - double(price > 0 ? problem.memory : 0));
        if (sum.bytes + restBytes <= problem.memory && least <= known * (1 + 1e-12))
          next.push_back({sum, int32_t(index), int32_t(option)});
      }
    auto keyOf = [](const State &state) { return std::tuple(state.sum.bytes, state.sum.seconds, state.before, state.option); };
    std::sort(next.begin(), next.end(), [&](const State &one, const State &other) { return keyOf(one) < keyOf(other); });
    std::vector<State> kept;
    for (const State &state : next)
      if (kept.empty() || state.sum.seconds < kept.back().sum.seconds * (1 - 1e-13))
        kept.push_back(state);
    return kept;
  }

  KeepProblem::Solution trace(const std::vector<std::vector<State>> &all, const std::vector<size_t> &kinds) const {
    KeepProblem::Solution solution;
    for (const KeepProblem::Layers &each : problem.layers)
      solution.chosen.emplace_back(each.options.size(), 0);
    size_t at = all.back().size() - 1; // fewest seconds: the lists fall in seconds as bytes rise
    solution.seconds = all.back()[at].sum.seconds;
    solution.bytes = all.back()[at].sum.bytes;
    for (size_t layer = kinds.size(); layer > 0; at = size_t(all[layer--][at].before))
      ++solution.chosen[kinds[layer - 1]][size_t(all[layer][at].option)];
    return solution;
  }

  const KeepProblem &problem;
  double price, known;
};

} // namespace

Expected<KeepProblem::Solution> chooseWhatIsKept(const KeepProblem &problem) {
  HPC_RETURN_IF_ERROR(problem.check());
  int64_t least = 0;
  for (const KeepProblem::Layers &each : problem.layers) {
    const auto smallest = std::min_element(each.options.begin(), each.options.end(),
                                           [](const KeepProblem::Option &one, const KeepProblem::Option &other) { return one.bytes < other.bytes; });
    least += each.count * smallest->bytes;
  }
  if (least > problem.memory)
    return Status::error(ErrorKind::Capacity,
                         "the layers take at least " + std::to_string(least) + " bytes, and " + std::to_string(problem.memory) + " are left for them");
  const double price = priceOf(problem);
  const std::vector<size_t> start = cheapestAt(problem, price);
  const bool fits = sumOf(problem, start).bytes <= problem.memory;
  KeepProblem::Solution solution = Lists(problem, price, fits ? improve(problem, start) : std::numeric_limits<double>::infinity()).run();
  solution.price = price;
  solution.bound = problem.boundAt(price);
  return solution;
}

} // namespace hpc::search
