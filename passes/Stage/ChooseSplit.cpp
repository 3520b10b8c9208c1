// How many blocks every stage gets.
#include "compiler/Diagnostics.h"
#include "passes/Stage/Blocks.h"

namespace hpc {

/// As even as it goes; the first stages get one more.
static std::vector<size_t> uniformSplit(size_t blocks, size_t stages) {
  std::vector<size_t> counts(stages, blocks / stages);
  for (size_t i = 0; i < blocks % stages; ++i)
    ++counts[i];
  return counts;
}

/// Minimizes the largest stage's cost by dynamic programming over (stages left, first block): O(stages * blocks^2).
/// Among equal maxima the later stages are the lighter ones.
static std::vector<size_t> balancedSplit(ArrayRef<double> cost, size_t stages) {
  size_t blocks = cost.size();
  std::vector<double> prefix(blocks + 1, 0);
  for (size_t i = 0; i < blocks; ++i)
    prefix[i + 1] = prefix[i] + cost[i];
  constexpr double infinite = std::numeric_limits<double>::infinity();
  // best[s][i]: the smallest maximum when s stages share blocks i...; take[s][i]: the first stage's count then.
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(blocks + 1, infinite));
  std::vector<std::vector<size_t>> take(stages + 1, std::vector<size_t>(blocks + 1, 0));
  best[0][blocks] = 0;
  for (size_t s = 1; s <= stages; ++s)
    for (size_t i = 0; i < blocks; ++i)
      for (size_t n = 1; i + n <= blocks; ++n) {
        double worst = std::max(prefix[i + n] - prefix[i], best[s - 1][i + n]);
        if (worst < best[s][i]) {
          best[s][i] = worst;
          take[s][i] = n;
        }
      }
  std::vector<size_t> counts;
  for (size_t s = stages, i = 0; s > 0; i += counts.back(), --s)
    counts.push_back(take[s][i]);
  return counts;
}

std::optional<std::vector<size_t>> chooseSplit(func::FuncOp function, const Blocks &blocks, int64_t stages,
                                               StringRef split) {
  size_t available = blocks.size();
  if (stages < 1 || size_t(stages) > available) {
    userError(function, ErrorKind::Usage)
        << "pp=" << stages << " needs " << stages << " places to cut, the graph has " << available << "; use --pp=1"
        << (available > 1 ? " to " + std::to_string(available) : "");
    return std::nullopt;
  }
  if (split == "uniform")
    return uniformSplit(available, stages);
  if (split == "balanced")
    return balancedSplit(blocks.cost, stages);

  std::vector<size_t> counts;
  SmallVector<StringRef> texts;
  StringRef(split).split(texts, split.contains(',') ? ',' : '-');
  size_t sum = 0;
  for (StringRef text : texts) {
    size_t count = 0;
    if (text.trim().getAsInteger(10, count) || count == 0) {
      userError(function, ErrorKind::Usage)
          << "--pp-split=" << split
          << " is not uniform, balanced, or a list of block counts of at least 1 such as 1,2,1";
      return std::nullopt;
    }
    counts.push_back(count);
    sum += count;
  }
  if (counts.size() != size_t(stages) || sum != available) {
    userError(function, ErrorKind::Usage) << "--pp-split=" << split << " names " << counts.size() << " stages with "
                                          << sum << " blocks, but pp=" << stages << " and the graph has " << available
                                          << " blocks; give " << stages << " numbers that sum to " << available;
    return std::nullopt;
  }
  return counts;
}

} // namespace hpc
