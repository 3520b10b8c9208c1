// Makes what continues a prompt by greedy choice, sampling or beam search.
#pragma once

#include "runtime/generate/Continuation.h"
#include "runtime/generate/GenerationOptions.h"

#include <functional>
#include <memory>

namespace hpc::generate {

/// Whether the text of these new tokens came, with its last token, to hold a text that ends it (StopTexts).
using StopTest = std::function<bool(const std::vector<int64_t> &newTokens)>;

struct Prompt {
  int64_t number = 0;          ///< among all prompts of a run: sampled numbers depend on it, not on batches
  std::vector<int64_t> tokens; ///< at least one
};

/// Greedy: one continuation. Sampling: `returnSequences` of one row each. Beam search: one of `beams` rows.
/// `options` passed check(); `stops` may be empty.
std::vector<std::unique_ptr<Continuation>> makeContinuations(const GenerationOptions &options, const Prompt &prompt, const StopTest &stops);

} // namespace hpc::generate
