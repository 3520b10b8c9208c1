// Samples, pushes and bounds, op by op; composites step by step by their definition.
// Nothing here knows an op: how results read operands, what is summed and what jumps follow from its rule, its
// structure and its numbers.
#include "compiler/Interpreter/RunningError.h"

#include "compiler/Dialect/NN/RoundedTerms.h"
#include "compiler/Interpreter/Evaluators.h"
#include "compiler/Interpreter/Freedom.h"

#include <array>
#include <cmath>

namespace hpc {

using namespace interpreter;

/// The bound is so many times the samples' largest deviation: another plan's rounding errors are of the same size. In
/// few elements errors may cancel in both samples by chance, and not in a plan: the largest of n varies the more the
/// smaller n is.
static constexpr double safety = 4;
static constexpr int64_t enoughElements = 64;
static double safetyOf(int64_t elements) {
  return elements >= enoughElements ? safety
                                    : safety * std::cbrt(double(enoughElements) / double(std::max<int64_t>(elements, 1)));
}

/// In parts of the largest number: what is less is no more than rounding. A grid's unit may be twice as large in a plan, and
/// the number of units half; their product is as near as ever.
static constexpr double leastJump = 0.01;

double epsilonOf(DType dtype) {
  return dtype == DType::F64 ? 0x1p-52 : dtype == DType::F16 ? 0x1p-10 : dtype == DType::BF16 ? 0x1p-7 : 0x1p-23;
}

static bool isNumber(double value) { return std::isfinite(value) && std::abs(value) < maskMagnitude; }

/// The largest magnitude of a number; never so small that a bound divided by it overflows.
static double largestNumber(const Tensor &tensor) {
  double largest = 1e-30;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (double value = tensor.number(i); isNumber(value))
      largest = std::max(largest, std::abs(value));
  return largest;
}

/// By the elements that have a part in the largest deviation, those that the safety would lift to it: nearly all of a
/// product; one or two of a quotient of small numbers (Adam's first step), where the largest is a matter of chance.
double RunningError::safetyOf(const Twin &twin, double worst) {
  if (twin.isExact()) // then every element has its part in no deviation
    return hpc::safetyOf(twin.exact->size());
  int64_t count = 0;
  for (int64_t i = 0; i < twin.exact->size() && count < enoughElements; ++i)
    count += llvm::any_of(twin.samples, [&](const std::shared_ptr<const Tensor> &sample) {
      return safety * std::abs(sample->number(i) - twin.exact->number(i)) >= worst;
    });
  return hpc::safetyOf(count);
}

/// Whether a plan may have anything in place of a number, as a sample has. What the type does not hold at all, a sum of two masks, is
/// infinite in both.
static bool isUnbounded(DType dtype, double value, double other) {
  if (isNumber(value))
    return !std::isfinite(other);
  if (std::isfinite(value) && !std::isfinite(roundTo(dtype, value)))
    return !std::isinf(other) || std::signbit(value) != std::signbit(other);
  return std::isfinite(value) ? !std::isfinite(other) : std::isnan(value) != std::isnan(other);
}

/// The bound of a value from the deviation of its samples. Whole numbers that no sample has moved are the same in any
/// plan, unless approximations make them: a mask of ones and zeros is on no side of a jump but its own.
void RunningError::setBound(Twin &twin, bool isApproximated) {
  const Tensor &exact = *twin.exact;
  double worst = 0, largest = 0;
  bool isAnything = false;
  for (const std::shared_ptr<const Tensor> &sample : twin.samples)
    for (int64_t i = 0; i < exact.size(); ++i) {
      const double value = exact.number(i), other = sample->number(i), by = std::abs(other - value);
      if (!isNumber(value) || !std::isfinite(other)) {
        isAnything |= isUnbounded(exact.dtype, value, other);
        if (twin.overflowAt < 0 && std::isfinite(value) && !std::isfinite(roundTo(exact.dtype, value)))
          twin.overflowAt = i;
        continue;
      }
      worst = std::max(worst, by);
      largest = std::max(largest, std::abs(value));
    }
  twin.safety = safetyOf(twin, worst);
  if (twin.isExact() && !isApproximated && isWhole(exact))
    twin.bound = 0;
  else if (isAnything)
    twin.bound = INFINITY;
  else
    twin.bound = exact.isFloat() ? twin.safety * worst + 2 * epsilonOf(exact.dtype) * largest : worst;
}

void RunningError::noteOverflow(Operation *op, ArrayRef<Twin> operands, const Twin &twin) {
  losesBounds |= std::isinf(twin.bound);
  if (overflow || twin.overflowAt < 0 || llvm::any_of(operands, [](const Twin &each) { return each.overflowAt >= 0; }))
    return;
  const double value = twin.exact->floats[twin.overflowAt], lowest = twin.exact->dtype == DType::F16 ? -65504 : -maskMagnitude;
  bool readsMasks = llvm::any_of(operands, [&](const Twin &operand) {
    return llvm::any_of(operand.exact->floats, [&](double each) { return each <= lowest; });
  });
  if (value > 0 || !readsMasks)
    overflow = Overflow{op->getLoc(), twin.exact->dtype, twin.overflowAt, value};
}

/// The bound in parts of the largest magnitude; where it is infinite, what the worst operand has.
double RunningError::relativeBoundOf(const Twin &twin, ArrayRef<Twin> operands) {
  if (std::isfinite(twin.bound))
    return twin.bound / largestNumber(*twin.exact);
  double worst = 0;
  for (const Twin &operand : operands)
    worst = std::max(worst, operand.relativeBound);
  return worst;
}

// ---- what a plan is free to do -------------------------------------------------------------------

/// Of few results the errors of terms may cancel by chance in every sample: for each, the root of the sum of squares of what its
/// terms deviate by. Of many some show what that is, unless the sum is in double, which rounds nothing that counts beside
/// the errors of f32 terms. Empty: no such sum.
Expected<std::vector<double>> RunningError::reachOfTerms(Operation *op, ArrayRef<Twin> operands, unsigned result,
                                                         const Tensor &exact) {
  std::vector<double> reach;
  std::optional<Access> access = accessOf(op);
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  const bool isTold = exact.dtype != DType::F64 && exact.size() >= enoughElements;
  if (isTold || !exact.isFloat() || !ruled || (access != Access::Product && access != Access::Combine))
    return reach;
  ShardingRule rule = ruled.getShardingRule();
  auto isNoSum = [](const ShardingFactor &factor) { return factor.reduction && *factor.reduction != ReduceKind::Sum; };
  if (llvm::any_of(rule.factors, isNoSum))
    return reach;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].exact->isFloat() || operands[i].isExact() || isWhole(*operands[i].exact))
      continue; // whole numbers are words of others, whose errors cancel
    std::vector<Tensor> squares;
    SmallVector<const Tensor *> inputs;
    for (const Twin &operand : operands)
      squares.push_back(*operand.exact);
    for (size_t k = 0; k < operands.size(); ++k) {
      for (size_t j = 0; j < squares[k].floats.size(); ++j) {
        double value = k == i ? deviationAt(operands[k], int64_t(j)) : squares[k].floats[j];
        squares[k].floats[j] = value * value;
      }
      inputs.push_back(&squares[k]);
    }
    Results sums = evaluateOp(op, inputs, {.doublePrecision = true});
    if (!sums.ok())
      return sums.status();
    const std::vector<double> &values = (*sums)[result].floats;
    reach.resize(values.size());
    for (size_t j = 0; j < values.size(); ++j)
      reach[j] += values[j];
  }
  for (double &value : reach)
    value = std::sqrt(std::max(value, 0.0));
  return reach;
}

double RunningError::randomFactor() {
  randomState ^= randomState << 13;
  randomState ^= randomState >> 7;
  randomState ^= randomState << 17;
  double amount = 1 + double(randomState >> 12) * 0x1p-53; // 1 to 1.5
  return randomState & 1 ? amount : -amount;
}

/// Moves elements of the sample that are closer to the exact ones than `slack`.
void RunningError::push(const Tensor &exact, ArrayRef<double> slack, Tensor &sample) {
  for (size_t i = 0; i < slack.size(); ++i)
    if (isNumber(exact.floats[i]) && std::abs(sample.floats[i] - exact.floats[i]) < slack[i])
      sample.floats[i] = exact.floats[i] + slack[i] * randomFactor();
}

/// Errors may carry a number near 0 to the other sign, and with it values that follow the sign, such as Adam's first step. No sample
/// need have shown that. So the result of a sum that is nearest to 0 crosses 0 in one sample and comes close to it in the other, if it
/// lies within four typical errors. The typical error is the root mean square over the tensor, if that is at most eight times the number's own error, since
/// rows may have different sizes. Numbers that no sample has moved stay, and so do numbers of one sign, such as sums of squares.
void RunningError::crossZero(Twin &twin) {
  const Tensor &exact = *twin.exact;
  if (!exact.isFloat() || twin.isExact())
    return;
  constexpr double farthest = 4, mostTimes = 8;
  std::vector<double> own(exact.floats.size());
  double squares = 0;
  int64_t count = 0;
  bool isNegative = false, isPositive = false;
  for (int64_t j = 0; j < exact.size(); ++j) {
    isNegative |= exact.floats[j] < 0;
    isPositive |= exact.floats[j] > 0;
    if (double by = deviationAt(twin, j); isNumber(exact.floats[j]) && std::isfinite(by) && by > 0) {
      own[j] = by;
      squares += by * by;
      ++count;
    }
  }
  const double typical = std::sqrt(squares / double(std::max<int64_t>(count, 1)));
  auto errorOf = [&](int64_t j) { return std::min(typical, mostTimes * own[j]); };
  int64_t nearest = -1;
  for (int64_t j = 0; j < exact.size(); ++j)
    if (std::abs(exact.floats[j]) < farthest * errorOf(j) &&
        (nearest < 0 || std::abs(exact.floats[j]) < std::abs(exact.floats[nearest])))
      nearest = j;
  if (nearest < 0 || !isNegative || !isPositive)
    return;
  constexpr std::array<double, 2> parts = {-1.0 / 2, 1.0 / 32};
  for (auto [sample, part] : llvm::zip_equal(twin.samples, parts)) {
    auto moved = std::make_shared<Tensor>(*sample);
    moved->floats[nearest] = std::copysign(1, exact.floats[nearest]) * part * errorOf(nearest);
    sample = moved;
  }
}

// ---- operands at the ends of their bounds --------------------------------------------------------

/// The largest deviation of one number in any sample.
double RunningError::deviationAt(const Twin &twin, int64_t i) {
  double worst = 0;
  for (const std::shared_ptr<const Tensor> &sample : twin.samples)
    worst = std::max(worst, std::abs(sample->number(i) - twin.exact->number(i)));
  return worst;
}

/// One result of the op where floats of operand i are moved by `by[i]`. A 0 that no sample has moved stays: it is 0 in every
/// plan, as in a row of zeros whose largest number decides a grid. A number that a jump has moved stays or goes to its sample.
/// `eachItsOwnWay`: each element moves up or down by chance, as roundings of many elements do that are added up later.
Expected<Tensor> RunningError::displaced(Operation *op, ArrayRef<Twin> operands, ArrayRef<double> by, unsigned result,
                                         bool eachItsOwnWay) {
  SmallVector<const Tensor *> inputs;
  std::vector<Tensor> moved(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(operands[i].exact.get());
    if (by[i] == 0 || !std::isfinite(by[i]) || !inputs[i]->isFloat())
      continue;
    const Twin &operand = operands[i];
    moved[i] = *operand.exact;
    for (int64_t j = 0; j < moved[i].size(); ++j) {
      double deviation = deviationAt(operand, j);
      double way = eachItsOwnWay && llvm::popcount(uint64_t(j) * 0x9e3779b97f4a7c15) % 2 ? -1 : 1;
      if (deviation != 0 || moved[i].floats[j] != 0)
        moved[i].floats[j] += way * (operand.hasJumped ? std::copysign(deviation, by[i]) : by[i]);
    }
    inputs[i] = &moved[i];
  }
  Results results = evaluateOp(op, inputs, {.doublePrecision = true});
  if (!results.ok())
    return results.status();
  return std::move((*results)[result]);
}

/// Comparisons, casts to integers, floor: where an operand may be on either side of a jump, the sample takes the other.
/// `direction` (1 or -1) is where operands move, every second one the other way.
Status RunningError::followJumps(Operation *op, ArrayRef<Twin> operands, unsigned result, double direction,
                                 const Tensor &exact, Tensor &sample, bool &hasJumped) {
  bool readsFloats = false, readsFractions = false;
  for (const Twin &operand : operands)
    if (operand.bound > 0 && operand.exact->isFloat()) {
      readsFloats = true;
      readsFractions |= !isWhole(*operand.exact) || !isWhole(*operand.samples[0]);
    }
  bool isRounding =
      accessOf(op) == Access::Elementwise && linearity(op) == LinearClause::None && readsFractions && isWhole(exact);
  if (!readsFloats || (exact.isFloat() && !isRounding))
    return Status::success();
  SmallVector<double> by;
  double furthest = 0;
  for (const Twin &operand : operands) {
    by.push_back(direction * operand.bound);
    direction = -direction;
    furthest = std::max(furthest, operand.exact->isFloat() ? operand.bound : 0.0);
  }
  Expected<Tensor> other = displaced(op, operands, by, result, /*eachItsOwnWay=*/isRounding);
  if (!other.ok())
    return other.status();
  std::vector<bool> isOneValue = elementsThatAreOneValue(op, operands, exact);
  for (int64_t i = 0; i < exact.size(); ++i)
    if (!isOneValue.empty() && isOneValue[i])
      sample.setNumber(i, exact.number(i));
    else if (exact.number(i) == sample.number(i) && other->number(i) != exact.number(i)) {
      // A staircase that is finer than the errors is no jump: samples climb it as they are.
      if (isRounding && std::abs(other->number(i) - exact.number(i)) <= 2 * furthest)
        continue;
      sample.setNumber(i, other->number(i));
      hasJumped = true;
    }
  return Status::success();
}

// ---- ops -----------------------------------------------------------------------------------------

Expected<RunningError::Twins> RunningError::evaluate(Operation *op, ArrayRef<Twin> operands,
                                                     ArrayRef<std::shared_ptr<const Tensor>> exact,
                                                     bool isStep) {
  std::optional<Access> access = accessOf(op);
  if (isa<CompositeOpInterface>(op) && access == Access::Composite)
    return evaluateComposite(op, operands, exact);
  Twins twins;
  bool onlyMoves = access == Access::Source || access == Access::Alias || access == Access::Move ||
                   access == Access::Repeat;
  auto isInteger = [](const auto &tensor) { return !tensor->isFloat(); };
  bool areIntegers = llvm::all_of(exact, isInteger) &&
                     llvm::all_of(operands, [&](const Twin &operand) { return isInteger(operand.exact); });
  if ((onlyMoves || areIntegers) && llvm::all_of(operands, [](const Twin &operand) { return operand.isExact(); })) {
    for (const std::shared_ptr<const Tensor> &tensor : exact)
      twins.push_back(exactly(tensor));
    return twins;
  }
  twins.resize(exact.size());
  bool hasJumped = llvm::any_of(operands, [](const Twin &operand) { return operand.hasJumped; });
  int64_t rounded = llvm::count_if(operands, [](const Twin &operand) { return !operand.isExact(); });
  std::vector<bool> areAlike = rounded > 1 ? elementsRoundedAlike(op, operands, *exact[0]) : std::vector<bool>();
  for (int number = 0; number < sampleCount; ++number) {
    if (onlyMoves && llvm::all_of(operands, [&](const Twin &operand) { return operand.samples[number] == operand.exact; })) {
      for (auto [twin, tensor] : llvm::zip_equal(twins, exact))
        twin.exact = twin.samples[number] = tensor;
      continue;
    }
    SmallVector<const Tensor *> inputs;
    for (const Twin &operand : operands)
      inputs.push_back(operand.samples[number].get());
    Results unrounded = evaluateOp(op, inputs, {.doublePrecision = true, .ownPrecision = true});
    if (!unrounded.ok())
      return unrounded.status();
    for (unsigned i = 0; i < exact.size(); ++i) {
      const Tensor &wanted = *exact[i];
      auto sample = onlyMoves ? std::make_shared<Tensor>(std::move((*unrounded)[i])) : std::make_shared<Tensor>((*unrounded)[i]);
      round(*sample);
      if (!onlyMoves) {
        HPC_RETURN_IF_ERROR(followJumps(op, operands, i, number ? -1 : 1, wanted, *sample, hasJumped));
        Expected<std::vector<double>> slack = freedomOf(op, inputs, rounded, i, (*unrounded)[i], *sample);
        if (!slack.ok())
          return slack.status();
        for (size_t j = 0; j < areAlike.size() && j < slack->size(); ++j)
          if (areAlike[j])
            (*slack)[j] = 0;
        push(wanted, *slack, *sample);
        Expected<std::vector<double>> reach = reachOfTerms(op, operands, i, wanted);
        if (!reach.ok())
          return reach.status();
        push(wanted, *reach, *sample);
        if (withRoundedTerms.contains(op)) {
          Expected<std::vector<double>> ofTerms = freedomOfTerms(op, inputs, i, *sample);
          if (!ofTerms.ok())
            return ofTerms.status();
          push(wanted, *ofTerms, *sample);
        }
        if (isStep)
          push(wanted, freedomOfRounding(op, inputs, *sample), *sample);
      }
      bool isSame = wanted.floats == sample->floats && wanted.ints == sample->ints;
      twins[i].exact = exact[i];
      twins[i].samples[number] = isSame ? exact[i] : sample;
    }
  }
  const bool isSum = access == Access::Elementwise ? linearity(op) == LinearClause::Sum && rounded > 1 : !onlyMoves;
  for (Twin &twin : twins)
    if (isSum)
      crossZero(twin);
  HPC_RETURN_IF_ERROR(followInDouble(op, operands, rounded, onlyMoves, twins));
  const bool isAllElsewhere = (access == Access::Alias || access == Access::Move) && operands.size() == 1 &&
                              exact.front()->size() == operands.front().exact->size();
  for (Twin &twin : twins) {
    if (isAllElsewhere)
      std::tie(twin.bound, twin.boundInDouble, twin.safety, twin.overflowAt) =
          std::tie(operands[0].bound, operands[0].boundInDouble, operands[0].safety, operands[0].overflowAt);
    else
      setBound(twin, isApproximate(op, twin.exact->dtype));
    noteOverflow(op, operands, twin);
  }
  HPC_RETURN_IF_ERROR(widenBoundOfCurve(op, operands, twins));
  for (Twin &twin : twins) {
    twin.relativeBound = isAllElsewhere ? operands[0].relativeBound : relativeBoundOf(twin, operands);
    twin.hasJumped = hasJumped && twin.relativeBound > leastJump;
  }
  return twins;
}

/// The sample of a run in double that adds up in another order.
Status RunningError::followInDouble(Operation *op, ArrayRef<Twin> operands, int64_t rounded, bool onlyMoves, Twins &twins) {
  if (onlyMoves && llvm::all_of(operands, [](const Twin &operand) { return operand.inDouble == operand.exact; })) {
    for (Twin &twin : twins)
      twin.inDouble = twin.exact;
    return Status::success();
  }
  SmallVector<const Tensor *> inputs;
  for (const Twin &operand : operands)
    inputs.push_back(operand.inDouble.get());
  Results results = evaluateOp(op, inputs, {.doublePrecision = true});
  if (!results.ok())
    return results.status();
  for (auto [i, twin] : llvm::enumerate(twins)) {
    auto sample = std::make_shared<Tensor>(std::move((*results)[i]));
    if (!onlyMoves) {
      Expected<std::vector<double>> slack = freedomOf(op, inputs, rounded, unsigned(i), *sample, *sample);
      if (!slack.ok())
        return slack.status();
      for (double &each : *slack)
        each *= epsilonOf(DType::F64) / (sample->dtype == DType::F64 ? 0x1p-52 : 0x1p-23);
      push(*twin.exact, *slack, *sample);
    }
    double worst = 0;
    for (int64_t j = 0; sample->isFloat() && j < sample->size(); ++j)
      if (double by = std::abs(sample->floats[j] - twin.exact->floats[j]); isNumber(twin.exact->floats[j]) && std::isfinite(by))
        worst = std::max(worst, by);
    twin.inDouble = sample->floats == twin.exact->floats && sample->ints == twin.exact->ints ? twin.exact : sample;
    twin.boundInDouble = hpc::safetyOf(1) * worst;
  }
  return Status::success();
}

/// How far results are off whose operands are off by all that their bounds allow, not by what a sample is: the square of
/// a number that is nothing but rounding errors grows by the square of the safety. Only of elementwise ops that are not
/// linear, where a deviation is no small part of a number.
Status RunningError::widenBoundOfCurve(Operation *op, ArrayRef<Twin> operands, Twins &twins) {
  if (accessOf(op) != Access::Elementwise || linearity(op) == LinearClause::Sum)
    return Status::success();
  for (int number = 0; number < sampleCount; ++number) {
    bool isLarge = false;
    std::vector<Tensor> stretched(operands.size());
    SmallVector<const Tensor *> inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Twin &operand = operands[i];
      inputs.push_back(operand.exact.get());
      if (!operand.exact->isFloat() || operand.samples[number] == operand.exact)
        continue;
      stretched[i] = *operand.exact;
      inputs[i] = &stretched[i];
      double times = operand.hasJumped ? 1 : operand.safety;
      for (int64_t j = 0; j < operand.exact->size(); ++j) {
        double value = operand.exact->floats[j], by = times * (operand.samples[number]->floats[j] - value);
        if (!isNumber(value) || !std::isfinite(by))
          continue;
        stretched[i].floats[j] += by;
        isLarge |= std::abs(by) > 0.1 * std::abs(value);
      }
    }
    if (!isLarge)
      continue;
    Results results = evaluateOp(op, inputs, {.doublePrecision = true});
    if (!results.ok())
      return results.status();
    for (auto [twin, result] : llvm::zip_equal(twins, *results))
      for (int64_t i = 0; twin.exact->isFloat() && i < result.size(); ++i)
        if (double off = std::abs(result.floats[i] - twin.exact->floats[i]); std::isfinite(off))
          twin.bound = std::max(twin.bound, off);
  }
  return Status::success();
}

Expected<RunningError::Twins> RunningError::evaluateComposite(Operation *op, ArrayRef<Twin> operands,
                                                              ArrayRef<std::shared_ptr<const Tensor>> exact) {
  Definition definition(op);
  DenseMap<Value, Live> inner;
  auto define = [&](Value value, const Twin &twin) {
    int64_t uses = std::distance(value.use_begin(), value.use_end()) + llvm::count(definition.results, value);
    inner[value] = {twin, uses};
  };
  for (auto [argument, twin] : llvm::zip_equal(definition.block.getArguments(), operands))
    define(argument, twin);
  for (Operation *step : definition.steps) {
    Twins inputs;
    SmallVector<const Tensor *> tensors;
    for (Value operand : step->getOperands()) {
      Live &found = inner.find(operand)->second;
      inputs.push_back(found.twin);
      tensors.push_back(inputs.back().exact.get());
      if (--found.usesLeft == 0)
        inner.erase(operand);
    }
    Results results = evaluateOp(step, tensors, {.doublePrecision = true});
    if (!results.ok())
      return results.status();
    std::vector<std::shared_ptr<const Tensor>> made;
    for (Tensor &result : *results)
      made.push_back(std::make_shared<Tensor>(std::move(result)));
    Expected<Twins> twins = evaluate(step, inputs, made, /*isStep=*/true);
    if (!twins.ok())
      return twins;
    for (auto [value, twin] : llvm::zip_equal(step->getResults(), *twins))
      define(value, twin);
  }
  Twins twins;
  for (auto [value, tensor] : llvm::zip_equal(definition.results, exact)) {
    Twin twin = inner.find(value)->second.twin;
    for (std::shared_ptr<const Tensor> &sample : twin.samples)
      if (sample == twin.exact)
        sample = tensor;
    if (twin.inDouble == twin.exact)
      twin.inDouble = tensor;
    twin.exact = tensor;
    twins.push_back(twin);
  }
  return twins;
}

/// What no op has made: it is what it is, but for what its type does not hold (a weight in int8, times its scale).
RunningError::Twin RunningError::given(const std::shared_ptr<const Tensor> &tensor) {
  Twin twin = exactly(tensor);
  if (llvm::all_of(tensor->floats, [&](double value) { return std::isnan(value) || roundTo(tensor->dtype, value) == value; }))
    return twin;
  auto sample = std::make_shared<Tensor>(*tensor);
  round(*sample);
  twin.samples[0] = twin.samples[1] = sample;
  setBound(twin, false);
  twin.relativeBound = relativeBoundOf(twin, {});
  return twin;
}

void RunningError::allowRoundedTerms(func::FuncOp serial) {
  nn::Dependences dependences = nn::findDependences(serial);
  for (Operation &op : serial.getBody().front())
    if (nn::mayRoundTerms(&op, dependences))
      withRoundedTerms.insert(&op);
}

Status RunningError::observe(Value value, const std::shared_ptr<const Tensor> &exact) {
  auto keep = [&](Value value, const Twin &twin) {
    bounds[value] = {twin.bound, std::isfinite(twin.bound) ? twin.bound : twin.relativeBound * largestNumber(*twin.exact),
                     twin.boundInDouble};
    if (int64_t uses = std::distance(value.use_begin(), value.use_end()))
      live[value] = {twin, uses};
  };
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() == 0) {
    keep(value, given(exact));
    return Status::success();
  }
  pending.push_back(exact);
  if (pending.size() < op->getNumResults())
    return Status::success();
  Twins operands;
  for (Value operand : op->getOperands()) {
    auto found = live.find(operand);
    if (found == live.end())
      return Status::error(ErrorKind::Internal, describeOp(op) + " reads a value that was not observed");
    operands.push_back(found->second.twin);
  }
  // In a serial run the other dialects' ops change no value.
  Expected<Twins> twins = isa<nn::NNDialect>(op->getDialect()) ? evaluate(op, operands, pending) : Expected<Twins>(operands);
  pending.clear();
  if (!twins.ok())
    return twins.status().at(describeOp(op));
  for (auto [result, twin] : llvm::zip_equal(op->getResults(), *twins))
    keep(result, twin);
  for (Value operand : op->getOperands())
    if (auto found = live.find(operand); --found->second.usesLeft == 0)
      live.erase(found);
  return Status::success();
}

} // namespace hpc
