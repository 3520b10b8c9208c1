// Beam search, as Hugging Face's GenerationMixin._beam_search does it (transformers 5): the same f32 arithmetic, the same candidates (beams
// times one more than the end tokens, at least two), the same heuristic that ends it. Of equal scores the first stays first.
#pragma once

#include "runtime/generate/Continuations.h"

namespace hpc::generate {

std::unique_ptr<Continuation> makeBeamSearch(const GenerationOptions &options, const std::vector<int64_t> &prompt, const StopTest &stops);

} // namespace hpc::generate
