// Integers that are affine in their coordinates, followed through views and sums down to iotas and constants.
#include "passes/Raise/CausalMask.h"

#include "passes/Raise/Scalars.h"

#include <cmath>

namespace hpc {

SmallVector<Conjunct> conjunctsOf(Value condition, bool isNegated) {
  SmallVector<Conjunct> parts, pending{{condition, isNegated}};
  // and(m, m) of and(m, m) of ... is m.
  llvm::DenseSet<llvm::PointerIntPair<void *, 1, bool>> seen;
  while (!pending.empty()) {
    Conjunct part = pending.pop_back_val();
    if (!seen.insert({part.condition.getAsOpaquePointer(), part.isNegated}).second)
      continue;
    Operation *op = part.condition.getDefiningOp();
    if (isa_and_present<nn::NotOp>(op))
      pending.push_back({op->getOperand(0), !part.isNegated});
    else if (part.isNegated ? isa_and_present<nn::OrOp>(op) : isa_and_present<nn::AndOp>(op))
      for (Value operand : llvm::reverse(op->getOperands())) // left to right, from the end of the stack
        pending.push_back({operand, part.isNegated});
    else
      parts.push_back(part);
  }
  return parts;
}

namespace {
/// start + sum of steps[dim] * coordinate[dim]; the step of a dim of size 1 is 0.
struct Affine {
  int64_t start = 0;
  SmallVector<int64_t> steps;
};
} // namespace

/// Steps of a value of shape `from` as one of shape `to` sees them; the dims that are not of size 1 must be the same
/// ones.
static std::optional<SmallVector<int64_t>> reshapeSteps(ArrayRef<int64_t> steps, ArrayRef<int64_t> from,
                                                        ArrayRef<int64_t> to) {
  SmallVector<int64_t> result(to.size(), 0);
  size_t source = 0;
  for (size_t dim = 0; dim < to.size(); ++dim) {
    if (to[dim] == 1)
      continue;
    while (source < from.size() && from[source] == 1)
      ++source;
    if (source == from.size() || from[source] != to[dim])
      return std::nullopt;
    result[dim] = steps[source++];
  }
  return result;
}

/// Ops of one side of a comparison that are looked at; exporters' positions take a handful.
constexpr int maxPositionOps = 64;

static std::optional<Affine> affineOf(Value value, int &opsLeft) {
  ArrayRef<int64_t> shape = nn::shapeOf(value);
  Affine affine{0, SmallVector<int64_t>(shape.size(), 0)};
  if (std::optional<double> number = scalarOf(value)) {
    affine.start = int64_t(*number);
    return std::abs(*number) < 1e15 && double(affine.start) == *number ? std::optional(affine) : std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (auto iota = dyn_cast_if_present<nn::IotaOp>(op)) {
    if (iota.getOffset())
      return std::nullopt;
    affine.start = int64_t(iota.getStart());
    if (shape[iota.getDim()] != 1)
      affine.steps[iota.getDim()] = int64_t(iota.getStep());
    return affine;
  }
  if (!isa_and_present<nn::ReshapeOp, nn::BroadcastOp, nn::TransposeOp, nn::CastOp, nn::AddOp, nn::SubOp>(op) ||
      getElementTypeOrSelf(value.getType()).isInteger(1))
    return std::nullopt;
  std::optional<Affine> operand = opsLeft-- > 0 ? affineOf(op->getOperand(0), opsLeft) : std::nullopt;
  if (!operand)
    return std::nullopt;
  ArrayRef<int64_t> from = nn::shapeOf(op->getOperand(0));
  affine.start = operand->start;
  if (isa<nn::ReshapeOp>(op)) {
    std::optional<SmallVector<int64_t>> steps = reshapeSteps(operand->steps, from, shape);
    if (!steps)
      return std::nullopt;
    affine.steps = *steps;
    return affine;
  }
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
      affine.steps[dim] = operand->steps[source];
    return affine;
  }
  // Aligned from the right, steps along broadcast dims are 0 already.
  auto addSteps = [&](const Affine &part, int64_t sign) {
    size_t missing = shape.size() - part.steps.size();
    for (auto [dim, step] : llvm::enumerate(part.steps))
      affine.steps[missing + dim] += sign * step;
  };
  addSteps(*operand, 1);
  if (isa<nn::AddOp, nn::SubOp>(op)) {
    std::optional<Affine> second = affineOf(op->getOperand(1), opsLeft);
    if (!second)
      return std::nullopt;
    int64_t sign = isa<nn::SubOp>(op) ? -1 : 1;
    affine.start += sign * second->start;
    addSteps(*second, sign);
  }
  return affine;
}

namespace {
/// Query i sees key j if sign * (i - j) + start >= 0.
struct Bound {
  int64_t start, sign;
  int64_t queries, keys;
};
} // namespace

static std::optional<Bound> boundOf(const Conjunct &conjunct) {
  // A mask may get its leading dims after the comparison.
  Value condition = conjunct.condition;
  while (Operation *view = condition.getDefiningOp()) {
    ArrayRef<int64_t> shape = nn::shapeOf(condition);
    if (!isa<nn::ReshapeOp, nn::BroadcastOp>(view) || shape.size() < 2 || nn::shapeOf(view->getOperand(0)).size() < 2 ||
        nn::shapeOf(view->getOperand(0)).take_back(2) != shape.take_back(2))
      break;
    condition = view->getOperand(0);
  }
  auto compare = condition.getDefiningOp<nn::CompareOp>();
  if (!compare)
    return std::nullopt;
  int leftOps = maxPositionOps, rightOps = maxPositionOps;
  std::optional<Affine> left = affineOf(compare.getLhs(), leftOps), right = affineOf(compare.getRhs(), rightOps);
  size_t rank = nn::shapeOf(compare.getResult()).size();
  if (!left || !right || rank < 2)
    return std::nullopt;

  // left - right = start + row * i + column * j, compared with 0.
  int64_t start = left->start - right->start;
  SmallVector<int64_t> steps(rank, 0);
  for (auto [dim, step] : llvm::enumerate(left->steps))
    steps[rank - left->steps.size() + dim] += step;
  for (auto [dim, step] : llvm::enumerate(right->steps))
    steps[rank - right->steps.size() + dim] -= step;
  int64_t row = steps[rank - 2], column = steps[rank - 1];
  if (llvm::any_of(ArrayRef<int64_t>(steps).drop_back(2), [](int64_t step) { return step != 0; }))
    return std::nullopt;

  using Predicate = nn::ComparePredicate;
  Predicate predicate = compare.getPredicate();
  if (conjunct.isNegated)
    switch (predicate) {
    case Predicate::lt:
      predicate = Predicate::ge;
      break;
    case Predicate::le:
      predicate = Predicate::gt;
      break;
    case Predicate::gt:
      predicate = Predicate::le;
      break;
    case Predicate::ge:
      predicate = Predicate::lt;
      break;
    case Predicate::eq:
    case Predicate::ne:
      return std::nullopt;
    }
  // As "difference >= 0", in integers.
  switch (predicate) {
  case Predicate::ge:
    break;
  case Predicate::gt:
    start -= 1;
    break;
  case Predicate::le:
    start = -start, row = -row, column = -column;
    break;
  case Predicate::lt:
    start = -start - 1, row = -row, column = -column;
    break;
  case Predicate::eq:
  case Predicate::ne:
    return std::nullopt;
  }
  if (std::abs(row) != 1 || column != -row)
    return std::nullopt;
  ArrayRef<int64_t> shape = nn::shapeOf(compare.getResult());
  return Bound{start, row, shape[rank - 2], shape[rank - 1]};
}

std::optional<int64_t> causalOffset(const Conjunct &conjunct) {
  std::optional<Bound> bound = boundOf(conjunct);
  return bound && bound->sign == 1 ? std::optional(bound->start) : std::nullopt;
}

bool isWindow(const Conjunct &conjunct) {
  std::optional<Bound> bound = boundOf(conjunct);
  return bound && bound->sign == -1 && bound->start >= 0 && bound->queries - bound->start <= bound->keys;
}

} // namespace hpc
