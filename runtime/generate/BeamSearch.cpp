#include "runtime/generate/BeamSearch.h"

#include "runtime/generate/LogitsProcessors.h"
#include "runtime/generate/SingleSequence.h"
#include "runtime/generate/TokenChoice.h"

#include <algorithm>
#include <cmath>

namespace hpc::generate {

namespace {

/// Of sequences that are not to be chosen, as Hugging Face has it: finite, so that what is added still orders nothing above it.
constexpr float rejected = -1e9f;

/// Keeps the largest scores that are offered, in order, the first of equal ones first.
template <typename Scored> class Best {
public:
  explicit Best(size_t count) : count(count) {}
  void offer(Scored scored) {
    if (kept.size() == count && !(scored.score > kept.back().score))
      return;
    if (kept.size() == count)
      kept.pop_back();
    kept.insert(std::upper_bound(kept.begin(), kept.end(), scored, [](const Scored &a, const Scored &b) { return a.score > b.score; }), std::move(scored));
  }
  std::vector<Scored> kept;

private:
  const size_t count;
};

/// A token after a beam.
struct Candidate {
  float score = 0; ///< the sum of the log probabilities of new tokens
  int64_t beam = 0, token = 0;
};

struct Beam {
  float score = 0;             ///< the sum of the log probabilities of new tokens; once it ended, divided by the length factor
  std::vector<int64_t> tokens; ///< new ones
  std::optional<FinishReason> reason;
  int64_t from = 0; ///< the beam that it continues
};

class BeamSearch : public Continuation {
public:
  BeamSearch(const GenerationOptions &options, const std::vector<int64_t> &prompt, const StopTest &stops)
      : options(options), stops(stops), prompt(prompt), running(options.beams), ended(options.beams) {
    // All beams are the prompt yet: only the first one's candidates count.
    for (int64_t beam = 1; beam < options.beams; ++beam)
      running[beam].score = rejected;
    for (int64_t place = 0; place < options.beams; ++place)
      ended.offer({rejected, {}, std::nullopt});
  }

  int64_t rows() const override { return options.beams; }

  Status choose(float *logits, int64_t vocabulary, std::vector<Choice> &next) override {
    HPC_RETURN_IF_ERROR(addLogProbabilities(logits, vocabulary));
    // 1. The best continuations over all beams; enough that as many as there are beams go on, if all others end.
    Best<Candidate> candidates(options.beams * std::max<size_t>(2, 1 + options.eos.size()));
    for (int64_t beam = 0; beam < options.beams; ++beam)
      for (int64_t token = 0; token < vocabulary; ++token)
        candidates.offer({logits[beam * vocabulary + token], beam, token});

    // 2. Those that end may become answers, if they are among the first. The best of the others run on.
    Best<Beam> runOn(options.beams);
    int64_t rank = 0;
    bool allEnd = true;
    for (const Candidate &candidate : candidates.kept) {
      Beam beam{candidate.score, running[candidate.beam].tokens, std::nullopt, candidate.beam};
      beam.tokens.push_back(candidate.token);
      beam.reason = finishReason(options, stops, beam.tokens);
      allEnd &= beam.reason.has_value();
      if (beam.reason && rank < options.beams)
        ended.offer({beam.score / lengthFactor(beam.tokens.size()), beam.tokens, beam.reason});
      if (beam.reason)
        beam.score += rejected;
      runOn.offer(std::move(beam));
      ++rank;
    }
    running = std::move(runOn.kept);
    next.clear();
    for (const Beam &beam : running)
      next.push_back({beam.from, beam.tokens.back()});

    // 3. Whether the search is over.
    const bool full = ended.kept.back().reason.has_value();
    done = allEnd || (full && options.earlyStopping == EarlyStopping::Yes) || !mayImprove();
    return Status::success();
  }

  bool isDone() const override { return done; }

  void end(FinishReason reason) override {
    for (const Beam &beam : running)
      if (beam.score > rejected / 2)
        ended.offer({beam.score / lengthFactor(beam.tokens.size()), beam.tokens, reason});
    done = true;
  }

  std::vector<Answer> answers() const override {
    std::vector<Answer> result;
    for (const Beam &beam : ended.kept)
      if (beam.reason && int64_t(result.size()) < options.returnSequences)
        result.push_back({beam.tokens, beam.score, *beam.reason});
    return result;
  }

private:
  /// Logits [beams, vocabulary] become the processed log probabilities of each token, added to its beam's score.
  Status addLogProbabilities(float *logits, int64_t vocabulary) {
    std::vector<float> scratch(vocabulary);
    std::vector<int64_t> sequence;
    for (const Beam &beam : running) {
      HPC_RETURN_IF_ERROR(checkLogits(logits, vocabulary));
      const float largest = largestScore(logits, vocabulary);
      const float logSum = std::log(float(exponentials(logits, vocabulary, scratch.data())));
      for (int64_t token = 0; token < vocabulary; ++token)
        logits[token] = logits[token] - largest - logSum;
      sequence = prompt;
      sequence.insert(sequence.end(), beam.tokens.begin(), beam.tokens.end());
      processLogits(options, sequence, int64_t(prompt.size()), logits, vocabulary);
      for (int64_t token = 0; token < vocabulary; ++token)
        logits[token] += beam.score;
      logits += vocabulary;
    }
    return Status::success();
  }

  float lengthFactor(size_t newTokens) const { return float(std::pow(double(std::max<size_t>(newTokens, 1)), options.lengthPenalty)); }

  /// Whether the best running beam could come above the worst that ended. Its best score is guessed: of its length now, or of the largest.
  bool mayImprove() const {
    const bool longest = options.earlyStopping == EarlyStopping::Never && options.lengthPenalty > 0;
    const float best = running[0].score / lengthFactor(longest ? size_t(options.maxNewTokens) : running[0].tokens.size());
    return best > ended.kept.back().score;
  }

  const GenerationOptions options;
  const StopTest stops;
  const std::vector<int64_t> prompt;
  std::vector<Beam> running; ///< the best first
  Best<Beam> ended;          ///< empty places have no reason
  bool done = false;
};

} // namespace

std::unique_ptr<Continuation> makeBeamSearch(const GenerationOptions &options, const std::vector<int64_t> &prompt, const StopTest &stops) {
  return std::make_unique<BeamSearch>(options, prompt, stops);
}

} // namespace hpc::generate
