#include "runtime/generate/LogitsProcessors.h"

#include "runtime/generate/TokenChoice.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

namespace hpc::generate {

constexpr float ruledOut = -std::numeric_limits<float>::infinity();

static void penalizeRepetition(float penalty, const std::vector<int64_t> &sequence, float *scores) {
  std::vector<float> penalized(sequence.size()); // first all, then written: a token that repeats is penalized once
  for (size_t i = 0; i < sequence.size(); ++i) {
    const float score = scores[sequence[i]];
    penalized[i] = score < 0 ? score * penalty : score / penalty;
  }
  for (size_t i = 0; i < sequence.size(); ++i)
    scores[sequence[i]] = penalized[i];
}

void keepTopK(int64_t k, float *scores, int64_t vocabulary) {
  if (k >= vocabulary)
    return;
  // A heap of the k largest is quick as long as few scores enter it; with many, a selection is quicker.
  std::vector<float> largest(k);
  if (k < vocabulary / 16) {
    std::partial_sort_copy(scores, scores + vocabulary, largest.begin(), largest.end(), std::greater<float>());
  } else {
    largest.assign(scores, scores + vocabulary);
    std::nth_element(largest.begin(), largest.begin() + k - 1, largest.end(), std::greater<float>());
  }
  const float least = largest[k - 1];
  for (int64_t token = 0; token < vocabulary; ++token)
    scores[token] = scores[token] < least ? ruledOut : scores[token];
}

/// Orders probabilities roughly: by exponent and three bits of the fraction.
static size_t probabilityClass(float probability) {
  uint32_t bits;
  std::memcpy(&bits, &probability, sizeof bits);
  return bits >> 20;
}

void keepTopP(double p, float *scores, int64_t vocabulary) {
  // 1. Probabilities as softmax in f32 has them, and their sums in double, as torch.cumsum accumulates.
  std::vector<float> probabilities(vocabulary);
  const float sum = float(exponentials(scores, vocabulary, probabilities.data()));
  std::vector<double> classSums(probabilityClass(1) + 1);
  for (float &probability : probabilities) {
    probability /= sum;
    classSums[probabilityClass(probability)] += probability;
  }
  double total = 0;
  for (double classSum : classSums)
    total += classSum;

  // 2. The class with the least likely token that stays. A token stays if it and all that are less likely sum to more than `limit`.
  const float limit = float(1 - p);
  size_t least = probabilityClass(*std::max_element(probabilities.begin(), probabilities.end()));
  double above = 0; // the sum of what is more likely
  while (least > 0 && float(total - above - classSums[least]) > limit)
    above += classSums[least--];

  // 3. Only this class is sorted, the most likely first.
  std::vector<int64_t> tokens;
  for (int64_t token = 0; token < vocabulary; ++token) {
    const size_t ownClass = probabilityClass(probabilities[token]);
    if (ownClass == least)
      tokens.push_back(token);
    else if (ownClass < least)
      scores[token] = ruledOut;
  }
  std::sort(tokens.begin(), tokens.end(), [&](int64_t a, int64_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a > b; });
  for (int64_t token : tokens) {
    if (above > 0 && !(float(total - above) > limit))
      scores[token] = ruledOut;
    above += probabilities[token];
  }
}

void processLogits(const GenerationOptions &options, const std::vector<int64_t> &sequence, int64_t promptLength, float *scores, int64_t vocabulary) {
  const int64_t length = int64_t(sequence.size());
  if (options.repetitionPenalty != 1)
    penalizeRepetition(float(options.repetitionPenalty), sequence, scores);
  if (length < options.minLength || length - promptLength < options.minNewTokens)
    for (int64_t token : options.eos)
      scores[token] = ruledOut;
  if (options.strategy != Strategy::Sampling)
    return;
  if (options.temperature != 1)
    for (int64_t token = 0; token < vocabulary; ++token)
      scores[token] /= float(options.temperature);
  if (options.topK != 0)
    keepTopK(options.topK, scores, vocabulary);
  if (options.topP < 1)
    keepTopP(options.topP, scores, vocabulary);
}

} // namespace hpc::generate
