// Seeds: the shardings that a sidecar or a layout gives to a few values before anything flows.
// A cut of a seed stays; each dim that it leaves uncut is open to others or closed.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "compiler/Subject.h"
#include "passes/Propagate/Propagation.h"

namespace hpc {

using namespace dist;

/// Removes axes of size 1 and cuts of a single element, which divide nothing.
static Sharding withoutEmptyCuts(Sharding sharding, const Mesh &mesh) {
  for (DimSharding &dim : sharding.dims)
    for (SubDim &sub : dim)
      if (sub.size == 1)
        sub.axes.clear();
  return normalize(sharding, mesh);
}

/// "the sidecar", with its line where that is known.
static std::string askerOf(Value value, const Seed &seed) {
  SidecarPlaces places = sidecarPlaces(value.getDefiningOp()->getParentOfType<ModuleOp>());
  auto place = places.find(subjectOf(value));
  return "the " + seed.origin + (place == places.end() ? "" : " (" + place->second + ")");
}

LogicalResult Propagation::seedResult(OpState &state, unsigned result, const Seed &seed, const CutOrigins &origins) {
  const ShardingRule &rule = state.sharding.rule;
  for (auto [d, dim] : llvm::enumerate(rule.results[result])) {
    SmallVector<DimSharding> groups;
    bool nests = splitByFactors(rule, dim, seed.sharding.dims[d], mesh, groups);
    for (unsigned i = 0; nests && i < dim.size(); ++i)
      nests =
          !isCut(groups[i]) || groups[i] == state.sharding.factors[dim[i]] ||
          (!isCut(state.sharding.factors[dim[i]]) && mayTake(state, dim[i], groups[i]) &&
           !intersects(axesOf(groups[i]), axesOf(state.sharding.factors)));
    DimSharding possible = project(rule.results[result], state.sharding.factors, mesh).dims[d];
    if (!nests && seed.isBinding())
      return userError(state.op, ErrorKind::Sidecar)
             << subjectOf(state.op->getResult(result)) << ": the op (" << rule.text << ") cannot compute dim " << d
             << " cut " << toString(seed.sharding.dims[d]) << " as " << askerOf(state.op->getResult(result), seed)
             << " asks; it can have " << (isCut(possible) ? "" : "that dim whole, ") << toString(possible)
             << ": ask for that, or for a cut that nests with the op's dims";
    if (!nests) {
      remark(state.op, "the op cannot compute dim " + std::to_string(d) + " cut " + toString(seed.sharding.dims[d]) +
                           " as the seed asks (" + rule.text + "); it stays as its operands have it");
      continue;
    }
    for (auto [factor, group] : llvm::zip(dim, groups)) {
      if (isCut(group)) {
        state.sharding.factors[factor] = group;
        state.anchored.set(factor);
      }
      if (!seed.open[d])
        state.closed.set(factor);
    }
  }
  state.origins.insert(origins.begin(), origins.end());
  touch(state);
  return success();
}

static bool isCache(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && nn::argumentPort(cast<func::FuncOp>(argument.getOwner()->getParentOp()), argument.getArgNumber()).isCache();
}

LogicalResult Propagation::seedValue(Value value, const Seed &given) {
  std::string subject = subjectOf(value);
  Status legal = verify(given.sharding, nn::shapeOf(value).vec(), mesh);
  if (legal.ok() && !given.sharding.partial.empty())
    legal = Status::error(ErrorKind::Sidecar,
                          "sharding '" + toString(given.sharding) + "': a seed cannot be partial");
  auto source = sourceIndex.find(value);
  bool isKept = source != sourceIndex.end() && sources[source->second].kind == SourceState::Kept;
  if (AxisNames time = axesWithRole(cutAxes(given.sharding), mesh, AxisRole::Time); legal.ok() && isKept && !isCache(value) && !time.empty())
    legal = Status::error(ErrorKind::Sidecar, "sharding '" + toString(given.sharding) + "': cuts over '" + time[0] +
                                                  "', which is time; what lives across steps cannot");
  if (!legal.ok())
    return userError(value.getLoc(), legal.kind()) << subject << ": " << legal.message();
  Seed seed = given;
  seed.sharding = withoutEmptyCuts(given.sharding, mesh);
  CutOrigins origins;
  for (const std::string &axis : cutAxes(seed.sharding))
    origins[axis] = "the " + seed.origin + "'s cut of " + subject;
  if (OpState *producer = producerOf(value))
    return seedResult(*producer, cast<OpResult>(value).getResultNumber(), seed, origins);
  SourceState &state = sources[source->second];
  if (state.seeded || state.closed.any())
    return success();
  state.sharding = seed.sharding;
  state.origins = origins;
  state.seeded = true;
  for (unsigned dim = 0; dim < seed.open.size(); ++dim)
    if (!seed.open[dim])
      state.closed.set(dim);
  touchUsers(value);
  return success();
}

/// A reader that cannot take a dim's cut, or has the axes elsewhere, stays as it is.
void Propagation::seedReaders(Value value, const Seed &given) {
  Seed seed = given;
  seed.sharding = withoutEmptyCuts(given.sharding, mesh);
  for (OpOperand &use : value.getUses()) {
    OpState *state = stateOf(use.getOwner());
    if (!state)
      continue; // the return: see returnedSharding
    const ShardingRule &rule = state->sharding.rule;
    for (auto [d, dim] : llvm::enumerate(rule.operands[use.getOperandNumber()])) {
      SmallVector<DimSharding> groups;
      if (!splitByFactors(rule, dim, seed.sharding.dims[d], mesh, groups))
        continue;
      for (auto [factor, group] : llvm::zip(dim, groups)) {
        if (!isCut(group) || isCut(state->sharding.factors[factor]) || !mayTake(*state, factor, group) ||
            intersects(axesOf(group), axesOf(state->sharding.factors)))
          continue;
        state->sharding.factors[factor] = group;
        state->anchored.set(factor);
        for (const std::string &axis : axesOf(group))
          state->origins[axis] = "the " + seed.origin + "'s cut of what reads " + subjectOf(value);
      }
    }
    touch(*state);
  }
}

std::set<int64_t> Propagation::priorities() const {
  std::set<int64_t> found;
  (void)forEachSeeded([&](Value, const Seed &seed) {
    found.insert(seed.priority);
    return success();
  });
  func::FuncOp main = function;
  for (Operation &op : main.front())
    if (op.hasAttr(readSeedAttrName))
      if (std::optional<Seed> seed = readSeedOf(op.getResult(0)))
        found.insert(seed->priority);
  return found;
}

LogicalResult Propagation::seed(int64_t priority) {
  if (failed(forEachSeeded([&](Value value, const Seed &seed) {
        return seed.priority == priority ? seedValue(value, seed) : success();
      })))
    return failure();
  func::FuncOp main = function;
  for (Operation &op : main.front())
    if (op.hasAttr(readSeedAttrName))
      if (std::optional<Seed> seed = readSeedOf(op.getResult(0)); seed && seed->priority == priority)
        seedReaders(op.getResult(0), *seed);
  return success();
}

LogicalResult Propagation::forEachSeeded(llvm::function_ref<LogicalResult(Value, const Seed &)> visit) const {
  auto visitAll = [&](ValueRange values) {
    for (Value value : values)
      if (std::optional<Seed> seed = seedOf(value); seed && failed(visit(value, *seed)))
        return failure();
    return success();
  };
  func::FuncOp main = function;
  if (failed(visitAll(main.getArguments())))
    return failure();
  for (Operation &op : main.front())
    if (op.hasAttr(seedAttrName) && failed(visitAll(op.getResults())))
      return failure();
  return success();
}

void Propagation::closeWholeOutputs() {
  for (OpState &state : ops)
    for (int64_t dim : wholeOutputDims(state.op))
      for (OpOperand &use : state.op->getResult(0).getUses())
        if (OpState *user = stateOf(use.getOwner()))
          for (int factor : user->sharding.rule.operands[use.getOperandNumber()][dim])
            user->whole.set(factor);
}

void Propagation::seedWritten() {
  followsStorage = true;
  for (auto &[result, index] : written) {
    Value value = function.front().getTerminator()->getOperand(result);
    const SourceState &target = sources[index];
    OpState *producer = producerOf(value);
    if (!producer || isReplicated(target.sharding))
      continue;
    // Dim by dim: an op that cannot follow one leaves the rest to a reshard at the return.
    for (unsigned dim = 0; dim < target.sharding.dims.size(); ++dim)
      if (isCut(target.sharding.dims[dim]))
        (void)offerToOp(*producer, cast<OpResult>(value).getResultNumber(), dim, target.sharding.dims[dim],
                        target.origins);
  }
}

} // namespace hpc
