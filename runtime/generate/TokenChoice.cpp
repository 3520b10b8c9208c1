#include "runtime/generate/TokenChoice.h"

#include "runtime/base/NumberText.h"
#include "runtime/base/Philox.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace hpc::generate {

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr int64_t lanes = 16;

Status checkLogits(const float *logits, int64_t vocabulary) {
  const auto place = std::find_if(logits, logits + vocabulary, [](float logit) { return !(logit < infinite); });
  if (place != logits + vocabulary)
    return Status::error(ErrorKind::Model, "the logit of token " + std::to_string(place - logits) + " is " + numberText(*place) +
                                               "; check the weights, and with --dtype=bf16 try f32");
  if (largestScore(logits, vocabulary) == -infinite)
    return Status::error(ErrorKind::Model, "the logits of all tokens are -inf; check the weights");
  return Status::success();
}

float largestScore(const float *scores, int64_t vocabulary) {
  float largest[lanes];
  std::fill(largest, largest + lanes, -infinite);
  int64_t token = 0;
  for (; token + lanes <= vocabulary; token += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      largest[lane] = scores[token + lane] > largest[lane] ? scores[token + lane] : largest[lane];
  for (; token < vocabulary; ++token)
    largest[0] = std::max(largest[0], scores[token]);
  return *std::max_element(largest, largest + lanes);
}

double exponentials(const float *scores, int64_t vocabulary, float *result) {
  const float largest = largestScore(scores, vocabulary);
  double sum = 0;
  for (int64_t token = 0; token < vocabulary; ++token)
    sum += result[token] = scores[token] == -infinite ? 0 : std::exp(scores[token] - largest);
  return sum;
}

int64_t largestToken(const float *scores, int64_t vocabulary) {
  return std::find(scores, scores + vocabulary, largestScore(scores, vocabulary)) - scores;
}

int64_t drawnToken(const float *scores, int64_t vocabulary, double uniform) {
  std::vector<float> weights(vocabulary);
  double rest = exponentials(scores, vocabulary, weights.data()) * uniform;
  int64_t drawn = 0;
  for (int64_t token = 0; token < vocabulary; ++token) {
    if (weights[token] == 0)
      continue;
    drawn = token; // rounding may leave a rest after the last
    rest -= weights[token];
    if (rest < 0)
      break;
  }
  return drawn;
}

double uniformNumber(uint64_t seed, uint64_t sequence, int64_t position) {
  constexpr uint32_t site = 0x746F6B65; // no dropout of a model has it
  const philox::Counter words =
      philox::philox4x32({uint32_t(position), uint32_t(sequence), uint32_t(sequence >> 32), site}, {uint32_t(seed), uint32_t(seed >> 32)});
  return double((uint64_t(words[0]) << 21) | (words[1] >> 11)) * 0x1p-53;
}

} // namespace hpc::generate
