// Slices and tables: lengths, ranges, boxes. A slice that passes can be copied without looking at any bound
// again.
#include "runtime/base/CountText.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanStructure.h"

#include <algorithm>

namespace hpc::plan {

Status checkTable(const Plan &plan, const ByCoord &table, const char *what, int64_t least, int64_t most) {
  if (table.varies())
    return fault(std::string("table '") + what + "' varies by step; only scalars of kernels and offsets of copies do");
  return checkVaryingTable(plan, table, what, least, most);
}

/// What the step scalar adds, at the least and at the most; an error where it is none or where that leaves 64 bits.
static Status checkScalar(const Plan &plan, const ByCoord &table, const char *what, int64_t &low, int64_t &high) {
  const std::string where = std::string("table '") + what + "' varies by input " + std::to_string(table.input);
  if (table.input < 0 || size_t(table.input) >= plan.inputs.size())
    return fault(where + "; the plan has " + countText(int64_t(plan.inputs.size()), "input"));
  const Port &port = plan.inputs[size_t(table.input)];
  if (!port.largest)
    return fault(where + ", '" + port.name + "', which is no step scalar with a range");
  int64_t end = 0;
  if (__builtin_mul_overflow(table.scale, *port.largest, &end))
    return fault(where + ", '" + port.name + "', by " + std::to_string(table.scale) + " a unit, which leaves 64 bits");
  low = std::min<int64_t>(0, end);
  high = std::max<int64_t>(0, end);
  return Status::success();
}

Status checkVaryingTable(const Plan &plan, const ByCoord &table, const char *what, int64_t least, int64_t most) {
  size_t ranks = plan.ranksPerStage(), all = ranks * size_t(plan.microBatches), size = table.values.size();
  if (size != 1 && size != ranks && size != all)
    return fault(std::string("table '") + what + "' has " + countText(size, "value") + "; it needs 1, " +
                 std::to_string(ranks) + " (ranks of a stage) or " + std::to_string(all) + " (times micro-batches)");
  int64_t low = 0, high = 0;
  if (table.varies())
    HPC_RETURN_IF_ERROR(checkScalar(plan, table, what, low, high));
  for (size_t i = 0; i < size; ++i)
    for (int64_t end : {low, high}) {
      int64_t value = 0;
      if (!__builtin_add_overflow(table.values[i], end, &value) && value >= least && value <= most)
        continue;
      return fault(std::string("table '") + what + "' has " + std::to_string(table.values[i]) +
                   (end == 0 ? "" : (end > 0 ? " + " : " - ") + std::to_string(end > 0 ? end : -end) + " by step") + " at " +
                   coordinateText(plan, i % ranks) + "; it must be in " + std::to_string(least) + ".." +
                   std::to_string(most));
    }
  return Status::success();
}

Status checkSlice(const Plan &plan, const Slice &slice, int64_t elements, bool byMicroBatch) {
  size_t dims = slice.view.size();
  if (dims > size_t(maxDims))
    return fault("slice: " + std::to_string(dims) + " view dims; at most " + std::to_string(maxDims));
  if (slice.start.size() != dims || slice.extent.size() != dims || slice.box.size() != dims)
    return fault("slice: view has " + countText(dims, "dim") + ", but there are " + std::to_string(slice.start.size()) +
                 " starts, " + std::to_string(slice.extent.size()) + " extents and " +
                 std::to_string(slice.box.size()) + " box sizes");
  for (size_t d = 0; d < dims; ++d)
    if (slice.view[d] < 0 || slice.view[d] > maxBytes || slice.box[d] < 0 || slice.box[d] > maxBytes)
      return fault("slice: view " + shapeText(slice.view) + " and box " + shapeText(slice.box) + " need sizes in 0.." +
                   std::to_string(maxBytes));
  if (productOf(slice.view) != elements)
    return fault("slice: view " + shapeText(slice.view) + " has not the " + countText(elements, "element") +
                 " of its tensor");

  int64_t ranks = plan.ranksPerStage();
  for (size_t d = 0; d < dims; ++d) {
    const ByCoord &start = slice.start[d], &extent = slice.extent[d];
    HPC_RETURN_IF_ERROR(checkTable(plan, start, "start", 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkTable(plan, extent, "extent", 0, maxBytes));
    if (!byMicroBatch && (start.values.size() > size_t(ranks) || extent.values.size() > size_t(ranks)))
      return fault("slice: view dim " + std::to_string(d) +
                   " depends on the micro-batch, which what lives for a session cannot");
    Status status;
    forEachEntry(plan, {&start, &extent}, [&](int64_t coordinate, int64_t microBatch) {
      int64_t first = start.at(coordinate, microBatch, ranks), width = extent.at(coordinate, microBatch, ranks);
      if (width <= slice.box[d] && (width == 0 || first + width <= slice.view[d])) // an empty range may start anywhere
        return true;
      std::string where = "slice: view dim " + std::to_string(d) + " at " + coordinateText(plan, coordinate);
      if (width > slice.box[d])
        status =
            fault(where + " has " + std::to_string(width) + " indices, its box only " + std::to_string(slice.box[d]));
      else
        status = fault(where + " holds " + std::to_string(first) + ".." + std::to_string(first + width - 1) + " of " +
                       std::to_string(slice.view[d]) + " indices");
      return false;
    });
    HPC_RETURN_IF_ERROR(status);
  }
  return Status::success();
}

} // namespace hpc::plan
