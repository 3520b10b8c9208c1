// Sizes of instructions, and the trace file.
#include "runtime/core/Trace.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hpc {

int64_t bytesOf(const plan::Instruction &instruction, const plan::Plan &plan) {
  if (const auto *collective = std::get_if<plan::Collective>(&instruction.action))
    return plan::payloadBytes(plan, *collective);
  int64_t bytes = 0;
  for (const plan::BufferAccess &access : plan::accessesOf(plan, instruction))
    bytes += access.bytes;
  return bytes;
}

Trace::Trace(const plan::Plan &plan, bool isMeasured) : traced(plan), origin(Clock::now()), events(size_t(plan.worldSize())) {
  for (size_t rank = 0; isMeasured && rank < events.size(); ++rank) {
    const plan::Stage &stage = plan.stages[rank / size_t(plan.ranksPerStage())];
    size_t count = 0;
    for (const plan::ScheduleStep &step : stage.schedule)
      count += stage.programs[size_t(step.program)].instructions.size();
    events[rank].reserve(count);
  }
}

void Trace::add(int64_t rank, int32_t step, int32_t instruction, double start, double end, bool isTransfer) {
  auto at = [&](double seconds) { return origin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)); };
  add(rank, {step, instruction, at(start), at(end), isTransfer});
}

void Trace::begin() {
  origin = Clock::now();
  for (std::vector<Event> &list : events)
    list.clear();
}

std::string Trace::json() const {
  const plan::Plan &plan = traced;
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
    auto nameThread = [&](int64_t thread, const char *what) {
      list.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", stageIndex}, {"tid", thread}, {"args", {{"name", "rank " + std::to_string(rank) + what}}}});
    };
    nameThread(rank, "");
    const std::vector<Event> &ofRank = events[size_t(rank)];
    const int64_t transfers = plan.worldSize() + rank;
    if (std::any_of(ofRank.begin(), ofRank.end(), [](const Event &event) { return event.isTransfer; }))
      nameThread(transfers, ", transfers");
    for (const Event &event : ofRank) {
      const plan::ScheduleStep &step = stage.schedule[size_t(event.step)];
      const plan::Program &program = stage.programs[size_t(step.program)];
      auto add = [&](const std::string &label, const std::string &category, Json args) {
        list.push_back({{"name", label},
                        {"cat", category},
                        {"ph", "X"},
                        {"pid", stageIndex},
                        {"tid", event.isTransfer ? transfers : rank},
                        {"ts", microseconds(event.start - origin)},
                        {"dur", microseconds(event.end - event.start)},
                        {"args", std::move(args)}});
      };
      if (event.instruction < 0) {
        add(programText(program), "program", {{"program", programText(program)}, {"micro-batch", step.microBatch}});
        continue;
      }
      const plan::Instruction &instruction = program.instructions[size_t(event.instruction)];
      Json args = {{"node", instruction.node},
                   {"program", programText(program)},
                   {"instruction", event.instruction},
                   {"micro-batch", step.microBatch},
                   {"bytes", bytesOf(instruction, plan)}};
      if (const plan::Kernel *kernel = std::get_if<plan::Kernel>(&instruction.action))
        args["symbol"] = kernel->symbol;
      std::string label = plan::actionName(instruction.action);
      if (!instruction.node.empty())
        label += " " + instruction.node;
      add(label, plan::actionName(instruction.action), std::move(args));
    }
  }
  // A node's name is a stranger's and need not be UTF-8.
  return Json({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}})
      .dump(1, ' ', false, Json::error_handler_t::replace);
}

} // namespace hpc
