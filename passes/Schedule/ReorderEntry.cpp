// A row is one piece of memory, so copies at offsets that vary by step do it: on every device, and without code.
#include "passes/Schedule/ReorderEntry.h"

#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/Groups.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <map>

namespace hpc {

using namespace plan;

namespace {

/// Rows begin .. begin+count-1 of a micro-batch.
struct Rows {
  int64_t begin = 0, count = 0;
};

class Reordering {
public:
  Reordering(const Plan &step, Plan &plan) : plan(plan), ranks(step.ranksPerStage()), microBatches(step.microBatches), rowDim(microBatches > 1) {}

  Status addStage(const Stage &own) {
    Stage &stage = plan.stages.emplace_back();
    stage.programs.push_back({ProgramKind::Forward, 0, {}});
    stage.schedule = {{0, 0}};
    for (Binding binding : own.bindings) {
      if (binding.saved.empty())
        continue;
      const Buffer &state = own.buffers[size_t(binding.buffer)];
      HPC_RETURN_IF_ERROR(checkRows(binding));
      binding.buffer = int32_t(stage.buffers.size());
      stage.buffers.push_back(state);
      stage.bindings.push_back(binding);
      if (binding.shape[0] > 1) // one row has no other place
        reorder(stage, binding);
    }
    return Status::success();
  }

private:
  Plan &plan;
  const int64_t ranks; ///< of a stage
  const int64_t microBatches;
  const size_t rowDim; ///< of a state's view: [micro-batches, rows of one, ...], without the first where there is one

  /// The inputs are made for the first state.
  Status checkRows(const Binding &binding) {
    const std::vector<int64_t> &shape = binding.shape;
    const int64_t rows = shape.empty() ? 0 : shape[0];
    const bool isFirst = plan.inputs.empty();
    for (int64_t row = 0; isFirst && row < rows; ++row) {
      plan.inputs.push_back({"rows/" + std::to_string(row), DType::I64, {}, true});
      plan.inputs.back().largest = rows - 1;
    }
    const std::vector<int64_t> &view = binding.slice.view; // without dims of 1, but for rows of a micro-batch
    const bool hasRows = rows <= 1 || (view.size() > rowDim && view[rowDim] * microBatches == rows && (rowDim == 0 || view[0] == microBatches));
    if (rows == 0 || rows != int64_t(plan.inputs.size()) || !hasRows)
      return Status::error(ErrorKind::Internal, "state '" + binding.saved + "' " + shapeText(shape) + " does not begin with a dim of the " +
                                                    std::to_string(plan.inputs.size()) + " rows that others have");
    return Status::success();
  }

  /// The rows that a rank holds of each micro-batch.
  Rows rowsOf(const Slice &slice, int64_t rank) const { return {slice.start[rowDim].at(rank, 0, ranks), slice.extent[rowDim].at(rank, 0, ranks)}; }

  /// The axes along which ranks hold different rows.
  std::vector<std::string> cutAxes(const Slice &slice) const {
    std::vector<std::string> cut;
    int64_t stride = ranks;
    for (const Axis &axis : plan.axes) {
      stride /= axis.size;
      for (int64_t rank = 0; rank < ranks; ++rank)
        if (const int64_t first = rank - rank / stride % axis.size * stride; rowsOf(slice, rank).begin != rowsOf(slice, first).begin) {
          cut.push_back(axis.name);
          break;
        }
    }
    return cut;
  }

  int32_t temporary(Stage &stage, const Buffer &like, int64_t rows, const std::string &name) const {
    Buffer buffer = like;
    buffer.name = name;
    buffer.lifetime = Lifetime::Program;
    buffer.box[0] = rows;
    buffer.bytes = productOf(buffer.box) * byteSize(buffer.dtype);
    buffer.offset = -1;
    stage.buffers.push_back(std::move(buffer));
    return int32_t(stage.buffers.size()) - 1;
  }

  void reorder(Stage &stage, const Binding &binding) {
    const Buffer state = stage.buffers[size_t(binding.buffer)];
    const int64_t all = int64_t(plan.inputs.size()), ofOne = all / microBatches, held = state.box[0] / microBatches, // of a micro-batch
        rowBytes = held == 0 ? 0 : state.bytes / state.box[0];
    std::vector<Instruction> &instructions = stage.programs[0].instructions;
    auto emit = [&](Action action) {
      instructions.push_back({std::move(action), binding.saved});
      return std::prev(instructions.end());
    };
    // 1. All rows as they are, in their order.
    const int32_t before = temporary(stage, state, all, "rows of " + binding.saved);
    const std::vector<std::string> axes = cutAxes(binding.slice);
    if (axes.empty()) {
      emit(Copy{{binding.buffer, 0}, {before, 0}, state.bytes});
    } else {
      std::map<int64_t, Rows> members; // by position in a group
      for (int64_t rank = 0; rank < ranks; ++rank)
        members[seatOf(plan.axes, rank, axes).position] = rowsOf(binding.slice, rank);
      Collective gather;
      gather.kind = CollectiveKind::AllGather;
      gather.axes = axes;
      gather.dtype = state.dtype;
      gather.count = productOf(state.box);
      gather.src = {binding.buffer, 0};
      gather.dst = {temporary(stage, state, state.box[0] * int64_t(members.size()), "gathered " + binding.saved), 0};
      gather.reason = {binding.saved, "", "rows of the batch change places, and other ranks hold some of them", "rows that no axis cuts"};
      emit(gather);
      for (const auto &[position, rows] : members) // without padding
        for (int64_t microBatch = 0; rows.count > 0 && microBatch < microBatches; ++microBatch)
          emit(Copy{{gather.dst.buffer, position * state.bytes + microBatch * held * rowBytes},
                    {before, (microBatch * ofOne + rows.begin) * rowBytes},
                    rows.count * rowBytes});
    }
    // 2. Each row from its new place, by the ranks that hold it.
    for (int64_t row = 0; row < all; ++row) {
      ByCoord from;
      from.scale = rowBytes;
      from.input = int32_t(row);
      Copy copy{{before, 0}, {binding.buffer, 0}, rowBytes, from, 0};
      ByCoord when;
      when.values.clear();
      copy.dstOffset.values.clear();
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Rows rows = rowsOf(binding.slice, rank);
        const int64_t local = row % ofOne - rows.begin;
        const bool isHeld = local >= 0 && local < rows.count;
        when.values.push_back(isHeld);
        copy.dstOffset.values.push_back(isHeld ? (row / ofOne * held + local) * rowBytes : 0);
      }
      emit(copy)->when = when;
    }
  }
};

} // namespace

Expected<Plan> reorderPlan(const Plan &step) {
  Plan plan;
  plan.model = step.model;
  plan.axes = step.axes;
  Reordering reordering(step, plan);
  for (const Stage &stage : step.stages)
    HPC_RETURN_IF_ERROR(reordering.addStage(stage));
  return plan;
}

} // namespace hpc
