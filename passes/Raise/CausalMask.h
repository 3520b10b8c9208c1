// Recognises comparisons of positions that are causal masks.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// A part of a condition, or its negation.
struct Conjunct {
  Value condition;
  bool isNegated = false;
};

/// The conditions that all hold exactly where `condition` (negated: its opposite) does: `and`, `not`, `or` under `not`
/// are taken apart.
SmallVector<Conjunct> conjunctsOf(Value condition, bool isNegated);

/// o, if the conjunct is j <= i + o in the last two coordinates (i, j) and depends on no other.
std::optional<int64_t> causalOffset(const Conjunct &conjunct);

/// Whether the conjunct is j >= i - w for some w of 0 or more, and each query sees a key by it: with causal masks beside it, too.
bool isWindow(const Conjunct &conjunct);

} // namespace hpc
