// How far a plan's result of one op may be from the interpreter's, when both read the same operands: what docs/numerics.md
// leaves free (orders of sums, approximations, steps of composites), element by element (Higham, Accuracy and Stability of
// Numerical Algorithms, 2nd ed., 3.1 and 4.2; Higham and Mary 2019 for the root of n).
// Operands that nobody has compared yet carry a bound of their own into the result (Higham, 3.3). Nothing here knows an op:
// how results read operands and what is summed follow from its rule and its structure.
#pragma once

#include "compiler/Interpreter/Interpreter.h"
#include "compiler/Masks.h"

namespace hpc {

/// Distance of 1 from the next number of a float type.
double epsilonOf(DType dtype);

/// The distance of two numbers of a float type at `value`, at most.
double spacing(DType dtype, double value);

/// A tensor of one coordinate and, in `floats`, a bound for each of its elements; null: every plan has these very numbers.
struct Bounded {
  const Tensor *value;
  const Tensor *bound = nullptr;
};
using SharedTensor = std::shared_ptr<const Tensor>;

/// Bounds of an nn op's results. `doublePrecision`: `results` are of a run in double precision, and so is what they are compared with.
Expected<std::vector<SharedTensor>> localBounds(Operation *op, ArrayRef<Bounded> operands, ArrayRef<const Tensor *> results,
                                                bool doublePrecision);

/// The bound of a sum of `count` numbers in any order; `magnitudes`: of each element, the sum of theirs.
double boundOfSum(int64_t count, double magnitudes, double epsilon);

} // namespace hpc
