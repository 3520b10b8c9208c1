// Errors of operands are carried by evaluating the op where they are largest; what the op itself leaves free is added; then all of it
// is rounded as the op's type is. Composites go step by step by their definition.
#include "compiler/Interpreter/LocalBounds.h"

#include "compiler/Interpreter/Evaluators.h"
#include "compiler/Interpreter/SummedTerms.h"

#include <cmath>

namespace hpc {

using namespace interpreter;

double epsilonOf(DType dtype) {
  return dtype == DType::F64 ? 0x1p-52 : dtype == DType::F16 ? 0x1p-10 : dtype == DType::BF16 ? 0x1p-7 : 0x1p-23;
}

double spacing(DType dtype, double value) {
  const double leastNormal = dtype == DType::F64 ? 0x1p-1022 : dtype == DType::F16 ? 0x1p-14 : 0x1p-126;
  return epsilonOf(dtype) * std::max(std::abs(value), leastNormal);
}

/// At most n halves of an epsilon, the worst case of any order. Independent errors grow with the root of n; a constant of 8 covers
/// errors of equal terms too, which have one sign, in chains as long as plans have (docs/numerics.md).
double boundOfSum(int64_t count, double magnitudes, double epsilon) {
  return std::min(double(count) + 2, 32 + 8 * std::sqrt(double(count))) * epsilon / 2 * magnitudes;
}

namespace {
using Errors = std::vector<double>; ///< one an element; empty: none

/// Whether an op's numbers are such of its operands (or its constants).
bool onlyMoves(Operation *op) {
  std::optional<Access> access = accessOf(op);
  return access == Access::Source || access == Access::Alias || access == Access::Move || access == Access::Repeat ||
         access == Access::Assemble || (access == Access::Lookup && effortOf(op) != Effort::Expensive);
}

LinearClause::Kind linearity(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return ruled ? ruled.getShardingRule().linear.kind : LinearClause::None;
}

/// Whether larger terms of one sign give larger results: sums and products of many, and of two matrices.
bool addsUp(Operation *op) {
  std::optional<Access> access = accessOf(op);
  if (access != Access::Product && access != Access::Combine && !(access == Access::Lookup && !onlyMoves(op)))
    return false;
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return !ruled || llvm::none_of(ruled.getShardingRule().factors, [](const ShardingFactor &factor) {
    return factor.reduction == ReduceKind::Max || factor.reduction == ReduceKind::Min;
  });
}

bool isWhole(const Tensor &tensor) {
  return llvm::all_of(tensor.floats, [](double value) { return value == std::nearbyint(value); });
}

/// Whether a comparison asks which elements of a value are its extremes: an element and the maximum that it is are one number in any plan.
bool seeksExtremes(Operation *op) {
  auto compare = dyn_cast<nn::CompareOp>(op);
  if (!compare)
    return false;
  auto isExtremeOf = [](Value extreme, Value of) {
    while (Operation *view = extreme.getDefiningOp()) {
      if (auto reduce = dyn_cast<nn::ReduceOp>(view))
        return reduce.getOperand() == of && (reduce.getKind() == ReduceKind::Max || reduce.getKind() == ReduceKind::Min);
      if (!isView(view))
        break;
      extreme = view->getOperand(0);
    }
    return false;
  };
  return isExtremeOf(compare.getLhs(), compare.getRhs()) || isExtremeOf(compare.getRhs(), compare.getLhs());
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  double by = std::abs(a - b);
  return std::isnan(by) ? INFINITY : by;
}

/// An operand at the end of its bounds: floats moved, bools turned.
Tensor moved(const Bounded &operand, double direction) {
  Tensor result = *operand.value;
  for (size_t i = 0; i < result.floats.size(); ++i)
    result.floats[i] += direction * operand.bound->floats[i];
  for (size_t i = 0; i < result.ints.size(); ++i)
    if (double by = operand.bound->floats[i]; by > 0)
      result.ints[i] = result.dtype == DType::Bool ? !result.ints[i]
                                                   : wrapTo(result.dtype, result.ints[i] + int64_t(direction * std::min(std::ceil(by), 1e15)));
  return result;
}

Tensor magnitudesOf(const Bounded &operand, bool withBound) {
  Tensor result = *operand.value;
  for (size_t i = 0; i < result.floats.size(); ++i)
    result.floats[i] = std::abs(result.floats[i]) + (withBound && operand.bound ? operand.bound->floats[i] : 0);
  if (result.dtype == DType::I8) // codes of a weight; other whole numbers are places
    for (int64_t &value : result.ints)
      value = std::abs(value);
  return result;
}

/// The bounds of one op's results.
struct LocalBounds {
  Operation *op;
  ArrayRef<Bounded> operands;
  ArrayRef<const Tensor *> results;
  const bool doublePrecision;
  const bool isStep; ///< of a composite

  double epsilon(DType dtype) const { return doublePrecision ? 0x1p-52 : epsilonOf(dtype); }
  /// Of sums and approximations.
  double epsilonInside(DType dtype) const { return doublePrecision ? 0x1p-52 : std::min(epsilonOf(dtype), 0x1p-23); }

  Results evaluate(ArrayRef<const Tensor *> inputs) const { return evaluateOp(op, inputs, {.doublePrecision = true}); }
  SmallVector<const Tensor *> values() const {
    SmallVector<const Tensor *> tensors;
    for (const Bounded &operand : operands)
      tensors.push_back(operand.value);
    return tensors;
  }

  /// How far results are off whose operands are off by their bounds, before they are rounded: each operand's part, and at least what
  /// all of them do together.
  Status propagate(ArrayRef<Tensor> exact, MutableArrayRef<Errors> errors) const {
    SmallVector<size_t> inexact;
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].bound)
        inexact.push_back(i);
    std::vector<Errors> sums(results.size());
    auto addWorst = [&](ArrayRef<size_t> which, std::vector<Errors> &into) -> Status {
      std::vector<Errors> worst(results.size());
      for (double direction : {1.0, -1.0}) {
        std::vector<Tensor> at;
        at.reserve(which.size());
        SmallVector<const Tensor *> inputs = values();
        for (size_t i : which)
          inputs[i] = &at.emplace_back(moved(operands[i], direction));
        Results there = evaluate(inputs);
        HPC_RETURN_IF_ERROR(there.status());
        for (size_t r = 0; r < results.size(); ++r) {
          worst[r].resize(results[r]->size());
          for (int64_t j = 0; j < results[r]->size(); ++j)
            worst[r][j] = std::max(worst[r][j], distance((*there)[r].number(j), exact[r].number(j)));
        }
      }
      for (size_t r = 0; r < results.size(); ++r) {
        into[r].resize(results[r]->size());
        for (size_t j = 0; j < worst[r].size(); ++j)
          into[r][j] += worst[r][j];
      }
      return Status::success();
    };
    if (addsUp(op) && results.front()->isFloat()) {
      SmallVector<const Tensor *> inner, outer;
      std::vector<Tensor> tensors;
      tensors.reserve(2 * operands.size());
      for (const Bounded &operand : operands) {
        inner.push_back(&tensors.emplace_back(magnitudesOf(operand, false)));
        outer.push_back(&tensors.emplace_back(magnitudesOf(operand, true)));
      }
      Results least = evaluate(inner), most = evaluate(outer);
      HPC_RETURN_IF_ERROR(least.status());
      HPC_RETURN_IF_ERROR(most.status());
      for (size_t r = 0; r < results.size(); ++r) {
        errors[r].resize(results[r]->size());
        for (size_t j = 0; j < errors[r].size(); ++j)
          errors[r][j] = distance((*most)[r].number(int64_t(j)), (*least)[r].number(int64_t(j)));
      }
      return Status::success();
    }
    for (size_t i : inexact)
      HPC_RETURN_IF_ERROR(addWorst({i}, sums));
    std::vector<Errors> together(results.size());
    if (inexact.size() > 1)
      HPC_RETURN_IF_ERROR(addWorst(inexact, together));
    for (size_t r = 0; r < results.size(); ++r) {
      errors[r] = std::move(sums[r]);
      for (size_t j = 0; j < together[r].size(); ++j)
        errors[r][j] = std::max(errors[r][j], together[r][j]);
    }
    return Status::success();
  }

  /// Two numbers within their bounds of each other may be equal, or ordered either way: between the ends of the bounds, too.
  void leaveCloseOnesOpen(Errors &errors) const {
    forEachElement<2>(results[0]->shape, {broadcastStrides(operands[0].value->shape, results[0]->shape), broadcastStrides(operands[1].value->shape, results[0]->shape)},
                      {0, 0}, [&](int64_t i, const std::array<int64_t, 2> &at) {
                        double reach = 0;
                        for (size_t side : {0, 1})
                          reach += operands[side].bound ? operands[side].bound->floats[size_t(at[side])] : 0;
                        if (reach > 0 && distance(operands[0].value->number(at[0]), operands[1].value->number(at[1])) <= reach)
                          errors[size_t(i)] = 1;
                      });
  }

  /// The most that a product with sums in f32 may lose where numbers below 2^-126 count as 0: pieces of either factor, and the terms.
  double flushed(int64_t terms) const {
    if (doublePrecision || results.front()->dtype == DType::F64)
      return 0;
    double largest = 1;
    for (const Bounded &operand : operands) {
      double ofOperand = 0;
      for (double value : operand.value->floats)
        if (std::isfinite(value))
          ofOperand = std::max(ofOperand, std::abs(value));
      largest += ofOperand;
    }
    return 0x1p-126 * double(terms) * largest;
  }

  /// What a plan is free to do in the op itself.
  Expected<Errors> freedom(unsigned number) const {
    const Tensor &result = *results[number];
    Errors errors;
    if (!result.isFloat() || onlyMoves(op))
      return errors;
    const double inside = epsilonInside(result.dtype), least = doublePrecision || result.dtype == DType::F64 ? 0 : 0x1p-147;
    auto relative = [&](double epsilons) {
      for (double value : result.floats)
        errors.push_back(std::isfinite(value) && value != 0 ? epsilons * inside * std::abs(value) + least : 0);
    };
    if (accessOf(op) == Access::Elementwise) {
      const bool isExactInIeee = isa<nn::DivOp, nn::SqrtOp, nn::ReciprocalOp>(op);
      const bool isNarrowing = isa<nn::CastOp>(op) && epsilon(result.dtype) > inside && operands[0].value->dtype != result.dtype;
      if (isa<nn::GeluOp>(op)) {
        relative(2);
        for (size_t i = 0; i < errors.size(); ++i)
          if (double x = std::abs(operands[0].value->floats[i]); std::isfinite(x))
            errors[i] += 2 * inside * x;
      } else if (effortOf(op) == Effort::Expensive && !isExactInIeee) {
        relative(4);
        if (isStep && isa<nn::ExpOp>(op)) // a running maximum: exponentials are scaled, and rounded, anew
          for (size_t i = 0; i < errors.size(); ++i)
            if (double x = std::abs(operands[0].value->floats[i]); std::isfinite(x))
              errors[i] += (16 + x) * inside * std::abs(result.floats[i]);
      } else if (isStep && isNarrowing) { // who computes the composite whole may leave it out, or round elsewhere
        for (double value : result.floats)
          errors.push_back(std::isfinite(value) ? spacing(result.dtype, value) : 0);
      } else if ((isStep && (linearity(op) == LinearClause::Product || isExactInIeee)) || // contracted with a sum, a product with the reciprocal
                 (doublePrecision && (linearity(op) != LinearClause::None || isExactInIeee))) { // spelled in another way
        relative(2);
      }
      return errors;
    }
    Expected<SummedTerms> terms = summedTerms(op, values(), number);
    if (!terms.ok())
      return terms.status();
    const bool isWholeSum = llvm::all_of(operands, [](const Bounded &operand) { return isWhole(*operand.value); });
    const double small = isWholeSum || accessOf(op) != Access::Product ? 0 : flushed(terms->count);
    for (double size : terms->magnitudes) {
      bool isExact = terms->count <= 1 && accessOf(op) != Access::Product;
      if (isExact || (isWholeSum && size <= 1 / inside))
        errors.push_back(0);
      else if (!doublePrecision && !std::isfinite(roundTo(result.dtype == DType::F64 ? DType::F64 : DType::F32, size)))
        errors.push_back(INFINITY);
      else
        errors.push_back(boundOfSum(terms->count, size, inside) + small);
    }
    return errors;
  }

  Expected<std::vector<SharedTensor>> run() const {
    std::vector<SharedTensor> bounds(results.size());
    const bool isInexact = llvm::any_of(operands, [](const Bounded &operand) { return operand.bound; });
    std::vector<Errors> errors(results.size());
    std::vector<Tensor> exact;
    if (isInexact) {
      Results unrounded = evaluate(values());
      HPC_RETURN_IF_ERROR(unrounded.status());
      exact = std::move(*unrounded);
      HPC_RETURN_IF_ERROR(propagate(exact, errors));
      if (isa<nn::CompareOp>(op))
        leaveCloseOnesOpen(errors[0]);
      if (seeksExtremes(op))
        forEachElement<2>(results[0]->shape, {broadcastStrides(operands[0].value->shape, results[0]->shape), broadcastStrides(operands[1].value->shape, results[0]->shape)},
                          {0, 0}, [&](int64_t i, const std::array<int64_t, 2> &at) {
                            if (operands[0].value->number(at[0]) == operands[1].value->number(at[1]))
                              errors[0][size_t(i)] = 0;
                          });
    }
    for (size_t r = 0; r < results.size(); ++r) {
      Expected<Errors> own = freedom(unsigned(r));
      HPC_RETURN_IF_ERROR(own.status());
      errors[r].resize(std::max(errors[r].size(), own->size()));
      for (size_t j = 0; j < own->size(); ++j)
        errors[r][j] += (*own)[j];
      if (llvm::all_of(errors[r], [](double error) { return error == 0; }))
        continue;
      const Tensor &result = *results[r];
      auto bound = std::make_shared<Tensor>(DType::F64, result.shape);
      for (size_t j = 0; j < errors[r].size(); ++j) {
        double error = errors[r][j];
        if (error == 0)
          continue;
        double value = result.number(int64_t(j));
        if (!result.isFloat() || doublePrecision || std::isinf(error))
          bound->floats[j] = result.dtype == DType::Bool ? 1 : error;
        else if (isInexact) // what absorbs the error rounds it away, in every plan
          bound->floats[j] = std::max(distance(roundTo(result.dtype, exact[r].floats[j] + error), value),
                                      distance(roundTo(result.dtype, exact[r].floats[j] - error), value));
        else
          bound->floats[j] = error + (std::isfinite(value) ? spacing(result.dtype, value) : 0);
      }
      bounds[r] = bound;
    }
    return bounds;
  }
};

/// A composite step by step.
Expected<std::vector<SharedTensor>> boundsOfComposite(Operation *op, ArrayRef<Bounded> operands, bool doublePrecision) {
  struct Held {
    SharedTensor value, bound;
  };
  Definition definition(op);
  DenseMap<Value, Held> held;
  auto borrowed = [](const Tensor *tensor) { return SharedTensor(SharedTensor(), tensor); };
  for (auto [argument, operand] : llvm::zip_equal(definition.block.getArguments(), operands))
    held[argument] = {borrowed(operand.value), borrowed(operand.bound)};
  for (Operation *step : definition.steps) {
    SmallVector<Bounded> inputs;
    SmallVector<const Tensor *> tensors, results;
    for (Value operand : step->getOperands()) {
      const Held &found = held.find(operand)->second;
      inputs.push_back({found.value.get(), found.bound.get()});
      tensors.push_back(found.value.get());
    }
    Results made = evaluateOp(step, tensors, {doublePrecision});
    HPC_RETURN_IF_ERROR(made.status());
    for (const Tensor &result : *made)
      results.push_back(&result);
    Expected<std::vector<SharedTensor>> bounds =
        isa<CompositeOpInterface>(step) && accessOf(step) == Access::Composite
            ? boundsOfComposite(step, inputs, doublePrecision)
            : LocalBounds{step, inputs, results, doublePrecision, /*isStep=*/true}.run();
    HPC_RETURN_IF_ERROR(bounds.status());
    for (size_t r = 0; r < made->size(); ++r)
      held[step->getResult(unsigned(r))] = {std::make_shared<Tensor>(std::move((*made)[r])), (*bounds)[r]};
  }
  std::vector<SharedTensor> bounds;
  for (Value result : definition.results)
    bounds.push_back(held.find(result)->second.bound);
  return bounds;
}
} // namespace

Expected<std::vector<SharedTensor>> localBounds(Operation *op, ArrayRef<Bounded> operands, ArrayRef<const Tensor *> results,
                                                bool doublePrecision) {
  if (isa<CompositeOpInterface>(op) && accessOf(op) == Access::Composite)
    return boundsOfComposite(op, operands, doublePrecision);
  return LocalBounds{op, operands, results, doublePrecision, /*isStep=*/false}.run();
}

} // namespace hpc
