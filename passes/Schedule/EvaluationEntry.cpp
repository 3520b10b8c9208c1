// Needs are followed from the stores of the wanted outputs against the order in which a rank runs, so a weight that is written
// after its last reader needs no writer. What one walk finds (a message, a post) another one follows, until none finds more.
#include "passes/Schedule/EvaluationEntry.h"

#include "runtime/plan/Entries.h"
#include "runtime/plan/Regions.h"

#include <algorithm>
#include <map>
#include <set>

namespace hpc {

namespace {

class NeededInstructions {
public:
  NeededInstructions(const plan::Plan &plan, std::set<int32_t> outputs) : plan(plan), outputs(std::move(outputs)) {
    for (const plan::Stage &stage : plan.stages)
      addStage(stage);
    do {
      found = false;
      for (size_t stage = 0; stage < stages.size(); ++stage)
        walk(plan.stages[stage], stages[stage]);
    } while (found);
  }
  bool has(size_t stage, size_t program, size_t instruction) const { return stages[stage].isNeeded[program][instruction]; }

private:
  using Site = std::pair<size_t, size_t>; ///< program and instruction
  struct StageNeeds {
    plan::Regions regions;
    std::vector<std::vector<std::vector<plan::BufferAccess>>> accesses; ///< by program and instruction
    std::vector<std::vector<bool>> isNeeded;                            ///< likewise
    std::map<Site, std::set<Site>> posts;                               ///< by wait: what it may complete
  };

  void addStage(const plan::Stage &stage) {
    StageNeeds &needs = stages.emplace_back();
    for (const plan::Program &program : stage.programs) {
      needs.accesses.emplace_back();
      needs.isNeeded.emplace_back(program.instructions.size(), false);
      for (const plan::Instruction &instruction : program.instructions) {
        needs.accesses.back().push_back(accessesOf(plan, instruction));
        needs.regions.add(instruction, needs.accesses.back().back());
      }
    }
    needs.regions.finish();
    findPosts(stage, needs);
  }

  /// Several posts share a request, one after the other. What some coordinate or micro-batch skips may not have happened.
  static void findPosts(const plan::Stage &stage, StageNeeds &needs) {
    std::map<std::pair<int32_t, int32_t>, std::set<Site>> open; // by request and slot
    for (const plan::ScheduleStep &step : stage.schedule) {
      const std::vector<plan::Instruction> &instructions = stage.programs[size_t(step.program)].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        const auto *wait = std::get_if<plan::Wait>(&instructions[i].action);
        const int32_t request = wait ? wait->request : plan::postedRequest(instructions[i].action);
        if (request < 0)
          continue;
        const Site site{size_t(step.program), i};
        std::set<Site> &mine = open[{request, step.microBatch % stage.requests[size_t(request)]}];
        if (wait)
          needs.posts[site].insert(mine.begin(), mine.end());
        if (isEverywhere(instructions[i].when, 1))
          mine.clear();
        if (!wait)
          mine.insert(site);
      }
    }
  }

  /// Whatever it writes.
  bool isWanted(const plan::Stage &stage, const Site &site, const StageNeeds &needs) const {
    const plan::Action &action = stage.programs[site.first].instructions[site.second].action;
    if (const auto *store = std::get_if<plan::StoreOutput>(&action))
      return outputs.count(store->output);
    if (const auto *send = std::get_if<plan::Send>(&action))
      return channels.count(send->channel);
    if (const auto *recv = std::get_if<plan::Recv>(&action))
      return channels.count(recv->channel);
    auto posts = needs.posts.find(site);
    return posts != needs.posts.end() && std::any_of(posts->second.begin(), posts->second.end(), [&](const Site &post) {
             return needs.isNeeded[post.first][post.second];
           });
  }

  void note(const plan::Action &action) {
    found = true;
    if (const auto *send = std::get_if<plan::Send>(&action))
      channels.insert(send->channel);
    if (const auto *recv = std::get_if<plan::Recv>(&action))
      channels.insert(recv->channel);
  }

  /// The schedule of a stage, from its end. Live: what is read further on before anything that is needed writes it; a write
  /// makes nothing dead, as it may be one of several.
  void walk(const plan::Stage &stage, StageNeeds &needs) {
    std::set<std::pair<size_t, int32_t>> live; // region and, of a buffer with a copy for each, micro-batch
    for (size_t step = stage.schedule.size(); step-- > 0;) {
      const size_t program = size_t(stage.schedule[step].program);
      const int32_t microBatch = stage.schedule[step].microBatch;
      std::set<size_t> liveHere; // regions of the program's own buffers
      auto eachRegion = [&](const plan::BufferAccess &access, auto visit) {
        const plan::Lifetime lifetime = stage.buffers[size_t(access.ref.buffer)].lifetime;
        for (auto [region, last] = needs.regions.of(access); region < last; ++region)
          visit(region, lifetime == plan::Lifetime::Program, lifetime == plan::Lifetime::MicroBatch ? microBatch : -1);
      };
      const std::vector<plan::Instruction> &instructions = stage.programs[program].instructions;
      for (size_t i = instructions.size(); i-- > 0;) {
        const std::vector<plan::BufferAccess> &accesses = needs.accesses[program][i];
        bool isNeeded = needs.isNeeded[program][i] || isWanted(stage, {program, i}, needs);
        for (const plan::BufferAccess &access : accesses)
          if (access.write)
            eachRegion(access, [&](size_t region, bool isOwn, int32_t copy) {
              isNeeded |= isOwn ? liveHere.count(region) > 0 : live.count({region, copy}) > 0;
            });
        if (!isNeeded)
          continue;
        if (!needs.isNeeded[program][i])
          note(instructions[i].action);
        needs.isNeeded[program][i] = true;
        for (const plan::BufferAccess &access : accesses)
          if (!access.write)
            eachRegion(access, [&](size_t region, bool isOwn, int32_t copy) {
              if (isOwn)
                liveHere.insert(region);
              else
                live.insert({region, copy});
            });
      }
    }
  }

  const plan::Plan &plan;
  const std::set<int32_t> outputs;
  std::vector<StageNeeds> stages;
  std::set<int32_t> channels; ///< of messages that something needed receives
  bool found = false;
};

/// The number of the program of those instructions that are needed; -1 where none is.
int32_t takeProgram(plan::Stage &stage, size_t number, const std::vector<bool> &isNeeded) {
  const size_t count = size_t(std::count(isNeeded.begin(), isNeeded.end(), true));
  if (count == 0 || count == isNeeded.size())
    return count == 0 ? -1 : int32_t(number);
  plan::Program part{stage.programs[number].kind, stage.programs[number].chunk, {}};
  for (size_t i = 0; i < isNeeded.size(); ++i)
    if (isNeeded[i])
      part.instructions.push_back(stage.programs[number].instructions[i]);
  stage.programs.push_back(std::move(part));
  return int32_t(stage.programs.size()) - 1;
}

/// The inputs that programs of an entry load, and those whose data stand for one of them.
std::vector<int32_t> inputsOf(const plan::Plan &plan, const plan::Entry &entry) {
  std::set<int32_t> inputs;
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (const plan::ScheduleStep &step : entry.schedules[s])
      for (const plan::Instruction &instruction : plan.stages[s].programs[size_t(step.program)].instructions)
        if (const auto *load = std::get_if<plan::LoadInput>(&instruction.action)) {
          inputs.insert(load->input);
          const std::string &other = plan.inputs[size_t(load->input)].defaultInput;
          for (size_t i = 0; i < plan.inputs.size() && !other.empty(); ++i)
            if (plan.inputs[i].name == other)
              inputs.insert(int32_t(i));
        }
  return {inputs.begin(), inputs.end()};
}

} // namespace

void addEvaluation(plan::Plan &plan, const std::set<std::string> &outputs) {
  plan::Entry train{plan::trainEntry, plan.microBatches, {}, {}, {}}, evaluate{plan::evaluateEntry, plan.microBatches, {}, {}, {}};
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    train.inputs.push_back(int32_t(i));
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    train.outputs.push_back(int32_t(i));
    if (outputs.count(plan.outputs[i].name))
      evaluate.outputs.push_back(int32_t(i));
  }
  const NeededInstructions needed(plan, {evaluate.outputs.begin(), evaluate.outputs.end()});
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    plan::Stage &stage = plan.stages[s];
    std::vector<int32_t> places;
    for (size_t p = 0, count = stage.programs.size(); p < count; ++p) {
      std::vector<bool> isNeeded;
      for (size_t i = 0; i < stage.programs[p].instructions.size(); ++i)
        isNeeded.push_back(needed.has(s, p, i));
      places.push_back(takeProgram(stage, p, isNeeded));
    }
    std::vector<plan::ScheduleStep> &schedule = evaluate.schedules.emplace_back();
    for (const plan::ScheduleStep &step : stage.schedule)
      if (places[size_t(step.program)] >= 0)
        schedule.push_back({places[size_t(step.program)], step.microBatch});
    train.schedules.push_back(std::move(stage.schedule));
    stage.schedule.clear();
  }
  evaluate.inputs = inputsOf(plan, evaluate);
  plan.microBatches = 1;
  plan.entries = {std::move(train), std::move(evaluate)};
}

} // namespace hpc
