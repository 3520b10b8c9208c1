// A plan for generation: the entries prefill, decode and reorder of one plan, from a graph of whole sequences. Decoding is compiled first, as
// any plan is; the others follow from it.
#pragma once

#include "passes/Driver/Compilation.h"
#include "passes/Schedule/MergedEntries.h"

namespace hpc {

/// The largest divisor of the length that is at most `most`; `most` 0: 256, up to which a longer chunk makes products cheaper (docs/heuristics.md).
int64_t prefillChunkOf(int64_t maxLength, int64_t most);

/// The request for decoding: a step of one position. Its options have a maxLength.
CompileRequest decodeRequest(CompileRequest request);

struct Generation {
  std::unique_ptr<Compilation> prefill; ///< of chunks, in the layout of decoding
  MergedPlan merged;
  plan::PlanFacts facts;
};

/// Needs makePlan of `decode`, which was made of decodeRequest, and its context. Errors: those of a compilation; Capacity, where the entries
/// together take more than --memory allows.
Expected<Generation> makeGeneration(const Compilation &decode, MLIRContext &context, DiagnosticPrinter &diagnostics);

/// Compares the entries with the model and says how close they are. Both were compiled with `request.verify`.
Expected<std::string> verify(Generation &generation, Compilation &decode);

/// The line of --explain about the caches: how many of which shapes, all bytes, and what a rank of each stage holds.
std::string cachesText(const plan::Plan &plan);

} // namespace hpc
