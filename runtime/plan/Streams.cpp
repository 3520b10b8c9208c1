// Programs boiled down to streams.
#include "runtime/plan/Streams.h"

#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/Groups.h"
#include "runtime/plan/PlanStructure.h"
#include "runtime/plan/Regions.h"

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
  Regions regions;
  std::vector<int32_t> trackedOf; ///< by region, -1: not tracked
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

  void findRegions() {
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        regions.add(instruction, accessesOf(plan, instruction));
    regions.finish();
  }

  void track(size_t region) {
    if (trackedOf[region] >= 0)
      return;
    int32_t buffer = regions.all()[region].buffer, slots = int32_t(stage.buffers[buffer].slots);
    trackedOf[region] = int32_t(streams.tracked.size());
    streams.tracked.push_back({buffer, streams.states, slots, contents[buffer]});
    streams.states += slots;
  }

  void chooseTracked() {
    trackedOf.assign(regions.all().size(), -1);
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        for (const BufferAccess &access : accessesOf(plan, instruction))
          if (isPosted(instruction.action) || contents[access.ref.buffer] != Content::Any)
            for (auto [region, last] = regions.of(access); region < last; ++region)
              track(region);
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
      for (const BufferAccess &access : accessesOf(plan, instruction))
        for (auto [number, last] = regions.of(access); number < last; ++number)
          if (int32_t tracked = trackedOf[number]; tracked >= 0) {
            const Region &region = regions.all()[number];
            op.uses.push_back({tracked, std::max(access.ref.byteOffset, region.begin),
                               std::min(addSizes(access.ref.byteOffset, access.bytes), region.end), access.write,
                               access.when});
          }
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
  Builder builder{plan, stage, {}, {}, {}, {}, {}};
  builder.findContents();
  builder.findRegions();
  builder.chooseTracked();
  for (const Program &program : stage.programs)
    builder.streams.programs.push_back(builder.build(program));
  return std::move(builder.streams);
}

} // namespace hpc::plan
