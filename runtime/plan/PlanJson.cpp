// The facts of a plan as JSON, keys in the order of the text form. Names and paths of a model may hold bytes that are
// not UTF-8; they are replaced rather than refused.
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanPrinter.h"
#include "runtime/plan/Schedule.h"

#include <nlohmann/json.hpp>

namespace hpc::plan {

namespace {

using Json = nlohmann::ordered_json;

Json ports(const std::vector<Port> &ports) {
  Json list = Json::array();
  for (const Port &port : ports)
    list.push_back({{"name", port.name}, {"dtype", hpc::name(port.dtype)}, {"shape", port.shape}});
  return list;
}

Json tables(const std::vector<ByCoord> &tables) {
  Json list = Json::array();
  for (const ByCoord &table : tables)
    list.push_back(table.values);
  return list;
}

Json weightJson(const Plan &plan, const WeightBinding &binding) {
  const Tensor &tensor = plan.tensors[binding.tensor];
  const Slice &slice = binding.slice;
  return {{"tensor", tensor.name},
          {"dtype", hpc::name(tensor.dtype)},
          {"shape", tensor.shape},
          {"buffer", binding.buffer},
          {"view", slice.view},
          {"permutation", slice.permutation},
          {"start", tables(slice.start)},
          {"extent", tables(slice.extent)},
          {"box", slice.box},
          {"held", sliceText(plan, slice, tensor.shape)}};
}

Json stageJson(const Plan &plan, const PlanFacts &facts, size_t index) {
  const Stage &stage = plan.stages[index];
  const MemoryFacts &memory = facts.memory[index];
  Json json;
  json["ranks"] = {int64_t(index) * plan.ranksPerStage(), (int64_t(index) + 1) * plan.ranksPerStage() - 1};
  json["memory_per_rank"] = {{"weight", memory.weight},
                             {"state", memory.state},
                             {"slot", memory.slot},
                             {"temp", memory.temp},
                             {"total", memory.total()}};
  json["gemm_flops_per_step"] = facts.gemmFlops[index];
  json["buffers"] = Json::array();
  for (const Buffer &buffer : stage.buffers)
    json["buffers"].push_back({{"name", buffer.name},
                               {"memory", name(buffer.memory)},
                               {"dtype", hpc::name(buffer.dtype)},
                               {"box", buffer.box},
                               {"bytes", buffer.bytes},
                               {"offset", buffer.offset},
                               {"slots", buffer.slots},
                               {"slot_stride", buffer.slotStride}});
  json["weights"] = Json::array();
  for (const WeightBinding &binding : stage.weights)
    json["weights"].push_back(weightJson(plan, binding));
  json["programs"] = Json::array();
  for (const Program &program : stage.programs) {
    Json instructions = Json::array();
    for (const Instruction &instruction : program.instructions)
      instructions.push_back({{"kind", actionName(instruction.action)},
                              {"node", instruction.node},
                              {"text", instructionLine(plan, stage, instruction)}});
    json["programs"].push_back({{"name", program.name}, {"instructions", instructions}});
  }
  json["schedule"] = formatSchedule(scheduleOf(stage));
  return json;
}

Json trafficJson(const Plan &plan, const TrafficFacts &traffic) {
  const Program &program = plan.stages[traffic.stage].programs[traffic.program];
  const Action &action = program.instructions[traffic.instruction].action;
  Json json = {{"stage", traffic.stage},
               {"program", program.name},
               {"instruction", traffic.instruction},
               {"kind", actionName(action)}};
  const Reason *reason;
  if (const auto *collective = std::get_if<Collective>(&action)) {
    json["axes"] = collective->axes;
    json["groups"] = traffic.groups;
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

} // namespace

std::string printPlanJson(const Plan &plan, const PlanFacts &facts) {
  Json json;
  json["model"] = plan.model;
  json["version"] = {majorVersion, minorVersion};
  json["axes"] = Json::array();
  for (const Axis &axis : plan.axes)
    json["axes"].push_back({{"name", axis.name}, {"size", axis.size}});
  json["ranks"] = plan.worldSize();
  json["micro_batches"] = plan.microBatches;
  json["inputs"] = ports(plan.inputs);
  json["outputs"] = ports(plan.outputs);
  json["code_bytes"] = plan.code.size();
  json["cpu_features"] = plan.cpuFeatures;
  json["stages"] = Json::array();
  for (size_t s = 0; s < plan.stages.size(); ++s)
    json["stages"].push_back(stageJson(plan, facts, s));
  json["collectives"] = Json::array();
  for (const TrafficFacts &traffic : facts.collectives)
    json["collectives"].push_back(trafficJson(plan, traffic));
  json["transfers"] = Json::array();
  for (const TrafficFacts &traffic : facts.transfers)
    json["transfers"].push_back(trafficJson(plan, traffic));
  json["time_units"] = facts.timeline.length;
  json["bubble"] = facts.timeline.bubble();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace hpc::plan
