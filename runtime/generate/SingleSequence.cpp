#include "runtime/generate/SingleSequence.h"

#include "runtime/generate/LogitsProcessors.h"
#include "runtime/generate/TokenChoice.h"

#include <algorithm>
#include <limits>

namespace hpc::generate {

std::optional<FinishReason> finishReason(const GenerationOptions &options, const StopTest &stops, const std::vector<int64_t> &tokens) {
  if (std::find(options.eos.begin(), options.eos.end(), tokens.back()) != options.eos.end())
    return FinishReason::EndToken;
  if (stops && stops(tokens))
    return FinishReason::StopText;
  if (int64_t(tokens.size()) >= options.maxNewTokens)
    return FinishReason::Length;
  return std::nullopt;
}

namespace {

class SingleSequence : public Continuation {
public:
  SingleSequence(const GenerationOptions &options, const std::vector<int64_t> &prompt, int64_t number, const StopTest &stops)
      : options(options), stops(stops), sequence(prompt), promptLength(int64_t(prompt.size())), number(number) {}

  int64_t rows() const override { return 1; }

  Status choose(float *logits, int64_t vocabulary, std::vector<Choice> &next) override {
    HPC_RETURN_IF_ERROR(checkLogits(logits, vocabulary));
    processLogits(options, sequence, promptLength, logits, vocabulary);
    const int64_t token =
        options.strategy == Strategy::Sampling
            ? drawnToken(logits, vocabulary, uniformNumber(options.seed, uint64_t(number), int64_t(sequence.size())))
            : largestToken(logits, vocabulary);
    if (logits[token] == -std::numeric_limits<float>::infinity())
      return Status::error(ErrorKind::Model, "only end tokens have logits above -inf, and the minimum length forbids them; lower it");
    sequence.push_back(token);
    answer.ids.push_back(token);
    next.assign(1, {0, token});
    if (const std::optional<FinishReason> reason = finishReason(options, stops, answer.ids))
      end(*reason);
    return Status::success();
  }

  bool isDone() const override { return done; }
  void end(FinishReason reason) override {
    answer.reason = reason;
    done = true;
  }
  std::vector<Answer> answers() const override { return {answer}; }

private:
  const GenerationOptions options;
  const StopTest stops;
  std::vector<int64_t> sequence; ///< prompt and answer
  const int64_t promptLength, number;
  Answer answer;
  bool done = false;
};

} // namespace

std::unique_ptr<Continuation> makeSingleSequence(const GenerationOptions &options, const std::vector<int64_t> &prompt, int64_t number, const StopTest &stops) {
  return std::make_unique<SingleSequence>(options, prompt, number, stops);
}

} // namespace hpc::generate
