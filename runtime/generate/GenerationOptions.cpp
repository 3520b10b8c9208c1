#include "runtime/generate/GenerationOptions.h"

#include "runtime/base/NumberText.h"

#include <algorithm>
#include <cmath>

namespace hpc::generate {

constexpr const char *strategyNames[] = {"greedy", "sampling", "beam"};
constexpr const char *earlyStoppingNames[] = {"no", "yes", "never"};

template <typename Value, size_t count> static std::optional<Value> parseName(const char *const (&names)[count], const std::string &text) {
  for (size_t i = 0; i < count; ++i)
    if (text == names[i])
      return Value(i);
  return std::nullopt;
}

const char *name(Strategy strategy) { return strategyNames[size_t(strategy)]; }
std::optional<Strategy> parseStrategy(const std::string &text) { return parseName<Strategy>(strategyNames, text); }
const char *name(EarlyStopping stopping) { return earlyStoppingNames[size_t(stopping)]; }
std::optional<EarlyStopping> parseEarlyStopping(const std::string &text) { return parseName<EarlyStopping>(earlyStoppingNames, text); }

int64_t GenerationOptions::rowsPerPrompt() const {
  return strategy == Strategy::Beam ? beams : strategy == Strategy::Sampling ? returnSequences : 1;
}

static Status optionsUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

namespace {
/// An option that one strategy reads, and whether it is given.
struct Reader {
  const char *flag;
  bool set;
  Strategy strategy;
};
} // namespace

Status GenerationOptions::check(int64_t vocabulary) const {
  const auto integer = [](const char *flag, int64_t value, int64_t least) {
    return value >= least ? Status::success() : optionsUsage(std::string(flag) + "=" + std::to_string(value) + ": must be at least " + std::to_string(least));
  };
  const auto above0 = [](const char *flag, double value, const char *remedy) {
    return std::isfinite(value) && float(value) > 0 ? Status::success() : optionsUsage(std::string(flag) + "=" + numberText(value) + ": must be above 0; " + remedy);
  };
  HPC_RETURN_IF_ERROR(integer("--max-new-tokens", maxNewTokens, 1));
  HPC_RETURN_IF_ERROR(integer("--min-length", minLength, 0));
  HPC_RETURN_IF_ERROR(integer("--min-new-tokens", minNewTokens, 0));
  HPC_RETURN_IF_ERROR(integer("--top-k", topK, 0));
  HPC_RETURN_IF_ERROR(integer("--beams", beams, 2));
  HPC_RETURN_IF_ERROR(integer("--num-return-sequences", returnSequences, 1));
  HPC_RETURN_IF_ERROR(above0("--repetition-penalty", repetitionPenalty, "1 changes nothing"));
  HPC_RETURN_IF_ERROR(above0("--temperature", temperature, "--strategy=greedy takes the most likely token"));
  if (!(topP > 0 && topP <= 1))
    return optionsUsage("--top-p=" + numberText(topP) + ": must be above 0 and at most 1; 1 keeps all tokens");
  if (!std::isfinite(lengthPenalty))
    return optionsUsage("--length-penalty=" + numberText(lengthPenalty) + ": must be a finite number; 0 leaves scores as they are");
  if (minNewTokens > maxNewTokens)
    return optionsUsage("--min-new-tokens=" + std::to_string(minNewTokens) + ": exceeds --max-new-tokens=" + std::to_string(maxNewTokens) + "; raise the latter");

  if (minLength > 0 && minNewTokens > 0)
    return optionsUsage("--min-length=" + std::to_string(minLength) + ": --min-new-tokens=" + std::to_string(minNewTokens) + " stands for it; leave one out");

  for (const Reader &reader : {Reader{"--temperature", temperature != 1, Strategy::Sampling}, Reader{"--top-k", topK != 0, Strategy::Sampling},
                               Reader{"--top-p", topP != 1, Strategy::Sampling}, Reader{"--length-penalty", lengthPenalty != 1, Strategy::Beam},
                               Reader{"--early-stopping", earlyStopping != EarlyStopping::No, Strategy::Beam}})
    if (reader.set && reader.strategy != strategy)
      return optionsUsage(std::string(reader.flag) + ": --strategy=" + name(strategy) + " does not read it; choose --strategy=" + name(reader.strategy) + " or leave it out");
  if (strategy == Strategy::Greedy && returnSequences != 1)
    return optionsUsage("--num-return-sequences=" + std::to_string(returnSequences) + ": --strategy=greedy has one answer; choose --strategy=sampling or beam");
  if (strategy == Strategy::Beam && returnSequences > beams)
    return optionsUsage("--num-return-sequences=" + std::to_string(returnSequences) + ": a search with --beams=" + std::to_string(beams) +
                        " has at most as many answers; raise --beams");
  if (strategy == Strategy::Beam && vocabulary < std::max<int64_t>(2, 1 + int64_t(eos.size())))
    return optionsUsage("--strategy=beam: a vocabulary of " + std::to_string(vocabulary) + " tokens, " + std::to_string(eos.size()) +
                        " of which end a sequence, leaves nothing to continue with; choose --strategy=greedy");

  for (size_t i = 0; i < eos.size(); ++i) {
    if (eos[i] < 0 || eos[i] >= vocabulary)
      return optionsUsage("end token " + std::to_string(eos[i]) + ": the model's vocabulary is 0 to " + std::to_string(vocabulary - 1) + "; name a token of the model");
    if (std::find(eos.begin(), eos.begin() + i, eos[i]) != eos.begin() + i)
      return optionsUsage("end token " + std::to_string(eos[i]) + ": is named twice; name it once");
  }
  if ((minLength > 0 || minNewTokens > 0) && eos.empty())
    return optionsUsage(std::string(minLength > 0 ? "--min-length" : "--min-new-tokens") + ": delays end tokens, and there are none; name one or leave it out");
  return Status::success();
}

} // namespace hpc::generate
