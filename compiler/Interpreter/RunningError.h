// A running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.3 and 26.5): how
// far any plan's values may be from those of a serial run in double precision.
//
// Beside the run every value is computed twice more as a plan computes it: each node rounds to its element type, sums go
// term by term in f32. How far such a sample is off shows what rounding does to *these* numbers, cancellation and
// conditioning included, which no formula on the result's size can. Where docs/numerics.md leaves a plan free (order of
// sums, approximations) a sample is pushed off, up or down at random, by at least what that freedom may cost; it grows
// with the terms of a sum and not with its result. A value's bound is four times the largest deviation of its samples
// (more in a tensor of few elements), plus two units in the last place of its largest magnitude.
#pragma once

#include "compiler/Interpreter/Interpreter.h"
#include "compiler/Masks.h"

namespace hpc {

/// Distance of 1 from the next number of a float type.
double epsilonOf(DType dtype);

class RunningError {
public:
  /// Lets ranks round their terms of sums over tensor axes to 16 bits where docs/numerics.md allows it (nn::mayRoundTerms).
  void allowRoundedTerms(func::FuncOp serial);

  /// Sees every value of a serial run in double precision in the order in which it is produced (RunOptions::observe).
  Status observe(Value value, const std::shared_ptr<const Tensor> &exact);

  /// Largest difference from the run in double that a plan's value may have: of floats absolute; of integers and bools
  /// 0 unless a float within its own bound decides otherwise; infinite where the element type overflows on the way,
  /// though double does not.
  double bound(Value value) const { return bounds.lookup(value).own; }

  /// The same, but where that is infinite it is as large, relative to the value, as the worst operand's: so much a
  /// run of a type that does not overflow may be off.
  double finiteBound(Value value) const { return bounds.lookup(value).finite; }

  /// The same between two runs in double that add up in other orders: a curve may be steeper where errors are as small as that
  /// than where a float's are (Adam's quotient of a gradient that is nothing but errors).
  double boundInDouble(Value value) const { return bounds.lookup(value).inDouble; }

  /// Where a value has lost its bound: the first number that its type does not hold though it holds all that it is made of, as a sum
  /// beyond 65504 in f16. What masks add up to is none.
  struct Overflow {
    Location where;
    DType dtype;
    int64_t index; ///< row-major
    double value;
  };
  std::optional<Overflow> firstOverflow() const { return losesBounds ? overflow : std::nullopt; }

private:
  static constexpr int sampleCount = 2;

  /// A value in double, and as plans might have it.
  struct Twin {
    std::shared_ptr<const Tensor> exact;
    std::shared_ptr<const Tensor> samples[sampleCount]; ///< == exact where nothing was rounded
    std::shared_ptr<const Tensor> inDouble; ///< as another run in double might have it; == exact where it is the same
    double bound = 0;
    double boundInDouble = 0;
    double safety = 0;        ///< how many times its samples' largest deviation another plan may be off
    double relativeBound = 0; ///< finite: in parts of the largest magnitude
    int64_t overflowAt = -1;  ///< the first element that is a number and that the type does not hold
    bool hasJumped = false;   ///< it, or what it is made of, may be on either side of a jump: it deviates by that or not at all
    bool isExact() const { return samples[0] == exact && samples[1] == exact; }
  };
  using Twins = SmallVector<Twin>;

  static Twin exactly(const std::shared_ptr<const Tensor> &tensor) { return {tensor, {tensor, tensor}, tensor}; }
  static Twin given(const std::shared_ptr<const Tensor> &tensor);
  struct Bound {
    double own = 0, finite = 0, inDouble = 0;
  };

  static double deviationAt(const Twin &twin, int64_t i);
  static double safetyOf(const Twin &twin, double worst);
  static void setBound(Twin &twin, bool isApproximated);
  void noteOverflow(Operation *op, ArrayRef<Twin> operands, const Twin &twin);
  static double relativeBoundOf(const Twin &twin, ArrayRef<Twin> operands);
  static std::vector<bool> elementsRoundedAlike(Operation *op, ArrayRef<Twin> operands, const Tensor &result);
  static std::vector<bool> elementsThatAreOneValue(Operation *op, ArrayRef<Twin> operands, const Tensor &result);
  /// `isStep`: of a composite's definition.
  Expected<Twins> evaluate(Operation *op, ArrayRef<Twin> operands, ArrayRef<std::shared_ptr<const Tensor>> exact,
                           bool isStep = false);
  static Status widenBoundOfCurve(Operation *op, ArrayRef<Twin> operands, Twins &twins);
  Status followInDouble(Operation *op, ArrayRef<Twin> operands, int64_t rounded, bool onlyMoves, Twins &twins);
  Expected<Twins> evaluateComposite(Operation *op, ArrayRef<Twin> operands,
                                    ArrayRef<std::shared_ptr<const Tensor>> exact);
  Expected<Tensor> displaced(Operation *op, ArrayRef<Twin> operands, ArrayRef<double> by, unsigned result,
                             bool eachItsOwnWay);
  Status followJumps(Operation *op, ArrayRef<Twin> operands, unsigned result, double direction, const Tensor &exact,
                     Tensor &sample, bool &hasJumped);
  static Expected<std::vector<double>> reachOfTerms(Operation *op, ArrayRef<Twin> operands, unsigned result,
                                                    const Tensor &exact);
  void push(const Tensor &exact, ArrayRef<double> slack, Tensor &sample);
  static void crossZero(Twin &twin);
  double randomFactor();

  struct Live {
    Twin twin;
    int64_t usesLeft;
  };
  DenseMap<Value, Live> live;
  DenseMap<Value, Bound> bounds;
  std::vector<std::shared_ptr<const Tensor>> pending; ///< the results of an op that were seen so far
  std::optional<Overflow> overflow;
  bool losesBounds = false;
  llvm::DenseSet<Operation *> withRoundedTerms;
  uint64_t randomState = 0x9e3779b97f4a7c15;          ///< the same pushes in every run
};

} // namespace hpc
