// How the tokens after a prompt are chosen: names, defaults and meaning are those of Hugging Face's GenerationConfig. Only top-k differs:
// its default keeps the whole vocabulary.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpc::generate {

enum class Strategy : uint8_t { Greedy, Sampling, Beam };

/// "greedy", "sampling", "beam", and back.
const char *name(Strategy strategy);
std::optional<Strategy> parseStrategy(const std::string &name);

/// When a beam search ends, once as many sequences as beams have ended.
enum class EarlyStopping : uint8_t {
  No,    ///< when the best running beam, at its length now, scores below all ended ones
  Yes,   ///< at once
  Never, ///< when no running beam can come to score above an ended one
};

/// "no", "yes", "never", and back.
const char *name(EarlyStopping stopping);
std::optional<EarlyStopping> parseEarlyStopping(const std::string &name);

struct GenerationOptions {
  Strategy strategy = Strategy::Greedy;
  int64_t maxNewTokens = 20;    ///< at least 1
  int64_t minLength = 0;        ///< no end token before a sequence has that many tokens, prompt included
  int64_t minNewTokens = 0;     ///< the same without the prompt
  double repetitionPenalty = 1; ///< above 0; above 1, tokens of the sequence become less likely
  std::vector<int64_t> eos;     ///< the tokens that end a sequence

  // of sampling
  double temperature = 1;  ///< above 0; divides the logits
  int64_t topK = 0;        ///< keeps the k largest logits, and what equals the last; 0: all
  double topP = 1;         ///< above 0, at most 1: keeps the most likely tokens until their probabilities sum to this
  uint64_t seed = 0;

  // of beam search
  int64_t beams = 4; ///< at least 2
  double lengthPenalty = 1; ///< score = sum of log probabilities / (new tokens)^penalty; above 0 favours long sequences
  EarlyStopping earlyStopping = EarlyStopping::No;

  int64_t returnSequences = 1; ///< of sampling: each is drawn alone; of beam search: the best, at most `beams`

  /// Rows of a batch that one prompt occupies.
  int64_t rowsPerPrompt() const;
  /// Error (Usage): a value out of range, an option that the strategy does not read, a token beyond the vocabulary.
  Status check(int64_t vocabulary) const;
};

} // namespace hpc::generate
