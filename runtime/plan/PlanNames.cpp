// Names of places.
#include "runtime/plan/PlanNames.h"

namespace hpc::plan {

const char *name(Lifetime lifetime) {
  static const char *const names[] = {"session", "step", "micro-batch", "program"};
  return names[int(lifetime)];
}

const char *name(ArenaKind arena) {
  static const char *const names[] = {"session", "work", "host"};
  return names[int(arena)];
}

const char *name(ProgramKind kind) {
  static const char *const names[] = {"receive",  "forward",        "drain",           "receive gradient",
                                      "backward", "drain gradient", "weight gradient", "update"};
  return names[int(kind)];
}

const char *name(EpilogueKind kind) {
  static const char *const names[] = {"bias", "bias and relu", "bias and gelu"};
  return names[int(kind)];
}

const char *name(AttentionKind kind) { return kind == AttentionKind::Forward ? "attention" : "attention gradient"; }

const char *name(Int8Form form) {
  static const char *const names[] = {"codes", "scales", "values"};
  return names[int(form)];
}

const char *name(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return "all_reduce";
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllToAll:
    return "all_to_all";
  case CollectiveKind::Permute:
    return "permute";
  }
  return "?";
}

const char *actionName(const Action &action) {
  struct Namer {
    const char *operator()(const Gemm &) { return "gemm"; }
    const char *operator()(const Kernel &) { return "kernel"; }
    const char *operator()(const Copy &) { return "copy"; }
    const char *operator()(const Accumulate &) { return "accumulate"; }
    const char *operator()(const Collective &collective) { return name(collective.kind); }
    const char *operator()(const Send &) { return "send"; }
    const char *operator()(const Recv &) { return "recv"; }
    const char *operator()(const Wait &) { return "wait"; }
    const char *operator()(const LoadInput &) { return "load"; }
    const char *operator()(const StoreOutput &) { return "store"; }
  };
  return std::visit(Namer{}, action);
}

std::string programText(const Program &program) {
  std::string text = name(program.kind);
  return program.chunk == 0 ? text : text + " " + std::to_string(program.chunk);
}

std::string coordinateText(const Plan &plan, int64_t coordinate) {
  std::string text = "coordinate " + std::to_string(coordinate);
  if (plan.axes.empty())
    return text;
  std::string axes;
  int64_t rest = coordinate;
  for (size_t i = plan.axes.size(); i-- > 0;) {
    axes = plan.axes[i].name + "=" + std::to_string(rest % plan.axes[i].size) + (axes.empty() ? "" : ", ") + axes;
    rest /= plan.axes[i].size;
  }
  return text + " (" + axes + ")";
}

std::string rankText(const Plan &plan, int64_t rank) {
  int64_t ranks = plan.ranksPerStage();
  return "rank " + std::to_string(rank) + " (stage " + std::to_string(rank / ranks) + ", " +
         coordinateText(plan, rank % ranks) + ")";
}

std::string instructionText(const Plan &plan, int64_t stage, int64_t program, int64_t instruction) {
  const Program &where = plan.stages[stage].programs[program];
  const Instruction &what = where.instructions[instruction];
  std::string text = "stage " + std::to_string(stage) + ", program " + programText(where) + ", instruction " +
                     std::to_string(instruction) + " (" + actionName(what.action);
  if (!what.node.empty())
    text += ", node " + what.node;
  return text + ")";
}

std::string stepText(const Stage &stage, int64_t step) {
  const ScheduleStep &what = stage.schedule[step];
  return "schedule step " + std::to_string(step) + " (" + programText(stage.programs[what.program]) + ", micro-batch " +
         std::to_string(what.microBatch) + ")";
}

std::string bufferText(const Stage &stage, int64_t buffer) {
  std::string text = "buffer " + std::to_string(buffer);
  if (!stage.buffers[buffer].name.empty())
    text += " '" + stage.buffers[buffer].name + "'";
  return text;
}

std::string shapeText(const std::vector<int64_t> &sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

} // namespace hpc::plan
