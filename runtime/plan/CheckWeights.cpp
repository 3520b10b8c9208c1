// Weights and states: together the coordinates of a stage hold all of each stored or saved value. Per view dim the
// non-empty ranges are pairwise equal or disjoint and leave no index out, and every combination of ranges occurs: a
// product of partitions, replicated or not. Where no binding holds all of it, the parts of all are such boxes.
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace hpc::plan {

namespace {

using Range = std::pair<int64_t, int64_t>; ///< start, extent

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

// ---- parts of unequal sizes -------------------------------------------------------------------------

using Box = std::vector<Range>;

/// The view of the same elements that parts the dims of both; empty where they do not nest.
std::vector<int64_t> commonView(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  std::set<int64_t, std::greater<>> inner; // elements of one step of a dim
  for (const auto *view : {&a, &b}) {
    int64_t elements = 1;
    for (size_t d = view->size(); d-- > 0; elements *= (*view)[d])
      inner.insert(elements);
  }
  std::vector<int64_t> common;
  int64_t outer = productOf(a);
  for (int64_t elements : inner) {
    if (outer % elements != 0)
      return {};
    common.push_back(outer / elements);
    outer = elements;
  }
  return common;
}

/// A range of a dim as a box of the digits into which a finer view parts it; false where it is none.
bool splitRange(Range range, const int64_t *digits, size_t count, Box &box) {
  size_t first = box.size();
  box.resize(first + count);
  for (size_t i = count; i-- > 0;) {
    auto &[start, extent] = range;
    if (start % digits[i] == 0 && extent % digits[i] == 0) {
      box[first + i] = {0, digits[i]};
      range = {start / digits[i], extent / digits[i]};
    } else if (start % digits[i] + extent <= digits[i]) {
      box[first + i] = {start % digits[i], extent};
      range = {start / digits[i], 1};
    } else {
      return false;
    }
  }
  return range.first == 0 && range.second == 1;
}

/// The part that a coordinate holds by a slice, in a view that is finer than the slice's own.
bool boxIn(const std::vector<int64_t> &finer, const Plan &plan, const Slice &slice, int64_t coordinate, Box &box) {
  int64_t ranks = plan.ranksPerStage();
  size_t next = 0;
  for (size_t d = 0; d < slice.view.size(); ++d) {
    size_t first = next;
    for (int64_t product = 1; product != slice.view[d]; ++next)
      product *= finer[next];
    Range range(slice.start[d].at(coordinate, 0, ranks), slice.extent[d].at(coordinate, 0, ranks));
    if (!splitRange(range, finer.data() + first, next - first, box))
      return false;
  }
  return true;
}

/// Whether what several bindings hold is equal or apart, box by box, and together all there is.
bool partsAreAll(const Plan &plan, const Stage &stage, const std::vector<size_t> &bindings) {
  std::vector<int64_t> view = stage.bindings[bindings[0]].slice.view;
  for (size_t binding : bindings)
    if (!view.empty())
      view = commonView(view, stage.bindings[binding].slice.view);
  if (view.empty())
    return false;
  std::set<Box> boxes;
  for (size_t binding : bindings)
    for (int64_t coordinate = 0; coordinate < plan.ranksPerStage(); ++coordinate) {
      Box box;
      const Slice &slice = stage.bindings[binding].slice;
      int64_t ranks = plan.ranksPerStage();
      if (std::any_of(slice.extent.begin(), slice.extent.end(),
                      [&](const ByCoord &extent) { return extent.at(coordinate, 0, ranks) == 0; }))
        continue;
      if (!boxIn(view, plan, slice, coordinate, box))
        return false;
      boxes.insert(std::move(box));
    }
  auto meet = [](const Range &a, const Range &b) {
    return a.first < b.first + b.second && b.first < a.first + a.second;
  };
  int64_t elements = 0;
  for (auto box = boxes.begin(); box != boxes.end(); ++box) {
    int64_t size = 1;
    for (const Range &range : *box)
      size *= range.second;
    elements += size;
    for (auto other = std::next(box); other != boxes.end(); ++other)
      if (std::equal(box->begin(), box->end(), other->begin(), meet))
        return false;
  }
  return elements == productOf(view);
}

/// `bindings` of one value, which errors call `what`.
Status checkValue(const Plan &plan, const Stage &stage, const std::string &what, const std::vector<size_t> &bindings) {
  std::vector<size_t> partial;
  Status first;
  for (size_t binding : bindings) {
    const Slice &slice = stage.bindings[binding].slice;
    Holdings alone(slice.view);
    alone.add(plan, slice);
    Status status = alone.check(plan);
    if (status.ok())
      continue;
    partial.push_back(binding);
    if (first.ok())
      first = status.at(bufferText(stage, stage.bindings[binding].buffer));
  }
  // Several bindings may hold a part each, as the q, k and v of one fused weight.
  if (partial.empty())
    return Status::success();
  return partial.size() > 1 && partsAreAll(plan, stage, partial) ? Status::success() : first.at(what);
}

} // namespace

Status checkWeights(const Plan &plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage &stage = plan.stages[s];
    std::string where = "stage " + std::to_string(s);
    std::map<std::pair<int32_t, bool>, std::vector<size_t>> byWeight; // and whether it is the scales
    for (size_t i = 0; i < stage.bindings.size(); ++i) {
      const Binding &binding = stage.bindings[i];
      const auto *int8 = std::get_if<Int8Weight>(&binding.start);
      if (std::optional<int32_t> stored = storedTensorOf(binding))
        byWeight[{*stored, int8 && int8->form == Int8Form::Scales}].push_back(i);
      else if (!binding.saved.empty())
        HPC_RETURN_IF_ERROR(
            checkValue(plan, stage, "state '" + binding.saved + "' " + shapeText(binding.shape), {i}).at(where));
    }
    for (const auto &[key, bindings] : byWeight) {
      const Weight &weight = plan.weights[key.first];
      HPC_RETURN_IF_ERROR(checkValue(plan, stage,
                                     (key.second ? "scales of weight '" : "weight '") + weight.name + "' " +
                                         shapeText(weight.shape),
                                     bindings)
                              .at(where));
    }
  }
  return Status::success();
}

} // namespace hpc::plan
