// Numbers of ranks in tables; ranks with equal numbers share a row.
#include "tools/hpc-run/CountReport.h"

#include "runtime/base/CountText.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/TextTable.h"

namespace hpc {

namespace {

/// "12,345,678"
std::string decimal(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t at = int64_t(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(size_t(at), ",");
  return digits;
}

/// The way of data: along axes, or from stage to stage.
std::string overText(const std::string &axes) { return axes.empty() ? "stages" : axes; }

} // namespace

std::string planHeading(const plan::Plan &plan) {
  std::string axes;
  for (const plan::Axis &axis : plan.axes)
    axes += " x " + axis.name + "=" + std::to_string(axis.size);
  return plan.model + ": " + countText(plan.worldSize(), "rank") + " = " +
         countText(int64_t(plan.stages.size()), "stage") + axes + ", " +
         countText(plan.microBatches, "micro-batch", "es");
}

std::string describeCounts(const plan::Plan &plan, const std::vector<null::Counts> &counts) {
  using null::Counts;
  using plan::TextTable;
  constexpr int64_t Counts::*fields[] = {&Counts::flops, &Counts::gemms,  &Counts::kernels, &Counts::copies,
                                         &Counts::loads, &Counts::stores, &Counts::waits};
  const std::vector<plan::MemoryFacts> memory = plan::staticFacts(plan).memory;
  TextTable work({"ranks", "flops", "gemms", "kernels", "copies", "loads", "stores", "waits"});
  TextTable held({"ranks", "weights", "states", "step", "slots", "temporaries", "total", "on host"});
  TextTable moved({"ranks", "what", "over", "times", "payload bytes"});
  Counts all;
  for (int64_t rank = 0; rank < int64_t(counts.size()); ++rank) {
    const Counts &one = counts[size_t(rank)];
    std::vector<std::string> numbers;
    for (int64_t Counts::*field : fields) {
      numbers.push_back(decimal(one.*field));
      all.*field += one.*field;
    }
    work.addFor(rank, std::move(numbers));
    const plan::MemoryFacts &bytes = memory[size_t(rank / plan.ranksPerStage())];
    held.addFor(rank, {decimal(bytes.weight), decimal(bytes.state), decimal(bytes.step), decimal(bytes.slot),
                    decimal(bytes.temp), decimal(bytes.total()), decimal(bytes.host)});
    for (const auto &[kind, traffic] : one.traffic) {
      moved.addFor(rank, {kind.first, overText(kind.second), decimal(traffic.calls), decimal(traffic.bytes)});
      all.traffic[kind].calls += traffic.calls;
      all.traffic[kind].bytes += traffic.bytes;
    }
  }
  std::vector<std::string> sums = {"all"};
  for (int64_t Counts::*field : fields)
    sums.push_back(decimal(all.*field));
  work.add(std::move(sums));
  for (const auto &[kind, traffic] : all.traffic)
    moved.add({"all", kind.first, overText(kind.second), decimal(traffic.calls), decimal(traffic.bytes)});
  return planHeading(plan) + "; one step, counted and not run\n\n" + work.text() + "\n" + held.text() + (all.traffic.empty() ? "" : "\n" + moved.text());
}

} // namespace hpc
