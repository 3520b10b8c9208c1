// How large the terms are that an op adds up for each element of a result: what bounds the rounding errors of a sum is
// their size, not the sum's. Private to compiler/Interpreter.
#pragma once

#include "compiler/Interpreter/Interpreter.h"

namespace hpc::interpreter {

struct SummedTerms {
  int64_t count = 1;              ///< terms of an element
  std::vector<double> magnitudes; ///< of each element: the sum of the terms' magnitudes or a bound of it; empty: the op sums nothing
};

/// Of the op's numbered result. A reduction's are those of the operands' magnitudes; a product's are bounded by norms
/// (Cauchy-Schwarz), which costs no second product and exceeds it by 1.6 for normal numbers. Sums of two are elementwise ops, and none.
Expected<SummedTerms> summedTerms(Operation *op, ArrayRef<const Tensor *> operands, unsigned result);

} // namespace hpc::interpreter
