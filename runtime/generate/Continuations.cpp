#include "runtime/generate/Continuations.h"

#include "runtime/generate/BeamSearch.h"
#include "runtime/generate/SingleSequence.h"

namespace hpc::generate {

std::vector<std::unique_ptr<Continuation>> makeContinuations(const GenerationOptions &options, const Prompt &prompt, const StopTest &stops) {
  std::vector<std::unique_ptr<Continuation>> result;
  if (options.strategy == Strategy::Beam)
    result.push_back(makeBeamSearch(options, prompt.tokens, stops));
  else
    for (int64_t i = 0; i < options.returnSequences; ++i)
      result.push_back(makeSingleSequence(options, prompt.tokens, prompt.number * options.returnSequences + i, stops));
  return result;
}

} // namespace hpc::generate
