// Outputs: the boxes that owners store tile each output exactly. Exact and fast by corners: the number of boxes that
// cover an index is the prefix sum of +1 and -1 at their 2^d corners, so the boxes tile the array if and only if the
// corners of all boxes add up to the corners of the array itself; the first corner left over is an index that is
// covered wrongly.
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <map>

namespace hpc::plan {

namespace {

using Index = std::vector<int64_t>;

/// One run of a StoreOutput.
struct Store {
  int64_t stage, program, instruction, coordinate, microBatch;
  const StoreOutput *what;
};

/// Start and end per view dim; false when it is empty.
bool boxOf(const Slice &slice, int64_t coordinate, int64_t microBatch, int64_t ranks, Index &begin, Index &end) {
  begin.clear();
  end.clear();
  for (size_t d = 0; d < slice.view.size(); ++d) {
    int64_t start = slice.start[d].at(coordinate, microBatch, ranks);
    int64_t extent = slice.extent[d].at(coordinate, microBatch, ranks);
    if (extent == 0)
      return false;
    begin.push_back(start);
    end.push_back(start + extent);
  }
  return true;
}

class Corners {
public:
  void add(const Index &begin, const Index &end, int64_t sign) {
    size_t dims = begin.size();
    Index corner(dims);
    for (size_t mask = 0; mask < size_t(1) << dims; ++mask) {
      int64_t value = sign;
      for (size_t d = 0; d < dims; ++d) {
        bool high = mask >> d & 1;
        corner[d] = high ? end[d] : begin[d];
        value = high ? -value : value;
      }
      auto found = sums.emplace(corner, 0).first;
      if ((found->second += value) == 0)
        sums.erase(found);
    }
  }
  /// The first index that is covered too often (> 0) or too rarely (< 0), or null.
  const std::pair<const Index, int64_t> *first() const { return sums.empty() ? nullptr : &*sums.begin(); }

private:
  std::map<Index, int64_t> sums;
};

std::string owners(const Plan &plan, const std::vector<Store> &stores, const Index &index) {
  std::string text;
  int64_t count = 0;
  Index begin, end;
  for (const Store &store : stores) {
    bool holds = boxOf(store.what->slice, store.coordinate, store.microBatch, plan.ranksPerStage(), begin, end);
    for (size_t d = 0; holds && d < index.size(); ++d)
      holds = index[d] >= begin[d] && index[d] < end[d];
    if (!holds || ++count > 3)
      continue;
    text += (count > 1 ? " and by " : "") + instructionText(plan, store.stage, store.program, store.instruction) +
            " at " + coordinateText(plan, store.coordinate) + ", micro-batch " + std::to_string(store.microBatch);
  }
  return std::to_string(count) + " times: by " + text;
}

/// The view's dims that any store cuts; the others need no corners.
std::vector<size_t> cutDims(const std::vector<Store> &stores) {
  std::vector<size_t> dims;
  const std::vector<int64_t> &view = stores[0].what->slice.view;
  for (size_t d = 0; d < view.size(); ++d)
    for (const Store &store : stores) {
      const ByCoord &extent = store.what->slice.extent[d];
      if (std::all_of(extent.values.begin(), extent.values.end(), [&](int64_t value) { return value == view[d]; }))
        continue;
      dims.push_back(d);
      break;
    }
  return dims;
}

Status checkOutput(const Plan &plan, const Port &port, const std::vector<Store> &stores) {
  if (std::any_of(port.shape.begin(), port.shape.end(), [](int64_t size) { return size == 0; }))
    return Status::success();
  if (stores.empty())
    return fault("no owner stores any of it");
  const std::vector<int64_t> &view = stores[0].what->slice.view;
  for (const Store &store : stores)
    if (store.what->slice.view != view)
      return fault(instructionText(plan, store.stage, store.program, store.instruction) + " stores it by view " +
                   shapeText(store.what->slice.view) + ", another by " + shapeText(view) + "; use one view");

  std::vector<size_t> dims = cutDims(stores);
  if (dims.size() > 10)
    return fault("it is cut in " + std::to_string(dims.size()) + " view dims; at most 10");
  auto project = [&](const Index &index) {
    Index result;
    for (size_t d : dims)
      result.push_back(index[d]);
    return result;
  };
  Corners corners;
  Index begin, end;
  for (const Store &store : stores)
    if (boxOf(store.what->slice, store.coordinate, store.microBatch, plan.ranksPerStage(), begin, end))
      corners.add(project(begin), project(end), 1);
  corners.add(Index(dims.size(), 0), project(view), -1);
  const auto *wrong = corners.first();
  if (!wrong)
    return Status::success();
  Index index(view.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i)
    index[dims[i]] = wrong->first[i];
  std::string where = "index " + shapeText(index) + " of view " + shapeText(view) + " is stored ";
  return fault(wrong->second < 0 ? where + "by no rank; every element needs one owner"
                                 : where + owners(plan, stores, index) + "; every element needs one owner");
}

} // namespace

Status checkOutputs(const Plan &plan) {
  int64_t ranks = plan.ranksPerStage();
  std::vector<std::vector<Store>> stores(plan.outputs.size());
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (const ScheduleStep &step : plan.stages[s].schedule) {
      const std::vector<Instruction> &instructions = plan.stages[s].programs[step.program].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        const auto *store = std::get_if<StoreOutput>(&instructions[i].action);
        for (int64_t coordinate = 0; store && coordinate < ranks; ++coordinate)
          if (store->owner.at(coordinate, step.microBatch, ranks) &&
              instructions[i].when.at(coordinate, step.microBatch, ranks))
            stores[store->output].push_back({int64_t(s), step.program, int64_t(i), coordinate, step.microBatch, store});
      }
    }
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    HPC_RETURN_IF_ERROR(checkOutput(plan, plan.outputs[i], stores[i]).at("output '" + plan.outputs[i].name + "'"));
  return Status::success();
}

} // namespace hpc::plan
