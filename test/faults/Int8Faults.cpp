// Ways of breaking what a plan says of weights in int8: codes and scales that are not each other's are found by running it,
// forms that their buffers cannot hold by the plan's check.
#include "test/faults/PlanFault.h"

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::test;

namespace {

Layout oddInt8() {
  Layout layout = oddLayout();
  layout.options.weights = "int8";
  return layout;
}

Binding &int8(Plan &plan, const std::string &name, Int8Form form) {
  for (Binding &binding : plan.stages[1].bindings)
    if (const auto *int8 = std::get_if<Int8Weight>(&binding.start))
      if (int8->form == form && plan.weights[size_t(int8->weight)].name == name)
        return binding;
  ADD_FAILURE() << "nothing in int8 of " << name;
  std::exit(1);
}
constexpr const char *square = "transformer.h.2.attn.c_proj.weight"; // [40, 40], rows cut (5@tp, 8)
constexpr const char *tall = "transformer.h.2.mlp.c_proj.weight";    // [72, 40], likewise summed over ranks
constexpr const char *wide = "transformer.h.2.mlp.c_fc.weight";      // [40, 72], columns cut

/// As many scales, of another weight.
void otherScales(Plan &plan) {
  Binding &own = int8(plan, square, Int8Form::Scales), &other = int8(plan, tall, Int8Form::Scales);
  own.start = other.start;
  own.slice = other.slice;
}
/// Lines run along the other dim, of codes alone.
void otherLines(Plan &plan) { std::get<Int8Weight>(int8(plan, square, Int8Form::Codes).start).along = 1; }
/// Rank 0 has the scales of rank 1's columns and the other way round.
void swapScales(Plan &plan) {
  ByCoord &start = int8(plan, wide, Int8Form::Scales).slice.start[0], &extent = int8(plan, wide, Int8Form::Scales).slice.extent[0];
  ASSERT_EQ(start.values.size(), 2u);
  std::swap(start.values[0], start.values[1]);
  if (extent.values.size() == 2)
    std::swap(extent.values[0], extent.values[1]);
}
void dropScales(Plan &plan) { int8(plan, square, Int8Form::Scales).start = Number{1}; }
void valuesAsCodes(Plan &plan) { std::get<Int8Weight>(int8(plan, square, Int8Form::Codes).start).form = Int8Form::Values; }
void codesAsFloats(Plan &plan) {
  const int32_t buffer = int8(plan, square, Int8Form::Codes).buffer;
  for (Instruction &instruction : program(plan, 1, "forward").instructions)
    if (auto *gemm = std::get_if<Gemm>(&instruction.action); gemm && gemm->b.place.buffer == buffer)
      gemm->b.dtype = DType::F32;
}
void sumInDouble(Plan &plan) {
  const int32_t buffer = int8(plan, square, Int8Form::Codes).buffer;
  for (Instruction &instruction : program(plan, 1, "forward").instructions)
    if (auto *gemm = std::get_if<Gemm>(&instruction.action); gemm && gemm->b.place.buffer == buffer)
      gemm->accumulate = DType::F64;
}

const FaultOfPlan faults[] = {
    {"ScalesOfAnotherWeight", otherScales, {}, {"plan differs at ONNX node 'node_addmm_9'"}, oddInt8},
    {"LinesAlongTheOtherDim", otherLines, {}, {"plan differs at ONNX node 'node_addmm_9'"}, oddInt8},
    {"ScalesOfOtherColumns", swapScales, {}, {"plan differs at ONNX node 'node_"}, oddInt8},
    {"NoScales", dropScales, {}, {"plan differs at ONNX node 'node_addmm_9'"}, oddInt8},
    {"ValuesInABufferOfCodes", valuesAsCodes, {"a buffer of i8 does not take its values"}, {}, oddInt8},
    {"CodesReadAsFloats", codesAsFloats, {"gemm"}, {}, oddInt8},
    {"SumsInDouble", sumInDouble, {"a product with i8; operands and sum are floats, but b may be i8"}, {}, oddInt8},
};

INSTANTIATE_TEST_SUITE_P(Int8, PlanFault, testing::ValuesIn(faults),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
