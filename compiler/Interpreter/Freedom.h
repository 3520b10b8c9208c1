// What a plan may do to an op's result where the policy leaves it free; of RunningError.
#pragma once

#include "compiler/Interpreter/Evaluators.h"

namespace hpc::interpreter {

bool isWhole(const Tensor &tensor);

LinearClause::Kind linearity(Operation *op);

/// Whether `op` approximates: f64 calls the same library as the interpreter.
bool isApproximate(Operation *op, DType dtype);

/// A step of a composite that rounds to 16 bits: a kernel or a library that computes the composite whole may leave it out.
std::vector<double> freedomOfRounding(Operation *op, ArrayRef<const Tensor *> operands, const Tensor &sample);

/// The error of a product if each rank rounds its term of the sum to bf16 and the sum is rounded again. The size of a term of unrelated factors is
/// the product of their norms over the root of the number of terms; related factors add up to the result itself.
Expected<std::vector<double>> freedomOfTerms(Operation *op, ArrayRef<const Tensor *> operands, unsigned result, const Tensor &sample);

/// For each element of a result how far a plan may be from any other by its freedom in this op alone; empty: not at all.
/// `unrounded` is the sample before it was rounded, `rounded` the number of operands that hold rounding errors.
Expected<std::vector<double>> freedomOf(Operation *op, ArrayRef<const Tensor *> operands, int64_t rounded, unsigned result,
                                        const Tensor &unrounded, const Tensor &sample);

} // namespace hpc::interpreter
