// Extents of slices say who holds how much, and who holds nothing computes nothing but padding.
#include "passes/Driver/Imbalance.h"

#include "compiler/Dialect/Dist/MeshDegrees.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace hpc {

using plan::Plan;
using plan::Slice;

namespace {
/// Elements of what is cut along one axis, by coordinate; none: nothing is.
using Held = std::vector<double>;

struct Counter {
  const Plan &plan;
  std::vector<Held> byAxis = std::vector<Held>(plan.axes.size());

  /// The part of the slice that a rank of the stage holds: a start and an extent a dim.
  std::vector<int64_t> boxOf(const Slice &slice, int64_t rank) const {
    std::vector<int64_t> box;
    for (size_t dim = 0; dim < slice.view.size(); ++dim)
      for (const auto *table : {&slice.start[dim], &slice.extent[dim]})
        box.push_back(table->at(rank, 0, plan.ranksPerStage()));
    return box;
  }

  void add(const Slice &slice) {
    auto isEverywhere = [](const plan::ByCoord &table) { return table.values.size() == 1; };
    if (std::all_of(slice.start.begin(), slice.start.end(), isEverywhere) &&
        std::all_of(slice.extent.begin(), slice.extent.end(), isEverywhere))
      return;
    int64_t stride = 1;
    for (size_t axis = plan.axes.size(); axis-- > 0; stride *= plan.axes[axis].size) {
      const int64_t parts = plan.axes[axis].size;
      bool isCut = false;
      std::vector<double> held(size_t(parts), 0.0);
      for (int64_t rank = 0; rank < plan.ranksPerStage(); ++rank) {
        const int64_t part = rank / stride % parts;
        const std::vector<int64_t> box = boxOf(slice, rank);
        isCut |= box != boxOf(slice, rank - part * stride);
        double elements = 1;
        for (size_t i = 1; i < box.size(); i += 2)
          elements *= double(box[i]);
        held[size_t(part)] += elements;
      }
      Held &all = byAxis[axis];
      all.resize(isCut ? size_t(parts) : all.size());
      for (size_t part = 0; part < all.size() && isCut; ++part)
        all[part] += held[part];
    }
  }
};
} // namespace

/// "--tp" for tp; an axis without a flag, of a layout, by its name.
static std::string flagOf(const std::string &axis) {
  for (const dist::AxisKind &kind : dist::axisKinds())
    if (kind.name == axis)
      return "--" + std::string(kind.flag);
  return axis;
}

static std::string textOf(const std::string &axis, const Held &held) {
  const double most = held.empty() ? 0 : *std::max_element(held.begin(), held.end());
  const double average = std::accumulate(held.begin(), held.end(), 0.0) / double(std::max<size_t>(held.size(), 1));
  const auto idle = std::count(held.begin(), held.end(), 0.0);
  const std::string flag = flagOf(axis) + "=", parts = std::to_string(held.size());
  if (idle > 0)
    return std::to_string(idle) + " of the " + parts + " parts of " + flag + parts + (idle == 1 ? " has" : " have") +
           " nothing to compute, as what " + axis + " cuts has fewer elements than parts; " + flag + std::to_string(int64_t(held.size()) - idle) +
           " takes no longer";
  if (most <= 2 * average)
    return "";
  char times[32];
  std::snprintf(times, sizeof(times), "%.1f", most / average);
  return "of the " + parts + " parts of " + flag + parts + " the fullest holds " + times + " times the average, as what " + axis +
         " cuts has few elements a part; a smaller " + flag + "N takes no longer";
}

std::vector<std::string> imbalances(const Plan &plan) {
  // A rank that has rows of an input computes these alone, whatever it stores of weights.
  Counter stored{plan}, inputs{plan};
  for (const plan::Stage &stage : plan.stages) {
    for (const plan::Binding &binding : stage.bindings)
      stored.add(binding.slice);
    for (const plan::Program &program : stage.programs)
      for (const plan::Instruction &instruction : program.instructions)
        if (const auto *input = std::get_if<plan::LoadInput>(&instruction.action))
          inputs.add(input->slice);
  }
  std::vector<std::string> texts;
  for (size_t axis = 0; axis < plan.axes.size(); ++axis)
    if (std::string text = textOf(plan.axes[axis].name, (inputs.byAxis[axis].empty() ? stored : inputs).byAxis[axis]); !text.empty())
      texts.push_back(text);
  return texts;
}

} // namespace hpc
