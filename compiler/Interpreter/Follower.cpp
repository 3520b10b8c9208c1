// Bounds of values that were not compared, op by op: regions and stages give those of what they yield, collectives move them.
#include "compiler/Interpreter/Follower.h"

#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/Interpreter/Boxes.h"

#include <cmath>

namespace hpc {

using namespace interpreter;

/// Operands of regions are their block's arguments inside.
static Value outside(Value value) {
  while (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (!isa<nn::FusedOp, pipe::StageOp>(parent))
      break;
    value = parent->getOperand(argument.getArgNumber());
  }
  return value;
}

LocalTensors Follower::boundsOf(Value value) const { return kept.lookup(outside(value)).bounds; }

double Follower::largestBound(Value value) const {
  double largest = 0;
  for (const SharedTensor &bound : boundsOf(value))
    for (double each : bound ? ArrayRef<double>(bound->floats) : ArrayRef<double>())
      largest = std::max(largest, each);
  return largest;
}

/// The kind of a collective's reduction, if it is one.
static std::optional<ReduceKind> reductionOf(Operation *op) {
  if (auto reduce = dyn_cast<dist::AllReduceOp>(op))
    return reduce.getKind();
  if (isa<dist::AccumulateOp, dist::ReduceScatterOp, dist::RawReduceScatterOp>(op))
    return ReduceKind::Sum;
  return std::nullopt;
}

/// Bounds move and add up as numbers do; factors that are off by their bounds make a product that is off by the most. A sum or product of
/// ranks adds an error for each of its terms; one of micro-batches rounds after each.
Expected<LocalTensors> Follower::boundsOfCollective(Operation *op, const LocalTensors &operand, const LocalTensors &result) {
  LocalTensors own = boundsOf(op->getOperand(0));
  const std::optional<ReduceKind> reduction = reductionOf(op);
  const bool multiplies = reduction == ReduceKind::Prod && operand.front()->isFloat();
  const bool addsUp = multiplies || (reduction == ReduceKind::Sum && operand.front()->isFloat());
  if (own.empty() && !addsUp)
    return LocalTensors();
  own.resize(operand.size());
  for (auto [bound, tensor] : llvm::zip(own, operand))
    if (!bound)
      bound = std::make_shared<Tensor>(DType::F64, tensor->shape);
  LocalTensors magnitudes, largest;
  for (auto [tensor, bound] : llvm::zip(operand, own)) {
    auto sizes = std::make_shared<Tensor>(*tensor), most = std::make_shared<Tensor>(DType::F64, tensor->shape);
    for (auto [value, size, error] : llvm::zip(sizes->floats, most->floats, bound->floats)) {
      value = std::abs(value);
      size = value + error;
    }
    magnitudes.push_back(sizes);
    largest.push_back(most);
  }
  LocalTensors bounds;
  if (auto fill = dyn_cast<dist::FillTailOp>(op)) { // what it fills in is exact
    for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
      auto bound = std::make_shared<Tensor>(*own[c]);
      fillPadding(*bound, dist::shardingOf(fill.getOperand()), mesh, mesh.coordinate(c), fill.getDims(), 0, 0);
      bounds.push_back(bound);
    }
    return bounds;
  }
  if (!result.front()->isFloat()) { // whole numbers on either side of a jump
    for (const SharedTensor &tensor : result) {
      auto bound = std::make_shared<Tensor>(DType::F64, tensor->shape);
      std::fill(bound->floats.begin(), bound->floats.end(), INFINITY);
      bounds.push_back(bound);
    }
    return bounds;
  }
  auto moved = runCollective(op, multiplies ? largest : own, mesh);
  HPC_RETURN_IF_ERROR(moved.status());
  bounds.assign(moved->begin(), moved->end());
  if (!addsUp)
    return bounds;
  auto sizes = runCollective(op, magnitudes, mesh);
  HPC_RETURN_IF_ERROR(sizes.status());
  const DType dtype = result.front()->dtype;
  const double epsilon = doublePrecision ? 0x1p-52 : epsilonOf(dtype);
  const double ofSum = isa<dist::AccumulateOp>(op) ? epsilon : std::min(epsilon, 0x1p-23);
  for (size_t c = 0; c < bounds.size(); ++c) {
    auto bound = std::make_shared<Tensor>(*bounds[c]);
    for (size_t i = 0; multiplies && i < bound->floats.size(); ++i)
      bound->floats[i] -= (*sizes)[c]->floats[i];
    for (size_t i = 0; i < bound->floats.size(); ++i)
      if (double size = (*sizes)[c]->floats[i]; size > 0)
        bound->floats[i] += boundOfSum(int64_t(operand.size()), size, ofSum) + (doublePrecision ? 0 : spacing(dtype, result[c]->floats[i]));
    bounds[c] = bound;
  }
  return bounds;
}

Expected<std::vector<LocalTensors>> Follower::boundsAfter(Operation *op, ArrayRef<LocalTensors> operands, ArrayRef<LocalTensors> results) {
  std::vector<LocalTensors> after(results.size());
  if (isa<nn::FusedOp, pipe::StageOp>(op)) {
    for (auto [bound, inside] : llvm::zip_equal(after, op->getRegion(0).front().getTerminator()->getOperands()))
      bound = boundsOf(inside);
    return after;
  }
  if (isa<pipe::TransferOp>(op)) {
    after.front() = boundsOf(op->getOperand(0));
    return after;
  }
  if (isa<dist::DistDialect>(op->getDialect())) {
    if (operands.empty())
      return after;
    Expected<LocalTensors> bound = boundsOfCollective(op, operands.front(), results.front());
    HPC_RETURN_IF_ERROR(bound.status());
    after.front() = std::move(*bound);
    return after;
  }
  SmallVector<LocalTensors> own;
  for (Value operand : op->getOperands())
    own.push_back(boundsOf(operand));
  std::map<std::vector<const Tensor *>, std::vector<SharedTensor>> known; // coordinates that read the same share a result
  for (size_t c = 0; c < size_t(mesh.numCoordinates()); ++c) {
    SmallVector<Bounded> inputs;
    std::vector<const Tensor *> key;
    for (size_t i = 0; i < operands.size(); ++i) {
      inputs.push_back({operands[i][c].get(), own[i].empty() ? nullptr : own[i][c].get()});
      key.insert(key.end(), {inputs.back().value, inputs.back().bound});
    }
    SmallVector<const Tensor *> made;
    for (const LocalTensors &result : results)
      made.push_back(result[c].get());
    auto [found, isNew] = known.try_emplace(key);
    if (isNew) {
      Expected<std::vector<SharedTensor>> bounds = localBounds(op, inputs, made, doublePrecision);
      HPC_RETURN_IF_ERROR(bounds.status());
      found->second = std::move(*bounds);
    }
    for (size_t r = 0; r < results.size(); ++r)
      if (found->second[r]) {
        after[r].resize(size_t(mesh.numCoordinates()));
        after[r][c] = found->second[r];
      }
  }
  return after;
}

Status Follower::follow(Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results) {
  Expected<std::vector<LocalTensors>> after = boundsAfter(op, operands, results);
  HPC_RETURN_IF_ERROR(after.status().at(describeOp(op)));
  for (auto [value, tensors, bound] : llvm::zip_equal(op->getResults(), results, *after)) {
    const LocalTensors before = tensors;
    HPC_RETURN_IF_ERROR(judge(value, tensors, bound));
    if (isa<dist::FillTailOp>(op))
      tensors = before; // with what it filled in
    for (size_t c = 0; c < bound.size(); ++c)
      if (tensors[c] != before[c])
        bound[c] = nullptr;
    if (llvm::any_of(bound, [](const SharedTensor &each) { return each != nullptr; }))
      kept[value] = {std::move(bound), std::distance(value.use_begin(), value.use_end())};
  }
  auto release = [&](Value value) {
    if (auto found = kept.find(value); found != kept.end() && --found->second.usesLeft <= 0)
      kept.erase(found);
  };
  for (Value operand : op->getOperands())
    release(operand);
  for (Region &region : op->getRegions())
    for (Value inside : region.front().getTerminator()->getOperands())
      release(inside);
  return Status::success();
}

} // namespace hpc
