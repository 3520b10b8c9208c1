// The steps: prefill as decoding is laid out, reorder from the states of decoding, one plan of the three.
#include "passes/Driver/Generation.h"

#include "compiler/Sidecar/Sidecar.h"
#include "passes/Driver/VerifyGeneration.h"
#include "passes/Place/Place.h"
#include "passes/Schedule/ReorderEntry.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanPrinter.h"

namespace hpc {

int64_t prefillChunkOf(int64_t maxLength, int64_t most) {
  int64_t chunk = std::min<int64_t>(maxLength, most > 0 ? most : 256);
  while (maxLength % chunk != 0)
    --chunk;
  return chunk;
}

CompileRequest decodeRequest(CompileRequest request) {
  request.options.stepRows = 1;
  request.options.chunkRows = prefillChunkOf(request.options.maxLength, request.prefillChunk);
  request.keepsChoices = true;
  return request;
}

static CompileRequest prefillRequest(const Compilation &decode) {
  CompileRequest request = decode.request;
  request.options.stepRows = request.options.chunkRows;
  request.specText = sidecarText(*decode.chosen);
  request.layouts = CompileRequest::ComparesNone;
  return request;
}

Expected<Generation> makeGeneration(const Compilation &decode, MLIRContext &context, DiagnosticPrinter &diagnostics) {
  Generation generation;
  generation.prefill = std::make_unique<Compilation>(prefillRequest(decode), context, diagnostics);
  generation.prefill->configure = decode.configure;
  for (auto step : {&Compilation::load, &Compilation::runPhases, &Compilation::makePlan})
    HPC_RETURN_IF_ERROR(((*generation.prefill).*step)());
  Expected<plan::Plan> reorder = reorderPlan(decode.lowered->plan);
  HPC_RETURN_IF_ERROR(reorder.status());
  HPC_RETURN_IF_ERROR(placeBuffers(*reorder));
  Expected<MergedPlan> merged = mergeEntries(
      {{"prefill", generation.prefill->lowered->plan}, {"decode", decode.lowered->plan}, {"reorder", std::move(*reorder)}});
  HPC_RETURN_IF_ERROR(merged.status());
  generation.merged = std::move(*merged);
  Expected<plan::PlanFacts> facts = plan::analysePlan(generation.merged.plan);
  if (!facts.ok())
    return Status::error(ErrorKind::Internal, "the plan that was made fails its own check: " + facts.status().message());
  generation.facts = std::move(*facts);
  HPC_RETURN_IF_ERROR(checkPeak(generation.merged.plan, decode.request.options.memory));
  return generation;
}

Expected<std::string> verify(Generation &generation, Compilation &decode) {
  return verifyGeneration({decode.wholeSequences(), generation.prefill->verification(), decode.verification(), generation.merged,
                           generation.prefill->request.options.stepRows, decode.request.options.maxLength});
}

std::string cachesText(const plan::Plan &plan) {
  std::map<std::string, int64_t> counts; // by type and shape
  std::string held;
  int64_t all = 0;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    int64_t ofRank = 0;
    for (const plan::Binding &binding : plan.stages[stage].bindings) {
      if (binding.saved.empty())
        continue;
      const plan::Buffer &buffer = plan.stages[stage].buffers[size_t(binding.buffer)];
      ++counts[hpc::name(buffer.dtype) + plan::shapeText(binding.shape)];
      all += plan::productOf(binding.shape) * byteSize(buffer.dtype);
      ofRank += buffer.bytes * buffer.slots;
    }
    held += (stage ? ", of stage " : "; a rank of stage ") + std::to_string(stage) + " " + plan::bytesText(ofRank);
  }
  std::string text;
  for (const auto &[shape, count] : counts)
    text += (text.empty() ? "caches: " : ", ") + std::to_string(count) + " of " + shape;
  return text.empty() ? "" : text + ", " + countText(all, "byte") + " in all" + held + "\n";
}

} // namespace hpc
