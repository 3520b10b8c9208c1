// Kernels beside products are taken to be fused: each writes its results once, and what it reads is there already.
#include "passes/Search/LayoutCosts.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/Interfaces/Cost.h"
#include "compiler/Interfaces/Structure.h"
#include "passes/Search/LayoutProblem.h"

namespace hpc::search {

using namespace dist;

LayoutCosts::LayoutCosts(Mesh mesh, cost::Machine machine) : axes(std::move(mesh)), machine(std::move(machine)) {
  for (const Mesh::Axis &axis : axes.axes)
    if (axis.role != AxisRole::Time && axis.role != AxisRole::Pipeline)
      ranks.push_back({axis.name, axis.size});
}

LayoutCosts::Number LayoutCosts::number(const Sharding &sharding) {
  auto [entry, isNew] = numbers.try_emplace(toString(sharding), Number(shardings.size()));
  if (isNew)
    shardings.push_back(sharding);
  return entry->second;
}

int64_t LayoutCosts::localElements(const Sharding &sharding) const {
  int64_t elements = 1;
  for (int64_t size : boxShape(sharding, axes))
    elements *= size;
  return elements;
}

/// Runs in a step of what makes or moves such a value.
int64_t LayoutCosts::timesOf(const Sharding &sharding) const {
  return isPerMicroBatch(sharding, axes) ? axes.sizeOf(AxisRole::Time) : 1;
}

static plan::CollectiveKind kindOf(ReshardStep::Kind kind) {
  switch (kind) {
  case ReshardStep::AllReduce:
    return plan::CollectiveKind::AllReduce;
  case ReshardStep::ReduceScatter:
    return plan::CollectiveKind::ReduceScatter;
  case ReshardStep::AllGather:
    return plan::CollectiveKind::AllGather;
  case ReshardStep::AllToAll:
    return plan::CollectiveKind::AllToAll;
  default:
    return plan::CollectiveKind::Permute;
  }
}

double LayoutCosts::collectiveSeconds(const LayoutCollective &collective) {
  auto [entry, isNew] = shapes.try_emplace(collective.axes);
  if (isNew)
    entry->second = cost::shapeOf(machine, ranks, collective.axes);
  return double(collective.times) * cost::collectiveSeconds(machine, entry->second, kindOf(collective.kind), double(collective.bytes));
}

/// Elements of the whole that one rank has before or after a step: pieces are of one size, so an uneven cut is padded.
int64_t LayoutCosts::payload(const ReshardStep &step) const {
  int64_t ranks = 1;
  for (const std::string &axis : step.axes)
    ranks *= axes.size(axis);
  switch (step.kind) {
  case ReshardStep::AllGather:
    return ranks * localElements(step.before);
  case ReshardStep::ReduceScatter:
    return ranks * localElements(step.after);
  case ReshardStep::AllToAll: {
    Sharding chunk = step.before;
    chunk.dims[size_t(step.toDim)][size_t(step.toSub)] = step.after.dims[size_t(step.toDim)][size_t(step.toSub)];
    return ranks * localElements(chunk);
  }
  default:
    return localElements(step.before);
  }
}

static bool isSent(const ReshardStep &step) { return step.kind != ReshardStep::Slice && step.kind != ReshardStep::Accumulate; }

const LayoutCosts::Move &LayoutCosts::move(Number from, Number to, int64_t elementBytes) {
  auto [entry, isNew] = moves.try_emplace({from, to, elementBytes});
  Move &move = entry->second;
  if (!isNew || from == to)
    return move;
  Expected<std::vector<ReshardStep>> steps = planReshard(sharding(from), sharding(to), axes);
  bool crossesTime = steps.ok() && llvm::any_of(*steps, [&](const ReshardStep &step) {
                       return isSent(step) && !axesWithRole(step.axes, axes, AxisRole::Time).empty();
                     });
  if (!steps.ok() || crossesTime) {
    move.seconds = impossible;
    move.isFree = false;
    return move;
  }
  for (const ReshardStep &step : *steps) {
    if (!isSent(step))
      continue;
    move.isFree = false;
    move.collectives.push_back({step.kind, step.axes, payload(step) * elementBytes, timesOf(step.before)});
    move.seconds += collectiveSeconds(move.collectives.back());
  }
  return move;
}

std::vector<const LayoutCosts::Move *> LayoutCosts::movesOf(Number has, const std::vector<Number> &forms, int64_t elementBytes) {
  std::vector<const Move *> all;
  for (Number form : forms) {
    const Move &direct = move(has, form, elementBytes);
    if (direct.isFree)
      continue;
    bool isSlice = llvm::any_of(forms, [&](Number other) {
      return other != form && !move(has, other, elementBytes).isFree && move(other, form, elementBytes).isFree;
    });
    if (!isSlice)
      all.push_back(&direct);
  }
  return all;
}

/// The share of an op's operations that one rank has.
static double localShare(const OpSharding &sharding, const Mesh &mesh) {
  double share = 1;
  for (auto [factor, cut] : llvm::zip_equal(sharding.rule.factors, sharding.factors))
    if (factor.size > 1)
      share *= double(boxSize(cut, mesh)) / double(factor.size);
  return share;
}

static bool hasFactor(ArrayRef<ShardingRule::DimFactors> dims, int factor) {
  return llvm::any_of(dims, [&](const ShardingRule::DimFactors &dim) { return llvm::is_contained(dim, factor); });
}

double LayoutCosts::compute(Operation *op, const OpSharding &sharding) {
  std::optional<Access> access = accessOf(op);
  if (!access || *access == Access::Alias || *access == Access::Source)
    return 0;
  double written = 0, read = 0;
  int64_t times = 1;
  for (OpResult result : op->getResults()) {
    Sharding has = sharding.result(result.getResultNumber(), axes);
    written += double(localElements(has) * elementBytes(nn::tensorType(result).getElementType()));
    times = std::max(times, timesOf(has));
  }
  for (OpOperand &operand : op->getOpOperands()) {
    Sharding wanted = sharding.operand(operand.getOperandNumber(), axes);
    read += double(localElements(wanted) * elementBytes(nn::tensorType(operand.get()).getElementType()));
    times = std::max(times, timesOf(wanted));
  }
  double seconds = written / machine.bytesPerSecond;
  if (auto costed = dyn_cast<CostOpInterface>(op); costed && effortOf(op) == Effort::Product) {
    double flops = double(costed.getFlops()) * localShare(sharding, axes), n = 1, k = 1;
    for (auto [number, cut] : llvm::enumerate(sharding.factors)) {
      bool isResult = llvm::any_of(sharding.rule.results, [factor = int(number)](auto &dims) { return hasFactor(dims, factor); });
      if (!isResult)
        k *= double(boxSize(cut, axes));
      else if (!hasFactor(sharding.rule.operands.front(), int(number)))
        n *= double(boxSize(cut, axes));
    }
    DType type = dtypeOf(nn::tensorType(op->getOperand(0)).getElementType());
    seconds = std::max(machine.productSeconds(type, flops / (2 * n * k), n, k), (read + written) / machine.bytesPerSecond);
  }
  return double(times) * seconds;
}

// ---- inside of composites -----------------------------------------------------------------------

LayoutCosts::Move LayoutCosts::atOnce(Operation *op, const OpSharding &sharding) {
  Move sum;
  for (OpResult result : op->getResults()) {
    AxisNames over;
    for (auto [number, factor] : llvm::enumerate(sharding.rule.factors))
      if (factor.combinesAtOnce() && !hasFactor(sharding.rule.results[result.getResultNumber()], int(number)))
        over = unite(over, axesOf(sharding.factors[number]));
    if (over.empty())
      continue;
    Sharding has = sharding.result(result.getResultNumber(), axes);
    sum.isFree = false;
    sum.collectives.push_back({ReshardStep::AllReduce, over, localElements(has) * elementBytes(nn::tensorType(result).getElementType()), timesOf(has)});
    sum.seconds += collectiveSeconds(sum.collectives.back());
  }
  return sum;
}

static bool cutsInternally(Operation *op, const OpSharding &sharding) {
  return isa<CompositeOpInterface>(op) && llvm::any_of(llvm::zip_equal(sharding.rule.factors, sharding.factors), [](auto pair) {
           return std::get<0>(pair).isInternal && isCut(std::get<1>(pair));
         });
}

static void operator+=(LayoutCosts::Move &sum, const LayoutCosts::Move &part) {
  sum.seconds += part.seconds;
  sum.isFree &= part.isFree;
  sum.collectives.insert(sum.collectives.end(), part.collectives.begin(), part.collectives.end());
}

LayoutCosts::Move LayoutCosts::inside(Operation *op, const OpSharding &sharding) {
  Move sum = atOnce(op, sharding);
  if (cutsInternally(op, sharding))
    sum += ofDefinition(op, sharding);
  return sum;
}

const LayoutCosts::Move &LayoutCosts::ofDefinition(Operation *op, const OpSharding &sharding) {
  std::string key;
  llvm::raw_string_ostream(key) << op->getName() << op->getPropertiesAsAttribute() << sharding.rule.text;
  for (const DimSharding &cut : sharding.factors)
    key += toString(cut);
  for (Value operand : op->getOperands())
    key += toString(replicated(nn::shapeOf(operand).vec())) + (nn::tensorType(operand).getElementType().isF32() ? "" : "narrow");
  auto [entry, isNew] = insides.try_emplace(key);
  if (!isNew)
    return entry->second;
  // The definition, with the shardings that follow from its operands; what each op wants of its operands is moved.
  MLIRContext *context = op->getContext();
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(op->getLoc());
  OpBuilder builder(context);
  builder.setInsertionPointToStart(scratch->getBody());
  auto function = func::FuncOp::create(builder, op->getLoc(), "definition",
                                       FunctionType::get(context, SmallVector<Type>(op->getOperandTypes()), {}));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  for (auto [operand, argument] : llvm::zip_equal(op->getOperands(), body->getArguments()))
    mapping.map(operand, argument);
  Operation *copy = builder.clone(*op, mapping);
  llvm::DenseMap<Value, Sharding> has;
  for (OpOperand &operand : copy->getOpOperands())
    has[operand.get()] = sharding.operand(operand.getOperandNumber(), axes);
  std::map<std::pair<const void *, Number>, bool> made;
  Move &sum = entry->second;
  auto decompose = [&](Operation *composite, auto &decompose) -> void {
    Operation *before = composite->getPrevNode();
    builder.setInsertionPoint(composite);
    SmallVector<Value> values = cast<CompositeOpInterface>(composite).decompose(builder);
    Operation *first = before ? before->getNextNode() : &body->front();
    SmallVector<Operation *> ops;
    for (Operation *each = first; each != composite; each = each->getNextNode())
      ops.push_back(each);
    auto want = [&](Value value, const Sharding &wanted) {
      Number from = number(has.lookup(value)), to = number(wanted);
      if (from == to || !made.insert({{value.getAsOpaquePointer(), to}, true}).second)
        return;
      sum += move(from, to, elementBytes(nn::tensorType(value).getElementType()));
    };
    for (Operation *each : ops) {
      auto ruled = dyn_cast<ShardingRuleOpInterface>(each);
      if (!ruled) {
        for (Value result : each->getResults())
          has[result] = replicated(nn::shapeOf(result).vec());
        continue;
      }
      SmallVector<Sharding> operands;
      for (Value operand : each->getOperands())
        operands.push_back(has.lookup(operand));
      OpSharding inferred = inferFromOperands(ruled.getShardingRule(), operands, axes);
      for (OpOperand &operand : each->getOpOperands())
        want(operand.get(), inferred.operand(operand.getOperandNumber(), axes));
      sum += atOnce(each, inferred);
      for (OpResult result : each->getResults())
        has[result] = inferred.result(result.getResultNumber(), axes);
      if (cutsInternally(each, inferred))
        decompose(each, decompose);
    }
    for (auto [result, value] : llvm::zip_equal(composite->getResults(), values)) {
      Sharding wanted = composite == copy ? sharding.result(result.getResultNumber(), axes) : has.lookup(result);
      want(value, wanted);
    }
  };
  decompose(copy, decompose);
  return sum;
}

} // namespace hpc::search
