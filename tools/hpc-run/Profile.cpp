// Instructions that differ in their place in the model alone share a row: products of one size, calls of one kernel.
#include "tools/hpc-run/Profile.h"

#include "runtime/core/Slice.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/TextTable.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

namespace hpc {

namespace {

struct Row {
  std::string group; ///< products, kernels, ...
  int64_t calls = 0;
  double seconds = 0, floor = 0;
  double flops = 0, bytes = 0;

  Row &operator+=(const Row &other) {
    calls += other.calls;
    seconds += other.seconds;
    floor += other.floor;
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// The subject of a row, and its group.
struct Kind {
  std::string name, group;
};

std::string sizeText(const plan::Gemm &gemm, Place place) {
  std::string text;
  for (int64_t batch : gemm.batch)
    text += std::to_string(batch) + " x ";
  text += std::to_string(place(gemm.m)) + "x" + std::to_string(place(gemm.n)) + "x" + std::to_string(place(gemm.k));
  return text + (gemm.a.transpose ? " A^T" : "") + (gemm.b.transpose ? " B^T" : "") + (place(gemm.addToC) ? " adds" : "");
}

double flopsOf(const plan::Gemm &gemm, Place place) {
  double flops = 2.0 * double(place(gemm.m)) * double(place(gemm.n)) * double(place(gemm.k));
  for (int64_t batch : gemm.batch)
    flops *= double(batch);
  return flops;
}

Kind kindOf(const plan::Action &action, Place place) {
  const std::string name = plan::actionName(action);
  if (const auto *gemm = std::get_if<plan::Gemm>(&action))
    return {name + " " + sizeText(*gemm, place), "products"};
  if (const auto *kernel = std::get_if<plan::Kernel>(&action))
    return {kernel->symbol, "kernels"};
  if (std::holds_alternative<plan::Collective>(action))
    return {name, "collectives"};
  const bool stays = std::holds_alternative<plan::Copy>(action) || std::holds_alternative<plan::Accumulate>(action) ||
                     std::holds_alternative<plan::LoadInput>(action) ||
                     std::holds_alternative<plan::StoreOutput>(action);
  return {name, stays ? "copies" : "messages and waiting"};
}

std::string decimal(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::vector<std::string> cells(const std::string &name, const Row &row, double all, double ranks) {
  const double seconds = std::max(row.seconds, 1e-9);
  return {name,
          std::to_string(row.calls),
          decimal(1e3 * row.seconds / ranks, 2),
          decimal(100 * row.seconds / all, 1),
          row.flops > 0 ? decimal(row.flops / seconds / 1e9, 1) : "-",
          row.bytes > 0 ? decimal(row.bytes / seconds / 1e9, 1) : "-",
          decimal(1e3 * row.floor / ranks, 2),
          row.floor > 0 ? decimal(100 * row.floor / seconds, 0) : "-"};
}

constexpr size_t mostRows = 40; ///< of a table; faster instructions share a line

} // namespace

std::string describeProfile(const plan::Plan &plan, const Trace &trace, const host::MachineSpeed &speed) {
  std::map<std::string, Row> rows, groups;
  Row all;
  std::set<DType> products; ///< whose operands are of these types
  double ranks = 0;
  for (int64_t rank = 0; rank < plan.worldSize(); ++rank) {
    const plan::Stage &stage = plan.stages[size_t(rank / plan.ranksPerStage())];
    ranks += !trace.of(rank).empty();
    for (const Trace::Event &event : trace.of(rank)) {
      const plan::ScheduleStep &step = stage.schedule[size_t(event.step)];
      const plan::Program &program = stage.programs[size_t(step.program)];
      const plan::Instruction &instruction = program.instructions[size_t(event.instruction)];
      const Place place{rank % plan.ranksPerStage(), step.microBatch, plan.ranksPerStage()};
      const Kind kind = kindOf(instruction.action, place);
      DType type = DType::F32; // of the multiplied matrices
      Row one{kind.group, 1, std::chrono::duration<double>(event.end - event.start).count()};
      if (const auto *gemm = std::get_if<plan::Gemm>(&instruction.action)) {
        one.flops = flopsOf(*gemm, place);
        products.insert(type = gemm->a.dtype);
      } else if (const auto *kernel = std::get_if<plan::Kernel>(&instruction.action))
        one.flops = double(kernel->flops);
      if (kind.group != "messages and waiting")
        one.bytes = double(bytesOf(instruction, plan));
      one.floor = std::max(one.flops / speed.flopsPerSecond(type), one.bytes / speed.bytesPerSecond);
      rows[kind.name].group = kind.group;
      rows[kind.name] += one;
      groups[kind.group] += one;
      all += one;
    }
  }
  if (ranks == 0)
    return "";
  using plan::TextTable;
  const std::vector<std::string> titles = {"what",  "calls", "ms a rank", "% of time", "GFLOP/s", "GB/s", "floor, ms",
                                           "floor, % of its time"};
  auto addSorted = [&](TextTable &table, const std::map<std::string, Row> &from) {
    std::vector<std::pair<std::string, Row>> sorted(from.begin(), from.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
      return std::tie(b.second.seconds, a.first) < std::tie(a.second.seconds, b.first);
    });
    Row rest;
    for (size_t i = 0; i < sorted.size(); ++i)
      if (i < mostRows)
        table.add(cells(sorted[i].first, sorted[i].second, all.seconds, ranks));
      else
        rest += sorted[i].second;
    if (rest.calls > 0)
      table.add(cells("the rest", rest, all.seconds, ranks));
  };
  TextTable overview(titles), details(titles);
  addSorted(overview, groups);
  overview.add(cells("all", all, all.seconds, ranks));
  addSorted(details, rows);
  auto isAbove = [](const auto &row) { return row.second.floor > row.second.seconds; };
  const bool anyAbove = std::any_of(rows.begin(), rows.end(), isAbove);
  std::string narrow;
  for (DType type : {DType::BF16, DType::F16})
    if (products.count(type))
      narrow += ", " + decimal(speed.flopsPerSecond(type) / 1e9, 0) + " in those of " + name(type);
  return "Profile of the last run. At best a rank of this machine does " + decimal(speed.f32 / 1e9, 0) +
         " GFLOP/s in f32 products" + narrow + (narrow.empty() ? "" : ",") + " and moves " + decimal(speed.bytesPerSecond / 1e9, 1) +
         " GB/s (measured just before the run, all ranks at once).\n\n" + overview.text() + "\n" + details.text() +
         (anyAbove ? "\nA floor counts every byte of what an instruction reads or writes, and from memory. Above 100%: it was in a "
                     "cache, or of a table only some rows were read.\n"
                   : "");
}

} // namespace hpc
