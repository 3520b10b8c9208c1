// The plan as text, part by part in the order in which one reads it.
#include "runtime/plan/PlanPrinter.h"

#include "runtime/base/CountText.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanTables.h"
#include "runtime/plan/Schedule.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace hpc::plan {

namespace {

/// A picture wider than this is cut off: it has become a pattern by then.
constexpr int64_t maxColumns = 64;

std::string number(int64_t value) { return std::to_string(value); }

std::string portText(const Port &port) {
  std::string text = port.name + ": " + hpc::name(port.dtype) + shapeText(port.shape) +
                     (port.isStepScalar ? ", step scalar" : "") +
                     (port.largest ? " from 0 to " + number(*port.largest) : "") + (port.onRequest ? ", on request" : "");
  for (const Lookup &lookup : port.lookups)
    text += ", " + number(lookup.low) + " to " + number(lookup.high - 1) +
            (lookup.ignored ? " or " + number(*lookup.ignored) : "") + " for " + lookup.reader;
  if (!port.defaultInput.empty())
    text += ", where none are given those of " + port.defaultInput;
  return text;
}

/// A double in as few digits as give it back.
std::string doubleText(double value) {
  char text[32];
  for (int digits : {6, 17}) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  return text;
}

std::string header(const Plan &plan) {
  std::string axes,
      text = "plan '" + plan.model + "', version " + number(versionOf(plan).major) + "." + number(versionOf(plan).minor) + "\n";
  for (const Axis &axis : plan.axes)
    axes += (axes.empty() ? "" : ", ") + axis.name + "=" + number(axis.size);
  text += "mesh: " + (axes.empty() ? "one rank a stage" : axes) + "\n";
  text += "stages: " + number(int64_t(plan.stages.size())) + ", ranks per stage: " + number(plan.ranksPerStage()) +
          ", ranks: " + number(plan.worldSize()) +
          (plan.entries.empty() ? ", micro-batches: " + number(plan.microBatches) : ", entries: " + entryNames(plan)) + "\n";
  for (const Setting &setting : plan.training)
    text += (&setting == &plan.training.front() ? "training: " : ", ") + setting.name + " " + setting.value;
  text += plan.training.empty() ? "" : "\n";
  for (const Port &port : plan.inputs)
    text += "input " + portText(port) + "\n";
  for (const Port &port : plan.outputs)
    text += "output " + portText(port) + "\n";
  if (plan.modules.empty())
    text += "code: none\n";
  for (const CodeModule &module : plan.modules) {
    text += "code: " + module.target + ", " + bytesText(int64_t(module.bytes.size())) + ", " +
            countText(int64_t(module.symbols.size()), "function");
    if (module.capability)
      text += ", needs compute capability " + number(module.capability);
    for (size_t i = 0; i < module.features.size(); ++i)
      text += (i ? " " : ", needs ") + module.features[i];
    text += "\n";
  }
  return text;
}

std::string bufferLine(const Buffer &buffer, size_t index) {
  std::string text = "  b" + number(int64_t(index)) + " " + name(buffer.lifetime) +
                     (buffer.space == Space::Host ? " on host " : " ") + hpc::name(buffer.dtype) +
                     shapeText(buffer.box) + ", " + number(buffer.bytes) + " bytes at " + number(buffer.offset);
  if (buffer.slots > 1)
    text += ", " + number(buffer.slots) + " slots by " + number(buffer.slotStride);
  return buffer.name.empty() ? text + "\n" : text + "  # " + buffer.name + "\n";
}

/// "weight w0: f32[3, 5] -> b0, columns 0..2 | 3..4 of 5 (box 3)"
std::string bindingLine(const Plan &plan, const Stage &stage, const Binding &binding) {
  std::string text = "  ", dtype = hpc::name(stage.buffers[binding.buffer].dtype);
  std::vector<int64_t> shape = binding.saved.empty() ? binding.slice.view : binding.shape;
  if (const auto *stored = std::get_if<StoredWeight>(&binding.start)) {
    const Weight &weight = plan.weights[stored->weight];
    shape = weight.shape;
    text += "weight " + weight.name;
    if (weight.dtype != stage.buffers[binding.buffer].dtype)
      dtype += std::string(" from ") + hpc::name(weight.dtype) + " ";
  } else if (const auto *int8 = std::get_if<Int8Weight>(&binding.start)) {
    const Weight &weight = plan.weights[int8->weight];
    shape = weight.shape;
    bool isScales = int8->form == Int8Form::Scales;
    if (isScales)
      shape.erase(shape.begin() + int8->along);
    text += std::string(isScales ? "scales of " : "") + "weight " + weight.name;
    dtype += std::string(isScales ? " of int8 " : int8->form == Int8Form::Codes ? " codes " : " values of int8 ") +
             "along dim " + number(int8->along) + " of " + hpc::name(weight.dtype) + " ";
  } else {
    text += "state " + (binding.saved.empty() ? stage.buffers[binding.buffer].name : binding.saved);
  }
  text +=
      ": " + dtype + shapeText(shape) + " -> b" + number(binding.buffer) + ", " + sliceText(plan, binding.slice, shape);
  if (const auto *initial = std::get_if<Number>(&binding.start))
    text += ", starts as " + doubleText(initial->value);
  if (std::holds_alternative<Nothing>(binding.start))
    text += ", starts with nothing";
  return text + (binding.saved.empty() ? "\n" : ", saved as '" + binding.saved + "'\n");
}

std::string stageLine(const Plan &plan, size_t index) {
  int64_t ranks = plan.ranksPerStage(), first = int64_t(index) * ranks;
  return "stage " + number(int64_t(index)) + " (ranks " + number(first) + ".." + number(first + ranks - 1) + "):\n";
}

std::string heldText(const Plan &plan, size_t index) {
  const Stage &stage = plan.stages[index];
  std::string text;
  for (size_t i = 0; i < stage.buffers.size(); ++i)
    text += bufferLine(stage.buffers[i], i);
  for (const Binding &binding : stage.bindings)
    text += bindingLine(plan, stage, binding);
  return text;
}

std::string programsText(const Plan &plan, size_t index) {
  const Stage &stage = plan.stages[index];
  std::string text;
  for (const Program &program : stage.programs) {
    text += "  program " + programText(program) + ":\n";
    for (size_t i = 0; i < program.instructions.size(); ++i)
      text += "    " + number(int64_t(i)) + ": " + instructionLine(plan, stage, program.instructions[i]) + "\n";
  }
  return text;
}

std::string scheduleText(const Plan &plan, const PlanFacts &facts) {
  std::string text = "schedule:\n";
  for (size_t s = 0; s < plan.stages.size(); ++s)
    text += "  stage " + number(int64_t(s)) + " runs " + formatSchedule(scheduleOf(plan.stages[s])) + "\n";
  if (facts.timeline.stages.empty())
    return text;
  char bubble[64];
  std::snprintf(bubble, sizeof(bubble), "%.1f%%", 100 * facts.timeline.bubble());
  text += "pipeline (every program taken as equally long):\n" + timelinePicture(plan, facts.timeline);
  return text + "bubble: " + bubble + "\n";
}

} // namespace

std::string bytesText(int64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  std::string text = number(bytes) + " bytes";
  if (bytes < 1024)
    return text;
  double value = double(bytes) / 1024;
  int unit = 0;
  for (; value >= 1024 && unit < 3; ++unit)
    value /= 1024;
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), " (%.1f %s)", value, units[unit]);
  return text + buffer;
}

std::string timelinePicture(const Plan &plan, const Timeline &timeline) {
  auto label = [&](size_t stage, const Turn &turn) {
    const ScheduleStep &step = plan.stages[stage].schedule[turn.step];
    const Program &program = plan.stages[stage].programs[step.program];
    return actionText({program.kind, step.microBatch, program.chunk});
  };
  size_t width = 2;
  for (size_t s = 0; s < timeline.stages.size(); ++s)
    for (const Turn &turn : timeline.stages[s])
      width = std::max(width, label(s, turn).size());
  int64_t columns = std::min(timeline.length, maxColumns);
  std::string text;
  for (size_t s = 0; s < timeline.stages.size(); ++s) {
    std::vector<std::string> cells(columns, ".");
    for (const Turn &turn : timeline.stages[s])
      if (turn.start < columns)
        cells[turn.start] = label(s, turn);
    std::string line = "  stage " + number(int64_t(s)) + ":";
    for (const std::string &cell : cells)
      line += " " + cell + std::string(width - cell.size(), ' ');
    if (timeline.length > columns)
      line += " ...";
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

/// What an entry takes, gives, runs and sends. `own` is the plan that it is.
static std::string entryText(const Plan &own, const std::string &name, const PlanFacts &facts) {
  auto names = [](const std::vector<Port> &ports) {
    std::string text;
    for (const Port &port : ports)
      text += (text.empty() ? "" : ", ") + port.name;
    return text.empty() ? std::string("nothing") : text;
  };
  std::string text = "entry " + name + ": takes " + names(own.inputs) + "; gives " + names(own.outputs) + "; " +
                     countText(own.microBatches, "micro-batch", "es") + "\n";
  for (size_t s = 0; s < own.stages.size(); ++s)
    text += stageLine(own, s) + programsText(own, s);
  return text + keptTable(facts) + trafficTable(own, facts) + scheduleText(own, facts);
}

std::string printPlan(const Plan &plan, const PlanFacts &facts) {
  std::string text = header(plan) + memoryTable(facts);
  for (size_t s = 0; s < plan.stages.size(); ++s)
    text += stageLine(plan, s) + heldText(plan, s) + (plan.entries.empty() ? programsText(plan, s) : "");
  if (plan.entries.empty())
    return text + keptTable(facts) + trafficTable(plan, facts) + scheduleText(plan, facts);
  for (size_t entry = 0; entry < plan.entries.size(); ++entry)
    text += entryText(planOf(plan, entry), plan.entries[entry].name, facts.entries[entry]);
  return text;
}

} // namespace hpc::plan
