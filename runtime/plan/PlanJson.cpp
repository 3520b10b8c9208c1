// The facts of a plan as JSON, keys in the order of the text form. Names and paths of a model may hold bytes that are
// not UTF-8; they are replaced rather than refused.
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanExplain.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanPrinter.h"
#include "runtime/plan/Schedule.h"

#include <nlohmann/json.hpp>

namespace hpc::plan {

namespace {

using Json = nlohmann::ordered_json;

Json lookups(const Port &port) {
  Json list = Json::array();
  for (const Lookup &lookup : port.lookups) {
    list.push_back({{"reader", lookup.reader},
                    {"begin", lookup.begin},
                    {"end", lookup.end},
                    {"low", lookup.low},
                    {"high", lookup.high}});
    if (lookup.ignored)
      list.back()["ignored"] = *lookup.ignored;
  }
  return list;
}

Json ports(const std::vector<Port> &ports) {
  Json list = Json::array();
  for (const Port &port : ports) {
    list.push_back({{"name", port.name},
                    {"dtype", hpc::name(port.dtype)},
                    {"shape", port.shape},
                    {"step_scalar", port.isStepScalar},
                    {"on_request", port.onRequest},
                    {"lookups", lookups(port)},
                    {"default_input", port.defaultInput}});
    if (port.largest)
      list.back()["largest"] = *port.largest;
  }
  return list;
}

Json tables(const std::vector<ByCoord> &tables) {
  Json list = Json::array();
  for (const ByCoord &table : tables)
    list.push_back(table.values);
  return list;
}

Json bindingJson(const Plan &plan, const Stage &stage, const Binding &binding) {
  const Slice &slice = binding.slice;
  Json json = {{"buffer", binding.buffer}};
  std::vector<int64_t> shape = slice.view;
  if (const auto *stored = std::get_if<StoredWeight>(&binding.start)) {
    const Weight &weight = plan.weights[stored->weight];
    shape = weight.shape;
    json["tensor"] = weight.name; // keys stay
    json["stored_dtype"] = hpc::name(weight.dtype);
  } else if (const auto *int8 = std::get_if<Int8Weight>(&binding.start)) {
    const Weight &weight = plan.weights[int8->weight];
    shape = weight.shape;
    if (int8->form == Int8Form::Scales)
      shape.erase(shape.begin() + int8->along);
    json["tensor"] = weight.name;
    json["stored_dtype"] = hpc::name(weight.dtype);
    json["int8"] = name(int8->form);
    json["int8_along"] = int8->along;
  } else if (const auto *number = std::get_if<Number>(&binding.start)) {
    json["number"] = number->value;
  } else {
    json["nothing"] = true;
  }
  if (!binding.saved.empty()) {
    shape = binding.shape;
    json["saved"] = binding.saved;
  }
  json["dtype"] = hpc::name(stage.buffers[binding.buffer].dtype);
  json["shape"] = shape;
  json["view"] = slice.view;
  json["start"] = tables(slice.start);
  json["extent"] = tables(slice.extent);
  json["box"] = slice.box;
  json["held"] = sliceText(plan, slice, shape);
  return json;
}

Json memoryJson(const MemoryFacts &memory) {
  return {{"weight", memory.weight}, {"state", memory.state}, {"step", memory.step},  {"slot", memory.slot},
          {"temp", memory.temp},     {"host", memory.host},   {"total", memory.total()}};
}

const char *const parts[] = {"forward", "repeated", "gradient", "update"}; // by Part

Json stageJson(const Plan &plan, const PlanFacts &facts, size_t index) {
  const Stage &stage = plan.stages[index];
  Json json;
  json["ranks"] = {int64_t(index) * plan.ranksPerStage(), (int64_t(index) + 1) * plan.ranksPerStage() - 1};
  json["memory_per_rank"] = memoryJson(facts.memory[index]);
  json["gemm_flops_per_step"] = facts.gemmFlops[index];
  json["product_flops_per_step"] = facts.productFlops[index];
  json["buffers"] = Json::array();
  for (const Buffer &buffer : stage.buffers)
    json["buffers"].push_back({{"name", buffer.name},
                               {"lifetime", name(buffer.lifetime)},
                               {"arena", name(arenaOf(buffer))},
                               {"dtype", hpc::name(buffer.dtype)},
                               {"box", buffer.box},
                               {"bytes", buffer.bytes},
                               {"offset", buffer.offset},
                               {"slots", buffer.slots},
                               {"slot_stride", buffer.slotStride}});
  json["bindings"] = Json::array();
  for (const Binding &binding : stage.bindings)
    json["bindings"].push_back(bindingJson(plan, stage, binding));
  json["programs"] = Json::array();
  for (const Program &program : stage.programs) {
    Json instructions = Json::array();
    for (const Instruction &instruction : program.instructions)
      instructions.push_back({{"kind", actionName(instruction.action)},
                              {"part", parts[int(instruction.part)]},
                              {"node", instruction.node},
                              {"text", instructionLine(plan, stage, instruction)}});
    json["programs"].push_back(
        {{"kind", name(program.kind)}, {"chunk", program.chunk}, {"instructions", instructions}});
  }
  json["schedule"] = formatSchedule(scheduleOf(stage));
  return json;
}

Json trafficJson(const Plan &plan, const TrafficFacts &traffic) {
  const Program &program = plan.stages[traffic.stage].programs[traffic.program];
  const Action &action = program.instructions[traffic.instruction].action;
  Json json = {{"stage", traffic.stage},
               {"program", programText(program)},
               {"instruction", traffic.instruction},
               {"kind", actionName(action)}};
  const Reason *reason;
  if (const auto *collective = std::get_if<Collective>(&action)) {
    json["axes"] = collective->axes;
    json["groups"] = traffic.groups;
    json["beside_computation"] = traffic.isBesideComputation;
    reason = &collective->reason;
  } else {
    const Send &send = std::get<Send>(action);
    json["peer"] = send.peer.values;
    json["senders"] = traffic.groups;
    reason = &send.reason;
  }
  json["bytes"] = traffic.bytes;
  json["runs"] = traffic.runs;
  json["node"] = reason->node;
  json["path"] = reason->path;
  json["cause"] = reason->cause;
  json["avoid"] = reason->avoid;
  return json;
}

void addTraffic(const Plan &plan, const PlanFacts &facts, Json &json) {
  json["collectives"] = Json::array();
  for (const TrafficFacts &traffic : facts.collectives)
    json["collectives"].push_back(trafficJson(plan, traffic));
  json["transfers"] = Json::array();
  for (const TrafficFacts &traffic : facts.transfers)
    json["transfers"].push_back(trafficJson(plan, traffic));
}

void addKept(const PlanFacts &facts, Json &json) {
  json["kept"] = Json::array();
  for (const KeptFacts &kept : facts.kept)
    json["kept"].push_back({{"stage", kept.stage},
                            {"chunk", kept.chunk},
                            {"values", kept.values},
                            {"bytes", kept.bytes},
                            {"repeated_instructions", kept.instructions},
                            {"repeated_product_flops_per_step", kept.productFlops}});
}

std::string jsonText(const Json &json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json explained(const Plan &plan, const PlanFacts &facts) {
  Json json;
  addTraffic(plan, facts, json);
  addKept(facts, json);
  json["stages"] = Json::array();
  for (size_t stage = 0; stage < facts.memory.size(); ++stage)
    json["stages"].push_back({{"memory_per_rank", memoryJson(facts.memory[stage])},
                              {"gemm_flops_per_step", facts.gemmFlops[stage]},
                              {"product_flops_per_step", facts.productFlops[stage]}});
  json["time_units"] = facts.timeline.length;
  json["bubble"] = facts.timeline.bubble();
  return json;
}

/// The keys of the first entry, as of a plan that is it alone, and `entries`: these keys of each.
template <typename F> void addEntries(const Plan &plan, const PlanFacts &facts, const F &describe, Json &json) {
  if (plan.entries.empty()) {
    json.update(describe(plan, facts));
    return;
  }
  Json entries = Json::array();
  for (size_t entry = 0; entry < plan.entries.size(); ++entry) {
    Json one = {{"name", plan.entries[entry].name}};
    one.update(describe(planOf(plan, entry), facts.entries[entry]));
    entries.push_back(std::move(one));
  }
  json.update(entries.front());
  json.erase("name");
  json["entries"] = std::move(entries);
}

Json printed(const Plan &plan, const PlanFacts &facts) {
  Json json;
  json["micro_batches"] = plan.microBatches;
  json["inputs"] = ports(plan.inputs);
  json["outputs"] = ports(plan.outputs);
  json["stages"] = Json::array();
  for (size_t s = 0; s < plan.stages.size(); ++s)
    json["stages"].push_back(stageJson(plan, facts, s));
  addTraffic(plan, facts, json);
  addKept(facts, json);
  json["time_units"] = facts.timeline.length;
  json["bubble"] = facts.timeline.bubble();
  return json;
}

} // namespace

std::string explainPlanJson(const Plan &plan, const PlanFacts &facts, const std::optional<PredictedStep> &step) {
  Json json;
  json["model"] = plan.model;
  addEntries(plan, facts, explained, json);
  if (step)
    json["prediction"] = {{"machine", step->machine}, {"seconds", step->seconds}, {"mfu", step->mfu}, {"exposed", step->exposed}, {"bubble", step->bubble}, {"memory", step->memory}, {"binds", step->binds}};
  return jsonText(json);
}

std::string printPlanJson(const Plan &plan, const PlanFacts &facts) {
  Json json;
  json["model"] = plan.model;
  json["version"] = {versionOf(plan).major, versionOf(plan).minor};
  json["axes"] = Json::array();
  for (const Axis &axis : plan.axes)
    json["axes"].push_back({{"name", axis.name}, {"size", axis.size}});
  json["ranks"] = plan.worldSize();
  json["micro_batches"] = nullptr; // addEntries sets it and the ports; the order of keys stays
  json["training"] = Json::object();
  for (const Setting &setting : plan.training)
    json["training"][setting.name] = setting.value;
  json["inputs"] = nullptr;
  json["outputs"] = nullptr;
  json["modules"] = Json::array();
  for (const CodeModule &module : plan.modules)
    json["modules"].push_back({{"target", module.target},
                               {"features", module.features},
                               {"capability", module.capability},
                               {"bytes", module.bytes.size()},
                               {"symbols", module.symbols}});
  addEntries(plan, facts, printed, json);
  return jsonText(json);
}

} // namespace hpc::plan
