// Groups equal ranks and lays numbers out in columns.
#include "tools/hpc-run/CountReport.h"

#include "runtime/plan/PlanFacts.h"

#include <algorithm>

namespace hpc {

namespace {

/// "12,345,678"
std::string number(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t at = int64_t(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(size_t(at), ",");
  return digits;
}

/// "0-3,8", "0-14:2" for every second one; long lists end in their number.
std::string rankList(const std::vector<int64_t> &ranks) {
  constexpr size_t mostPieces = 4;
  std::string text;
  size_t pieces = 0;
  for (size_t i = 0; i < ranks.size(); ++pieces) {
    if (pieces == mostPieces)
      return text + ",... (" + number(int64_t(ranks.size())) + ")";
    size_t end = i + 1;
    const int64_t step = end < ranks.size() ? ranks[end] - ranks[i] : 1;
    while (end + 1 < ranks.size() && ranks[end + 1] - ranks[end] == step)
      ++end;
    // Two ranks apart are no row of ranks.
    if (end >= ranks.size() || (end == i + 1 && step > 1))
      end = i;
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (end > i)
      text += "-" + std::to_string(ranks[end]) + (step > 1 ? ":" + std::to_string(step) : "");
    i = end + 1;
  }
  return text;
}

/// Numbers of ranks in columns. Ranks with equal rows share a line, at the place of the lowest.
class Table {
public:
  using Row = std::vector<std::string>;
  explicit Table(Row header) : header(std::move(header)) {}

  void add(int64_t rank, Row row) {
    auto [found, isNew] = lineOf.emplace(row, lines.size());
    if (isNew)
      lines.push_back({{}, std::move(row)});
    lines[found->second].first.push_back(rank);
  }
  void addSum(Row row) { sums.push_back(std::move(row)); }

  std::string text() const {
    std::vector<Row> rows{header};
    for (const auto &[ranks, row] : lines) {
      rows.push_back(row);
      rows.back().insert(rows.back().begin(), rankList(ranks));
    }
    for (const Row &sum : sums) {
      rows.push_back(sum);
      rows.back().insert(rows.back().begin(), "all");
    }
    std::vector<size_t> widths(header.size(), 0);
    for (const Row &row : rows)
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const Row &row : rows) {
      for (size_t i = 0; i < row.size(); ++i) {
        std::string space(widths[i] - row[i].size(), ' ');
        text += i ? "  " + space + row[i] : row[i] + space;
      }
      text += "\n";
    }
    return text;
  }

private:
  const Row header;
  std::vector<std::pair<std::vector<int64_t>, Row>> lines; ///< ranks, their row
  std::map<Row, size_t> lineOf;
  std::vector<Row> sums;
};

std::string heading(const plan::Plan &plan) {
  std::string axes;
  for (const plan::Axis &axis : plan.axes)
    axes += " x " + axis.name + "=" + std::to_string(axis.size);
  auto plural = [](int64_t count, const std::string &what, const char *ending) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : ending);
  };
  return plan.model + ": " + plural(plan.worldSize(), "rank", "s") + " = " +
         plural(int64_t(plan.stages.size()), "stage", "s") + axes + ", " +
         plural(plan.microBatches, "micro-batch", "es") + "; one step, counted and not run\n";
}

} // namespace

std::string describeCounts(const plan::Plan &plan, const std::vector<null::Counts> &counts) {
  using null::Counts;
  constexpr int64_t Counts::*fields[] = {&Counts::flops, &Counts::gemms,  &Counts::kernels, &Counts::copies,
                                         &Counts::loads, &Counts::stores, &Counts::waits};
  const std::vector<plan::MemoryFacts> memory = plan::staticFacts(plan).memory;
  Table work({"ranks", "flops", "gemms", "kernels", "copies", "loads", "stores", "waits"});
  Table held({"ranks", "weights", "states", "step", "micro-batches", "program", "bytes in all", "on the host"});
  Table moved({"ranks", "what", "over", "times", "payload bytes"});
  Counts all;
  for (int64_t rank = 0; rank < int64_t(counts.size()); ++rank) {
    const Counts &one = counts[size_t(rank)];
    Table::Row numbers;
    for (int64_t Counts::*field : fields) {
      numbers.push_back(number(one.*field));
      all.*field += one.*field;
    }
    work.add(rank, std::move(numbers));
    const plan::MemoryFacts &bytes = memory[size_t(rank / plan.ranksPerStage())];
    held.add(rank, {number(bytes.weight), number(bytes.state), number(bytes.step), number(bytes.slot),
                    number(bytes.temp), number(bytes.total()), number(bytes.host)});
    for (const auto &[kind, traffic] : one.traffic) {
      moved.add(rank, {kind.first, kind.second, number(traffic.calls), number(traffic.bytes)});
      all.traffic[kind].calls += traffic.calls;
      all.traffic[kind].bytes += traffic.bytes;
    }
  }
  Table::Row sums;
  for (int64_t Counts::*field : fields)
    sums.push_back(number(all.*field));
  work.addSum(std::move(sums));
  for (const auto &[kind, traffic] : all.traffic)
    moved.addSum({kind.first, kind.second, number(traffic.calls), number(traffic.bytes)});
  return heading(plan) + "\n" + work.text() + "\n" + held.text() + (all.traffic.empty() ? "" : "\n" + moved.text());
}

} // namespace hpc
