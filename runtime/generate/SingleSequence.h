// One sequence that nothing competes with: the most likely token each time, or one drawn by chance.
#pragma once

#include "runtime/generate/Continuations.h"

namespace hpc::generate {

/// What ends a sequence whose new tokens are `tokens`, if anything.
std::optional<FinishReason> finishReason(const GenerationOptions &options, const StopTest &stops, const std::vector<int64_t> &tokens);

/// `number`: of this sequence among all of a run.
std::unique_ptr<Continuation> makeSingleSequence(const GenerationOptions &options, const std::vector<int64_t> &prompt, int64_t number, const StopTest &stops);

} // namespace hpc::generate
