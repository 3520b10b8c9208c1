// Weights and states: together the coordinates of a stage hold all of each stored or saved value. Per view dim the
// non-empty ranges are pairwise equal or disjoint and leave no index out, and every combination of ranges occurs: a
// product of partitions, replicated or not.
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <map>
#include <set>

namespace hpc::plan {

namespace {

using Range = std::pair<int64_t, int64_t>; ///< start, extent

Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

std::string rangeText(const Range &range) {
  return std::to_string(range.first) + ".." + std::to_string(range.first + range.second - 1);
}

/// What some bindings of one tensor, seen through one view, hold in all coordinates.
struct Holdings {
  const std::vector<int64_t> &view;
  std::vector<std::map<Range, int64_t>> parts; ///< per view dim: range -> a coordinate that holds it
  std::set<std::vector<Range>> boxes;

  explicit Holdings(const std::vector<int64_t> &view) : view(view), parts(view.size()) {}

  void add(const Plan &plan, const Slice &slice) {
    int64_t ranks = plan.ranksPerStage();
    for (int64_t coordinate = 0; coordinate < ranks; ++coordinate) {
      std::vector<Range> box;
      for (size_t d = 0; d < view.size(); ++d)
        box.emplace_back(slice.start[d].at(coordinate, 0, ranks), slice.extent[d].at(coordinate, 0, ranks));
      if (std::any_of(box.begin(), box.end(), [](const Range &range) { return range.second == 0; }))
        continue;
      for (size_t d = 0; d < view.size(); ++d)
        parts[d].emplace(box[d], coordinate);
      boxes.insert(std::move(box));
    }
  }

  Status checkDim(const Plan &plan, size_t d) const {
    std::string where = "view dim " + std::to_string(d) + ": ";
    int64_t next = 0;
    const std::pair<const Range, int64_t> *last = nullptr;
    for (const auto &part : parts[d]) {
      if (part.first.first < next)
        return fault(where + coordinateText(plan, last->second) + " holds " + rangeText(last->first) + " and " +
                     coordinateText(plan, part.second) + " holds " + rangeText(part.first) +
                     "; ranges must be equal or apart");
      if (part.first.first > next)
        break;
      next = part.first.first + part.first.second;
      last = &part;
    }
    if (next < view[d])
      return fault(where + "no coordinate holds index " + std::to_string(next) + " of " + std::to_string(view[d]));
    return Status::success();
  }

  Status check(const Plan &plan) const {
    if (std::any_of(view.begin(), view.end(), [](int64_t size) { return size == 0; }))
      return Status::success();
    int64_t combinations = 1;
    for (size_t d = 0; d < view.size(); ++d) {
      HPC_RETURN_IF_ERROR(checkDim(plan, d));
      combinations *= int64_t(parts[d].size()); // at most (ranks * bindings) each, and boxes.size() bounds what matters
      if (combinations > int64_t(boxes.size()))
        break;
    }
    if (combinations == int64_t(boxes.size()))
      return Status::success();
    return fault("the view dims are cut into a grid of which only " + std::to_string(boxes.size()) +
                 " boxes are held by a coordinate");
  }
};

/// `bindings` of one value, which errors call `what`.
Status checkValue(const Plan &plan, const Stage &stage, const std::string &what, const std::vector<size_t> &bindings) {
  std::map<std::vector<int64_t>, std::vector<size_t>> partial; // by view
  Status first;
  for (size_t binding : bindings) {
    const Slice &slice = stage.bindings[binding].slice;
    Holdings alone(slice.view);
    alone.add(plan, slice);
    Status status = alone.check(plan);
    if (status.ok())
      continue;
    partial[slice.view].push_back(binding);
    if (first.ok())
      first = status.at(bufferText(stage, stage.bindings[binding].buffer));
  }
  // Several bindings may hold a part each, as the q, k and v of one fused weight.
  for (const auto &[view, parts] : partial) {
    Holdings together(view);
    for (size_t binding : parts)
      together.add(plan, stage.bindings[binding].slice);
    if (parts.size() < 2 || !together.check(plan).ok())
      return first.at(what);
  }
  return Status::success();
}

} // namespace

Status checkWeights(const Plan &plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage &stage = plan.stages[s];
    std::string where = "stage " + std::to_string(s);
    std::map<int32_t, std::vector<size_t>> byWeight;
    for (size_t i = 0; i < stage.bindings.size(); ++i) {
      const Binding &binding = stage.bindings[i];
      if (const auto *stored = std::get_if<StoredWeight>(&binding.start))
        byWeight[stored->weight].push_back(i);
      else if (!binding.saved.empty())
        HPC_RETURN_IF_ERROR(
            checkValue(plan, stage, "state '" + binding.saved + "' " + shapeText(binding.shape), {i}).at(where));
    }
    for (const auto &[index, bindings] : byWeight) {
      const Weight &weight = plan.weights[index];
      HPC_RETURN_IF_ERROR(
          checkValue(plan, stage, "weight '" + weight.name + "' " + shapeText(weight.shape), bindings).at(where));
    }
  }
  return Status::success();
}

} // namespace hpc::plan
