// Plans with entries, for the tests of whatever reads plans.
#pragma once

#include "SamplePlan.h"

namespace hpc::plan::test {

namespace entries {
enum Stage0 { Forward, Drain, OneForward };
enum Stage1 { Receive, Forward1, OneForward1 };
} // namespace entries

/// The sample, and its first micro-batch alone as an entry of its own with inputs and outputs of half the rows: it shares the
/// receive and the drain, whose tables say nothing of micro-batches, and all buffers.
inline Plan planOfTwo() {
  Plan plan = samplePlan();
  const std::vector<Port> inputs = plan.inputs, outputs = plan.outputs;
  plan.inputs.push_back({inputs[0].name, inputs[0].dtype, {2, 3}});
  plan.outputs.push_back({outputs[0].name, outputs[0].dtype, {2, 7}});
  auto halve = [](Slice &slice) {
    slice.view[0] = 2;
    slice.start[0] = 0;
  };
  Program first = plan.stages[0].programs[entries::Forward], second = plan.stages[1].programs[entries::Forward1];
  auto &load = std::get<LoadInput>(first.instructions[stage0::LoadX].action);
  auto &store = std::get<StoreOutput>(second.instructions[stage1::StoreO].action);
  load.input = store.output = 1;
  halve(load.slice);
  halve(store.slice);
  first.instructions[stage0::GemmH].node = "/one/w0";
  plan.stages[0].programs.push_back(first);
  plan.stages[1].programs.push_back(second);
  Entry two{"two", 2, {0}, {0}, {plan.stages[0].schedule, plan.stages[1].schedule}};
  Entry one{"one",
            1,
            {1},
            {1},
            {{{entries::OneForward, 0}, {entries::Drain, 0}}, {{entries::Receive, 0}, {entries::OneForward1, 0}}}};
  plan.entries = {two, one};
  plan.microBatches = 1;
  for (Stage &stage : plan.stages)
    stage.schedule.clear();
  return plan;
}

/// One rank with a cache of 8 rows: a step takes a row and a position, writes the row there, and gives the row that lies as far
/// from the end.
namespace cache {
enum Buffers { State, Row, Copied };
enum Instructions { LoadRow, Write, Read, Negate, StoreRow };
} // namespace cache
inline Plan planOfCache() {
  Plan plan;
  plan.inputs = {{"position", DType::I64, {}, true}, {"row", DType::F32, {3}}};
  plan.inputs[0].largest = 7;
  plan.outputs = {{"out", DType::F32, {3}}};
  plan.modules = {samplePlan().modules[0]};
  Stage &stage = plan.stages.emplace_back();
  stage.buffers = {buffer("cache", Lifetime::Session, {8, 3}, 0), buffer("row", Lifetime::Program, {3}, 0),
                   buffer("copied", Lifetime::Program, {3}, 64)};
  const Slice whole{{8, 3}, {0, 0}, {8, 3}, {8, 3}}, row{{3}, {0}, {3}, {3}};
  stage.bindings = {{cache::State, whole, Number{0}, "cache", {8, 3}}};
  stage.sessionBytes = stage.workBytes = 128;
  ByCoord at;
  at.scale = 12;
  at.input = 0;
  ByCoord back = at; // from the end: the row 7 - position
  back.values = {84};
  back.scale = -12;
  Kernel relu;
  relu.symbol = "relu";
  relu.args = {{{cache::Copied, 0}, 12, true, false}, {{cache::Row, 0}, 12, false, true}};
  relu.scalars = {at, 5};
  stage.programs = {{ProgramKind::Forward,
                     0,
                     {{LoadInput{1, {cache::Row, 0}, row}, "row"},
                      {Copy{{cache::Row, 0}, {cache::State, 0}, 12, 0, at}, "write"},
                      {Copy{{cache::State, 0}, {cache::Copied, 0}, 12, back, 0}, "read"},
                      {relu, "relu"},
                      {StoreOutput{0, {cache::Row, 0}, row, 1}, "out"}}}};
  plan.entries = {{"step", 1, {0, 1}, {0}, {{{0, 0}}}}};
  return plan;
}

} // namespace hpc::plan::test
