// One token from the scores of a vocabulary: the largest, or one by chance. Loops over a vocabulary are here, written so that compilers
// vectorize them.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>

namespace hpc::generate {

/// Error (Model): NaN or +infinity, or -infinity alone. -infinity rules a token out.
Status checkLogits(const float *logits, int64_t vocabulary);

float largestScore(const float *scores, int64_t vocabulary);

/// exp(score - largest) into `result` [vocabulary], as f32; returns their sum.
double exponentials(const float *scores, int64_t vocabulary, float *result);

/// The first of the largest.
int64_t largestToken(const float *scores, int64_t vocabulary);

/// The token at which the probabilities softmax(scores), summed in the order of the vocabulary, exceed `uniform`, a number of [0, 1).
int64_t drawnToken(const float *scores, int64_t vocabulary, double uniform);

/// A number of [0, 1) for a position of a sequence: the sequences of a run are counted from 0, the positions from their prompts' start.
double uniformNumber(uint64_t seed, uint64_t sequence, int64_t position);

} // namespace hpc::generate
