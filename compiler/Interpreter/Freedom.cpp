// docs/numerics.md names what is free: the order of sums, approximations, roundings within a composite, what is too small for a product.
// How an op sums follows from its rule and its structure.
#include "compiler/Interpreter/Freedom.h"

#include "compiler/Interpreter/RunningError.h"
#include "compiler/Interpreter/SummedTerms.h"

#include <cmath>

namespace hpc::interpreter {

bool isWhole(const Tensor &tensor) {
  return llvm::all_of(tensor.floats, [](double value) { return value == std::nearbyint(value); });
}

LinearClause::Kind linearity(Operation *op) {
  if (isa<nn::DivOp>(op) && isa<FloatType>(nn::tensorType(op->getResult(0)).getElementType()))
    return LinearClause::Product; // in its dividend; its rule says that of few divisors, for the terms of a sum
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return ruled ? ruled.getShardingRule().linear.kind : LinearClause::None;
}

bool isApproximate(Operation *op, DType dtype) {
  return accessOf(op) == Access::Elementwise && effortOf(op) == Effort::Expensive && dtype != DType::F64;
}

std::vector<double> freedomOfRounding(Operation *op, ArrayRef<const Tensor *> operands, const Tensor &sample) {
  std::vector<double> slack;
  bool isNarrow = sample.dtype == DType::BF16 || sample.dtype == DType::F16;
  if (isNarrow && accessOf(op) == Access::Elementwise && operands.size() == 1 && operands[0]->dtype != sample.dtype)
    for (double value : sample.floats)
      slack.push_back(epsilonOf(sample.dtype) / 2 * std::abs(value));
  return slack;
}

/// The most that a product with sums in f32 may lose where numbers below 2^-126 count as 0: pieces of either factor, and the terms.
static double flushedOf(ArrayRef<const Tensor *> operands, int64_t terms, DType dtype) {
  if (dtype == DType::F64)
    return 0;
  double largest = 1;
  for (const Tensor *operand : operands) {
    double ofOperand = 0;
    for (double value : operand->floats)
      if (std::isfinite(value))
        ofOperand = std::max(ofOperand, std::abs(value));
    largest += ofOperand;
  }
  return 0x1p-126 * double(terms) * largest;
}

Expected<std::vector<double>> freedomOfTerms(Operation *op, ArrayRef<const Tensor *> operands, unsigned result, const Tensor &sample) {
  Expected<SummedTerms> terms = summedTerms(op, operands, result);
  if (!terms.ok())
    return terms.status();
  std::vector<double> slack;
  for (size_t i = 0; i < terms->magnitudes.size(); ++i)
    slack.push_back(epsilonOf(DType::BF16) / 4 *
                    std::hypot(sample.floats[i], terms->magnitudes[i] / std::sqrt(double(terms->count))));
  return slack;
}

Expected<std::vector<double>> freedomOf(Operation *op, ArrayRef<const Tensor *> operands, int64_t rounded,
                                        unsigned result, const Tensor &unrounded, const Tensor &sample) {
  std::vector<double> slack;
  if (!sample.isFloat())
    return slack;
  double epsilon = sample.dtype == DType::F64 ? 0x1p-52 : 0x1p-23; // of sums and approximations
  if (isApproximate(op, sample.dtype)) { // what needs no rounding nobody gets wrong
    for (size_t i = 0; i < sample.floats.size(); ++i)
      slack.push_back(unrounded.floats[i] == sample.floats[i] ? 0 : epsilon * std::abs(sample.floats[i]));
    return slack;
  }
  // A sum of two is rounded alike by all. But errors of its terms that cancel here need not cancel in a plan.
  if (accessOf(op) == Access::Elementwise && rounded < 2)
    return slack;
  Expected<SummedTerms> terms = summedTerms(op, operands, result);
  if (!terms.ok())
    return terms.status();
  // An error of half an epsilon of every partial sum: were all terms of one sign and their errors independent, sequential
  // sums would be off by sqrt(count) / 6 epsilons. Plans sum in lanes and blocks, which divides that by more than 2.
  double growth = std::max(0.5, std::sqrt(double(terms->count)) / 32);
  bool isWholeSum = llvm::all_of(operands, [](const Tensor *operand) { return isWhole(*operand); });
  double small = isWholeSum || accessOf(op) != Access::Product ? 0 : flushedOf(operands, terms->count, sample.dtype);
  // Masks absorb what is added to them, in any plan alike, and cancel exactly.
  double most = accessOf(op) == Access::Elementwise ? maskMagnitude : INFINITY;
  for (double size : terms->magnitudes)
    slack.push_back(size >= most || (isWholeSum && size <= 1 / epsilon) ? 0 : epsilon * growth * size + small);
  return slack;
}

} // namespace hpc::interpreter
