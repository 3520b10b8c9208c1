// Programs boiled down to streams.
#include "runtime/plan/Streams.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/Groups.h"
#include "runtime/plan/PlanStructure.h"

#include <algorithm>
#include <map>

namespace hpc::plan {

namespace {

OpKind kindOf(const Action &action) {
  if (std::holds_alternative<Collective>(action))
    return OpKind::Collective;
  if (std::holds_alternative<Send>(action))
    return OpKind::Send;
  if (std::holds_alternative<Recv>(action))
    return OpKind::Recv;
  if (std::holds_alternative<Wait>(action))
    return OpKind::Wait;
  return OpKind::Touch;
}

std::vector<int32_t> groupsOver(const Plan &plan, const std::vector<std::string> &axes) {
  std::vector<int32_t> groups;
  for (int64_t coordinate = 0; coordinate < plan.ranksPerStage(); ++coordinate)
    groups.push_back(int32_t(seatOf(plan.axes, coordinate, axes).group));
  return groups;
}

struct Builder {
  const Plan &plan;
  const Stage &stage;
  StageStreams streams;
  std::vector<int32_t> trackedOf; ///< by buffer, -1: not tracked
  std::vector<Content> contents;  ///< by buffer
  std::map<std::vector<std::string>, int32_t> signatures;

  void findContents() {
    contents.assign(stage.buffers.size(), Content::Any);
    for (size_t i = 0; i < stage.buffers.size(); ++i)
      if (stage.buffers[i].lifetime == Lifetime::MicroBatch)
        contents[i] = Content::MicroBatch;
      else if (stage.buffers[i].lifetime == Lifetime::Step)
        contents[i] = Content::Written;
    for (const Binding &binding : stage.bindings)
      if (std::holds_alternative<Nothing>(binding.start))
        contents[binding.buffer] = Content::Written;
  }

  void track(int32_t buffer) {
    if (trackedOf[buffer] >= 0)
      return;
    int32_t slots = int32_t(stage.buffers[buffer].slots);
    trackedOf[buffer] = int32_t(streams.tracked.size());
    streams.tracked.push_back({buffer, streams.states, slots, contents[buffer]});
    streams.states += slots;
  }

  void chooseTracked() {
    trackedOf.assign(stage.buffers.size(), -1);
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        for (const Access &access : accessesOf(plan, instruction))
          if (isPosted(instruction.action) || contents[access.ref.buffer] != Content::Any)
            track(access.ref.buffer);
  }

  int32_t signatureOf(const std::vector<std::string> &axes) {
    auto [found, isNew] = signatures.emplace(axes, int32_t(streams.groupOf.size()));
    if (isNew) {
      streams.groupOf.push_back(groupsOver(plan, axes));
      streams.groupSizes.push_back(groupSize(plan, axes));
    }
    return found->second;
  }

  /// The work goes before the first send: by then a program has waited for what it needs and computed.
  std::vector<StreamOp> build(const Program &program) {
    std::vector<StreamOp> ops;
    int32_t workAt = -1;
    bool computes = false;
    for (int32_t i = 0; i < int32_t(program.instructions.size()); ++i) {
      const Instruction &instruction = program.instructions[i];
      StreamOp op;
      op.kind = kindOf(instruction.action);
      op.instruction = i;
      if (!isEverywhere(instruction.when, 1))
        op.when = &instruction.when;
      for (const Access &access : accessesOf(plan, instruction))
        if (int32_t tracked = trackedOf[access.ref.buffer]; tracked >= 0 && access.bytes > 0)
          op.uses.push_back(
              {tracked, access.ref.byteOffset, access.ref.byteOffset + access.bytes, access.write, access.when});
      if (const auto *collective = std::get_if<Collective>(&instruction.action))
        op.signature = signatureOf(collective->axes);
      computes = computes || op.kind == OpKind::Touch || op.kind == OpKind::Collective;
      if (op.kind == OpKind::Send && workAt < 0)
        workAt = int32_t(ops.size());
      if (op.kind != OpKind::Touch || !op.uses.empty())
        ops.push_back(std::move(op));
    }
    if (computes) {
      StreamOp work;
      work.kind = OpKind::Work;
      ops.insert(workAt < 0 ? ops.end() : ops.begin() + workAt, std::move(work));
    }
    return ops;
  }
};

} // namespace

StageStreams buildStreams(const Plan &plan, const Stage &stage) {
  Builder builder{plan, stage, {}, {}, {}, {}};
  builder.findContents();
  builder.chooseTracked();
  for (const Program &program : stage.programs)
    builder.streams.programs.push_back(builder.build(program));
  return std::move(builder.streams);
}

} // namespace hpc::plan
