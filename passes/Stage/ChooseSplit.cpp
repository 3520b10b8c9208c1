// How many blocks every part of the pipeline gets.
#include "compiler/Diagnostics.h"
#include "passes/Stage/Blocks.h"
#include "runtime/base/CountText.h"

namespace hpc {

/// As even as it goes; the first stages get one more.
static std::vector<size_t> uniformSplit(size_t blocks, size_t stages) {
  std::vector<size_t> counts(stages, blocks / stages);
  for (size_t i = 0; i < blocks % stages; ++i)
    ++counts[i];
  return counts;
}

/// Minimizes the largest part's cost by dynamic programming over (parts left, first block): O(parts * blocks * log
/// blocks). Among equal maxima the first parts take as few blocks as they can.
std::vector<size_t> balancedSplit(ArrayRef<double> cost, size_t parts) {
  size_t blocks = cost.size();
  std::vector<double> prefix(blocks + 1, 0);
  for (size_t i = 0; i < blocks; ++i)
    prefix[i + 1] = prefix[i] + cost[i];
  auto blocksWhere = [](size_t least, size_t most, auto holds) { // the first n in [least, most] that holds, else most
    while (least < most) {
      size_t middle = (least + most) / 2;
      if (holds(middle))
        most = middle;
      else
        least = middle + 1;
    }
    return least;
  };
  // best[i]: the smallest maximum when p parts share blocks i...; take[p][i]: the first part's count then.
  std::vector<double> best(blocks + 1);
  for (size_t i = 0; i <= blocks; ++i)
    best[i] = prefix[blocks] - prefix[i];
  std::vector<std::vector<size_t>> take(parts + 1, std::vector<size_t>(blocks + 1, 0));
  for (size_t i = 0; i < blocks; ++i)
    take[1][i] = blocks - i;
  for (size_t p = 2; p <= parts; ++p) {
    std::vector<double> next(blocks + 1, 0);
    for (size_t i = 0; i + p <= blocks; ++i) {
      // With n the first part's cost grows and the others' maximum falls, so the best is where they meet.
      size_t most = blocks - i - (p - 1);
      auto worst = [&](size_t n) { return std::max(prefix[i + n] - prefix[i], best[i + n]); };
      size_t n = blocksWhere(1, most, [&](size_t n) { return prefix[i + n] - prefix[i] >= best[i + n]; });
      if (n > 1 && worst(n - 1) <= worst(n))
        n = blocksWhere(1, n - 1, [&, limit = worst(n - 1)](size_t n) { return best[i + n] <= limit; });
      next[i] = worst(n);
      take[p][i] = n;
    }
    best = std::move(next);
  }
  std::vector<size_t> counts;
  for (size_t p = parts, i = 0; p > 0; i += counts.back(), --p)
    counts.push_back(take[p][i]);
  return counts;
}

/// "pp=4", or "pp=4 with 2 chunks a stage".
static std::string describeParts(int64_t stages, int64_t chunks) {
  return "pp=" + std::to_string(stages) + (chunks > 1 ? " with " + countText(chunks, "chunk") + " a stage" : "");
}

/// The remedy in a message: fewer stages, or fewer chunks of as many.
static std::string nearestChoice(size_t available, int64_t stages, int64_t chunks) {
  if (chunks > 1 && int64_t(available) >= stages)
    return "--pp-chunks=1" +
           (int64_t(available) / stages > 1 ? " to " + std::to_string(int64_t(available) / stages) : "");
  return "--pp=1" + (available > 1 ? " to " + std::to_string(available) : "") +
         std::string(chunks > 1 ? " with --pp-chunks=1" : "");
}

static std::optional<std::vector<size_t>> readSplit(func::FuncOp function, size_t available, size_t parts,
                                                    const std::string &described, StringRef split) {
  std::vector<size_t> counts;
  SmallVector<StringRef> texts;
  split.split(texts, split.contains(',') ? ',' : '-');
  size_t sum = 0;
  for (StringRef text : texts) {
    size_t count = 0;
    if (text.trim().getAsInteger(10, count) || count == 0 || count > available) {
      userError(function, ErrorKind::Usage)
          << "--pp-split=" << split << " is not uniform, balanced, or a list of block counts from 1 to " << available
          << " such as 1,2,1";
      return std::nullopt;
    }
    counts.push_back(count);
    sum += count;
  }
  if (counts.size() == parts && sum == available)
    return counts;
  std::vector<size_t> even = uniformSplit(available, parts);
  std::string nearest;
  for (size_t count : even)
    nearest += (nearest.empty() ? "" : ",") + std::to_string(count);
  userError(function, ErrorKind::Usage) << "--pp-split=" << split << " names " << countText(int64_t(counts.size()), "part")
                                        << " with " << countText(int64_t(sum), "block") << ", but " << described
                                        << " has " << countText(int64_t(parts), "part") << " and the graph has "
                                        << countText(int64_t(available), "block") << "; give "
                                        << countText(int64_t(parts), "number") << " that sum to " << available
                                        << ", such as " << nearest;
  return std::nullopt;
}

std::optional<std::vector<size_t>> chooseSplit(func::FuncOp function, const Blocks &blocks, int64_t stages,
                                               int64_t chunks, StringRef split) {
  size_t available = blocks.size();
  if (stages < 1 || chunks < 1) {
    userError(function, ErrorKind::Usage)
        << "--pp=" << stages << " and --pp-chunks=" << chunks << " must both be at least 1";
    return std::nullopt;
  }
  size_t parts = size_t(stages) * size_t(chunks);
  std::string described = describeParts(stages, chunks);
  if (parts > available) {
    userError(function, ErrorKind::Usage) << described << " needs " << parts << " places to cut, the graph has "
                                          << available << "; use " << nearestChoice(available, stages, chunks);
    return std::nullopt;
  }
  if (split == "uniform")
    return uniformSplit(available, parts);
  if (split == "balanced")
    return balancedSplit(blocks.cost, parts);
  return readSplit(function, available, parts, described, split);
}

} // namespace hpc
