// What changes logits before a token is chosen, as Hugging Face's LogitsProcessor classes do it: the same order, and the same f32 arithmetic
// to the bit. A token that is ruled out gets -infinity. No function sorts a whole vocabulary.
#pragma once

#include "runtime/generate/GenerationOptions.h"

namespace hpc::generate {

/// All that `options` ask for, in Hugging Face's order: repetition penalty, minimum lengths, and with sampling temperature, top-k, top-p.
/// `sequence`: the prompt, of `promptLength` tokens, and what followed. `scores` [vocabulary]: logits, or log probabilities of beam search.
void processLogits(const GenerationOptions &options, const std::vector<int64_t> &sequence, int64_t promptLength, float *scores, int64_t vocabulary);

/// Keeps the k largest, and all that equal the last of them. k >= 1.
void keepTopK(int64_t k, float *scores, int64_t vocabulary);

/// Rules out the least likely tokens, as long as their probabilities sum to at most 1 - p: the token at which the rest reaches p stays.
/// One token stays always; of equal ones the last stays longest. 0 < p < 1.
void keepTopP(double p, float *scores, int64_t vocabulary);

} // namespace hpc::generate
