#include "tools/hpc-generate/StrategyFlags.h"

namespace hpc {

using generate::GenerationOptions;
using generate::Strategy;

static Status strategyUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

namespace {
/// A flag that one strategy alone reads.
struct OwnFlag {
  const char *name;
  Strategy strategy;
};
} // namespace

static constexpr OwnFlag ownFlags[] = {{"beams", Strategy::Beam}, {"length-penalty", Strategy::Beam}, {"early-stopping", Strategy::Beam},
                                       {"temperature", Strategy::Sampling}, {"top-k", Strategy::Sampling}, {"top-p", Strategy::Sampling}, {"seed", Strategy::Sampling}};

/// The strategy of the first flag that only one reads, where none is named.
static Expected<Strategy> strategyOf(const Arguments &arguments) {
  std::optional<Strategy> strategy = generate::parseStrategy(arguments.text("strategy"));
  const char *from = nullptr;
  for (const OwnFlag &flag : ownFlags) {
    if (!arguments.has(flag.name))
      continue;
    if (strategy && *strategy != flag.strategy)
      return strategyUsage(std::string("--") + flag.name + " is of --strategy=" + generate::name(flag.strategy) + ", " +
                           (from ? "and --" + std::string(from) + " of --strategy=" + generate::name(*strategy) : "which is " + std::string(generate::name(*strategy)) + " here") +
                           "; leave one of them out");
    if (!strategy) {
      strategy = flag.strategy;
      from = flag.name;
    }
  }
  return strategy.value_or(Strategy::Greedy);
}

Expected<GenerationOptions> readStrategy(const Arguments &arguments, const text::Tokenizer *tokenizer) {
  GenerationOptions options;
  Expected<Strategy> strategy = strategyOf(arguments);
  HPC_RETURN_IF_ERROR(strategy.status());
  options.strategy = *strategy;
  for (auto [flag, field] : {std::pair("max-new-tokens", &options.maxNewTokens), {"min-length", &options.minLength}, {"min-new-tokens", &options.minNewTokens},
                             {"top-k", &options.topK}, {"beams", &options.beams}, {"num-return-sequences", &options.returnSequences}})
    *field = *arguments.whole(flag);
  for (auto [flag, field] : {std::pair("repetition-penalty", &options.repetitionPenalty), {"temperature", &options.temperature}, {"top-p", &options.topP},
                             {"length-penalty", &options.lengthPenalty}})
    *field = *arguments.real(flag);
  options.seed = uint64_t(*arguments.whole("seed"));
  options.earlyStopping = *generate::parseEarlyStopping(arguments.text("early-stopping"));
  for (const std::string &id : arguments.all("end-token"))
    options.eos.push_back(std::stoll(id));
  if (options.eos.empty() && tokenizer && tokenizer->end())
    options.eos.push_back(*tokenizer->end());
  for (const std::string &stop : arguments.all("stop"))
    if (stop.empty())
      return strategyUsage("--stop= is an empty text, which every answer has; leave it out");
  if (arguments.has("stop") && !tokenizer)
    return strategyUsage("--stop is about the text of answers, and --ids gives ids; leave it out, or give --end-token=ID");
  return options;
}

} // namespace hpc
