// The dependencies of the usual pipelines, written down.
#include "runtime/plan/Pipeline.h"

namespace hpc::plan {

Pipeline inferencePipeline(int64_t stages, int64_t chunks, int64_t microBatches) {
  Pipeline pipeline{stages, chunks, microBatches, {}, {}};
  for (int64_t k = 0; k < pipeline.parts(); ++k) {
    ProgramPlace forward = pipeline.placeOf(ProgramKind::Forward, k);
    pipeline.programs.push_back(forward);
    if (k > 0)
      pipeline.dependencies.push_back({pipeline.placeOf(ProgramKind::Forward, k - 1), forward});
  }
  return pipeline;
}

Pipeline trainingPipeline(int64_t stages, int64_t chunks, int64_t microBatches, bool splitsBackward) {
  Pipeline pipeline = inferencePipeline(stages, chunks, microBatches);
  auto need = [&](ProgramPlace before, ProgramPlace after) { pipeline.dependencies.push_back({before, after}); };
  for (int64_t k = pipeline.parts(); k-- > 0;) {
    ProgramPlace backward = pipeline.placeOf(ProgramKind::Backward, k), last = backward;
    pipeline.programs.push_back(backward);
    need(pipeline.placeOf(ProgramKind::Forward, k), backward);
    if (k + 1 < pipeline.parts())
      need(pipeline.placeOf(ProgramKind::Backward, k + 1), backward);
    if (splitsBackward) {
      last = pipeline.placeOf(ProgramKind::WeightGradient, k);
      pipeline.programs.push_back(last);
      need(backward, last);
    }
    need(last, {ProgramKind::Update, last.stage, 0});
  }
  for (int32_t s = 0; s < stages; ++s)
    pipeline.programs.push_back({ProgramKind::Update, s, 0});
  return pipeline;
}

} // namespace hpc::plan
