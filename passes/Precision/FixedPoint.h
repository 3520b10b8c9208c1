// Numbers on a grid of powers of two, as f64: sums of such numbers are exact as long as they stay below 2^53 steps of the grid,
// so they have the same bits in whatever order they are taken. Two grids: one by the largest of the numbers that are added, where
// that is known in time, and one that is fixed before there are any numbers.
#pragma once

#include "compiler/Dialect/NN/GradientBuilder.h"

namespace hpc::precision {

/// (`numbers` + `rest` / 2^bits) * `unit` is a tensor, rounded to whole multiples of `unit`, or of `unit` / 2^bits.
struct Scaled {
  Value numbers; ///< f64, whole, below 2^bits
  Value rest;    ///< f64, whole, up to 2^(bits - 1); null where numbers alone are near enough
  Value unit;    ///< f64, a power of two; of size 1 along the dims that are added
};

/// By the largest along `axes`. Not finite: NaN.
Scaled scaleByLargest(GradientBuilder &b, Value tensor, ArrayRef<int64_t> axes, int64_t bits, bool withRest = false);

/// The bits that factors of a sum of `terms` products may have, so that the sum is exact.
int64_t bitsOfFactors(int64_t terms);
/// The same of the terms themselves.
int64_t bitsOfTerms(int64_t terms);

/// A tensor as a sum of words on fixed grids, 40 bits apart, the first the coarsest. Together they hold numbers up to 2^32 times `typical`, and steps of it
/// down to 2^-60 (three words: 2^70 and 2^-56). What is larger is NaN: no sum of `terms` of them can then be promised.
SmallVector<Value> splitIntoWords(GradientBuilder &b, Value tensor, int64_t terms, double typical, int numWords);

/// The sums of the words, as one f32. Each is rounded first: a sum over ranks is complete where it is.
Value joinWords(GradientBuilder &b, ArrayRef<Value> sums);

} // namespace hpc::precision
