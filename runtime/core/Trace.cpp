// Names and sizes of instructions, and the trace file.
#include "runtime/core/Trace.h"

#include "runtime/plan/PlanNames.h"

#include <nlohmann/json.hpp>

namespace hpc {

namespace {

/// One overload per action.
struct NameOf {
  const char *operator()(const plan::Gemm &) const { return "gemm"; }
  const char *operator()(const plan::Kernel &kernel) const { return "kernel"; }
  const char *operator()(const plan::Copy &) const { return "copy"; }
  const char *operator()(const plan::Collective &collective) const {
    switch (collective.kind) {
    case plan::CollectiveKind::AllReduce:
      return "all-reduce";
    case plan::CollectiveKind::AllGather:
      return "all-gather";
    case plan::CollectiveKind::ReduceScatter:
      return "reduce-scatter";
    case plan::CollectiveKind::AllToAll:
      return "all-to-all";
    case plan::CollectiveKind::Permute:
      return "permute";
    }
    return "collective";
  }
  const char *operator()(const plan::Send &) const { return "send"; }
  const char *operator()(const plan::Recv &) const { return "recv"; }
  const char *operator()(const plan::Wait &) const { return "wait"; }
  const char *operator()(const plan::LoadInput &) const { return "load input"; }
  const char *operator()(const plan::StoreOutput &) const { return "store output"; }
};

struct BytesOf {
  const plan::Plan &plan;
  Place place;

  int64_t box(const plan::Slice &slice, DType dtype) const {
    int64_t bytes = byteSize(dtype);
    for (int64_t size : slice.box)
      bytes *= size;
    return bytes;
  }
  int64_t operator()(const plan::Gemm &gemm) const {
    int64_t m = place(gemm.m), n = place(gemm.n), k = place(gemm.k), products = 1;
    for (int64_t size : gemm.batch)
      products *= size;
    return products * (m * k * byteSize(gemm.a.dtype) + k * n * byteSize(gemm.b.dtype) +
                       m * n * byteSize(gemm.c.dtype) * (place(gemm.addToC) ? 2 : 1));
  }
  int64_t operator()(const plan::Kernel &kernel) const {
    int64_t bytes = 0;
    for (const plan::KernelArg &arg : kernel.args)
      bytes += arg.bytes * (int64_t(arg.reads) + int64_t(arg.writes));
    return bytes;
  }
  int64_t operator()(const plan::Copy &copy) const { return 2 * copy.bytes; }
  int64_t operator()(const plan::Collective &collective) const {
    int64_t members = 1;
    if (collective.kind == plan::CollectiveKind::ReduceScatter || collective.kind == plan::CollectiveKind::AllToAll)
      for (const plan::Axis &axis : plan.axes)
        for (const std::string &used : collective.axes)
          members *= axis.name == used ? axis.size : 1;
    return collective.count * members * byteSize(collective.dtype);
  }
  int64_t operator()(const plan::Send &send) const { return send.bytes; }
  int64_t operator()(const plan::Recv &recv) const { return recv.bytes; }
  int64_t operator()(const plan::Wait &) const { return 0; }
  int64_t operator()(const plan::LoadInput &load) const {
    return box(load.slice, plan.inputs[size_t(load.input)].dtype);
  }
  int64_t operator()(const plan::StoreOutput &store) const {
    return place(store.owner) ? box(store.slice, plan.outputs[size_t(store.output)].dtype) : 0;
  }
};

} // namespace

const char *opcodeName(const plan::Action &action) { return std::visit(NameOf{}, action); }

int64_t bytesOf(const plan::Action &action, const plan::Plan &plan, Place place) {
  return std::visit(BytesOf{plan, place}, action);
}

Trace::Trace(const plan::Plan &plan) : plan(plan), origin(Clock::now()), events(size_t(plan.worldSize())) {
  for (size_t rank = 0; rank < events.size(); ++rank) {
    const plan::Stage &stage = plan.stages[rank / size_t(plan.ranksPerStage())];
    size_t count = 0;
    for (const plan::ScheduleStep &step : stage.schedule)
      count += stage.programs[size_t(step.program)].instructions.size();
    events[rank].reserve(count);
  }
}

void Trace::begin() {
  origin = Clock::now();
  for (std::vector<Event> &list : events)
    list.clear();
}

std::string Trace::json() const {
  using Json = nlohmann::ordered_json;
  auto microseconds = [](Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); };
  Json list = Json::array();
  int64_t ranksPerStage = plan.ranksPerStage();
  for (int64_t rank = 0; rank < plan.worldSize(); ++rank) {
    int64_t stageIndex = rank / ranksPerStage;
    const plan::Stage &stage = plan.stages[size_t(stageIndex)];
    if (rank % ranksPerStage == 0)
      list.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", stageIndex},
                      {"args", {{"name", "stage " + std::to_string(stageIndex)}}}});
    list.push_back({{"name", "thread_name"},
                    {"ph", "M"},
                    {"pid", stageIndex},
                    {"tid", rank},
                    {"args", {{"name", "rank " + std::to_string(rank)}}}});
    for (const Event &event : events[size_t(rank)]) {
      const plan::ScheduleStep &step = stage.schedule[size_t(event.step)];
      const plan::Program &program = stage.programs[size_t(step.program)];
      const plan::Instruction &instruction = program.instructions[size_t(event.instruction)];
      Json args = {
          {"node", instruction.node},
          {"program", programText(program)},
          {"instruction", event.instruction},
          {"micro-batch", step.microBatch},
          {"bytes", bytesOf(instruction.action, plan, {rank % ranksPerStage, step.microBatch, ranksPerStage})}};
      if (const plan::Kernel *kernel = std::get_if<plan::Kernel>(&instruction.action))
        args["symbol"] = kernel->symbol;
      std::string label = opcodeName(instruction.action);
      if (!instruction.node.empty())
        label += " " + instruction.node;
      list.push_back({{"name", label},
                      {"cat", opcodeName(instruction.action)},
                      {"ph", "X"},
                      {"pid", stageIndex},
                      {"tid", rank},
                      {"ts", microseconds(event.start - origin)},
                      {"dur", microseconds(event.end - event.start)},
                      {"args", std::move(args)}});
    }
  }
  // A node's name is a stranger's and need not be UTF-8.
  return Json({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}})
      .dump(1, ' ', false, Json::error_handler_t::replace);
}

} // namespace hpc
