// The candidates with the least memory are compiled, then those of more devices.
#include "passes/Search/NothingFits.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/PlanStructure.h"

#include <limits>

namespace hpc::search {

constexpr size_t near = 3, tries = 8;

/// Those with the least memory, the smallest first: compiled without a limit, or of a large program estimated. With a limit none that is seen to need more, and only until some are estimated to fit.
static SmallVector<Row *> smallest(CandidateTable &table, std::optional<int64_t> limit = std::nullopt) {
  const int64_t most = limit ? *limit + *limit / 8 : std::numeric_limits<int64_t>::max(); // an estimate may err
  auto byMemory = [](const Row &row) { return std::pair(row.memory(), row.seconds()); };
  auto isWanted = [&](const Row &row) { return row.candidate.recompute != "auto" && row.memory() <= most; };
  auto isEnough = [&](const Row &row) { return limit && row.estimate && row.memory() <= *limit; };
  for (int round = 0; table.estimates() && round < 3 && table.first(1, isEnough, byMemory).empty(); ++round)
    table.profile(table.first(tries, [&](const Row &row) { return !row.profiled && isWanted(row); }, byMemory));
  if (table.isLarge())
    return table.first(near, [](const Row &row) { return row.estimate.has_value(); }, byMemory);
  table.compile(table.first(limit ? near : tries, [&](const Row &row) { return (row.estimate || !table.estimates()) && isWanted(row); }, byMemory), /*withoutLimit=*/true);
  return table.first(near, [](const Row &row) { return row.trial.has_value(); }, byMemory);
}

/// The first number of devices, twice as many each time, of which a plan fits; then those between it and the one before.
static std::optional<std::pair<int64_t, Row>> moreDevices(CandidateTable &table) {
  const int64_t limit = table.space.options.memory, given = table.space.devices;
  auto fitting = [&](int64_t devices) -> std::optional<Row> {
    table.space.devices = devices;
    table.addCandidates();
    for (Row *row : smallest(table, limit))
      if (row->memory() <= limit)
        return *row;
    return std::nullopt;
  };
  for (int64_t devices = 2 * given, before = given; devices <= std::min<int64_t>(plan::maxRanks, 64 * given); before = devices, devices *= 2)
    if (std::optional<Row> row = fitting(devices)) {
      const int64_t step = std::max<int64_t>(1, before / 4);
      for (int64_t fewer = before + step; fewer < devices; fewer += step)
        if (std::optional<Row> found = fitting(fewer))
          return std::pair(fewer, *found);
      return std::pair(devices, *row);
    }
  return std::nullopt;
}

static std::string planText(const Row &row) { return row.candidate.flags() + (row.trial ? " (" : " (about ") + byteSizeText(row.memory()) + ")"; }

Status whatWouldFit(CandidateTable &table) {
  const SmallVector<Row *> rows = smallest(table);
  if (rows.empty())
    return Status::error(ErrorKind::Capacity, "--auto --devices=" + std::to_string(table.space.devices) + ": no plan for as many ranks compiles; give fewer devices, or a larger batch");
  const bool isEstimate = !rows.front()->trial;
  const int64_t devices = table.space.devices, least = rows.front()->memory(), enough = least + (isEstimate ? least / 32 : 0); // an estimate may err by a little
  std::string text = "no plan for " + countText(devices, "rank") + " fits " + byteSizeText(table.space.options.memory) + " a rank; the smallest takes " + (isEstimate ? "about " : "") +
                     byteSizeText(least) + ": --memory=" + std::to_string(enough) + " would do; the nearest are";
  for (auto [number, row] : llvm::enumerate(rows))
    text += (number ? "; " : " ") + planText(*row);
  if (std::optional<std::pair<int64_t, Row>> more = moreDevices(table))
    text += "; with this memory, --devices=" + std::to_string(more->first) + " would do: " + planText(more->second);
  else
    text += "; no number of devices up to 64 times as many would do";
  return Status::error(ErrorKind::Capacity, text);
}

} // namespace hpc::search
