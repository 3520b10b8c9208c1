// The plan that an .onnx model needs for a call's prompts, by the compiler. Sees no MLIR here.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"
#include "tools/flags/Arguments.h"

namespace hpc {

/// What prompts and answers need.
struct GenerationSizes {
  int64_t rows = 1;      ///< of all answers, or beams
  int64_t rowsOfOne = 1; ///< which have to be in one batch
  int64_t positions = 1; ///< of the longest prompt and its answer
  int64_t prompt = 1;    ///< ids of the longest prompt
  std::string place;     ///< of it, and what it needs, for the message of a model that has no room
};

/// The number of ranks, before anything is compiled.
Expected<int64_t> ranksOfGeneration(const Arguments &arguments);

/// Files of weights are named from the current folder. Remarks and diagnostics are printed; an error without a message has been printed.
Expected<plan::Plan> makeGenerationPlan(const Arguments &arguments, const GenerationSizes &sizes);

} // namespace hpc
