// Pass hpc-insert-reshards: every operand gets the sharding that its op's factors need.
// Invariant: one reshard for each value and wanted sharding; a sharding that slicing gives from another wanted one is
// made from that.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Dialect/NN/BatchDims.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"
#include "passes/Partition/Passes.h"
#include "passes/Partition/ReshardCause.h"

namespace hpc {
#define GEN_PASS_DEF_INSERTRESHARDS
#include "passes/Partition/Passes.h.inc"

using namespace dist;

namespace {
/// The sharding that a use needs.
struct Want {
  OpOperand *use;
  Sharding target;
};

class Resharder {
public:
  /// `zero`: the level of hpc-annotate-zero.
  Resharder(const Mesh &mesh, int64_t zero) : mesh(mesh), cutsStates(zero > 0), scattersFirst(zero >= 2) {}

  /// The sharding that each operand of an op must have.
  LogicalResult addWants(ShardingRuleOpInterface op) {
    std::optional<FactorShardings> factors = factorsOf(op);
    if (!factors)
      return userError(op, ErrorKind::Internal) << "has no " << factorsAttrName << "; hpc-propagate-shardings gives it";
    OpSharding sharding{op.getShardingRule(), *factors, {}, -1};
    sharding.setPassing(op);
    for (OpOperand &use : op->getOpOperands())
      addWant(use, sharding.operand(use.getOperandNumber(), mesh));
    return success();
  }

  /// A reshard that an earlier pass put there is redone here, so that users share it.
  void addWantsThrough(ReshardOp reshard) {
    Sharding target = shardingOf(reshard.getResult());
    Value source = reshard.getOperand();
    for (OpOperand &use : llvm::make_early_inc_range(reshard.getResult().getUses())) {
      use.set(source);
      returned.push_back({&use, target});
    }
  }

  void addWant(OpOperand &use, const Sharding &target) {
    wants.push_back({&use, target});
    std::vector<Sharding> &targets = wanted[use.get()];
    if (!llvm::is_contained(targets, target))
      targets.push_back(target);
  }

  LogicalResult insertAll() {
    for (Want &want : wants) {
      Value source = want.use->get();
      FailureOr<Value> value = materialize(source, want.target, want.use->getOwner());
      if (failed(value))
        return failure();
      want.use->set(*value);
    }
    return success();
  }

  SmallVector<Want> returned;

private:
  FailureOr<Value> materialize(Value source, const Sharding &target, Operation *user) {
    Sharding from = shardingOf(source);
    if (normalize(from, mesh) == normalize(target, mesh))
      return source;
    for (auto &[sharding, value] : made[source])
      if (sharding == target)
        return value;
    FailureOr<int64_t> direct = bytes(source, from, target, user);
    if (failed(direct))
      return failure();
    Value origin = source;
    if (std::optional<Sharding> piece = scatteredFirst(from, target)) {
      FailureOr<Value> scattered = materialize(source, *piece, user);
      if (failed(scattered))
        return failure();
      origin = *scattered;
      direct = 0;
    }
    for (const Sharding &other : wanted[source]) {
      if (*direct == 0)
        break;
      if (other == target || normalize(other, mesh) == normalize(from, mesh) || slicesTo(target, other) ||
          !slicesTo(other, target))
        continue;
      FailureOr<Value> made = materialize(source, other, user);
      if (failed(made))
        return failure();
      origin = *made;
      break;
    }
    Value result = create(origin, source, target, user);
    made[source].push_back({target, result});
    return result;
  }

  Value create(Value operand, Value source, const Sharding &target, Operation *user) {
    OpBuilder builder(user);
    bool isReturn = isa<func::ReturnOp>(user);
    bool completes = shardingOf(operand).partial != target.partial;
    // A gathered parameter is written at once, and a gradient that is to be a piece becomes one: neither waits for the
    // update at the end.
    if (Operation *made = operand.getDefiningOp(); made && (isReturn || (cutsStates && completes)))
      builder.setInsertionPointAfter(made);
    ReshardCause why = causeOf(operand, isReturn ? nullptr : user, shardingOf(operand), target);
    Operation *producer = source.getDefiningOp();
    Location loc = producer && (completes || isReturn) ? producer->getLoc() : user->getLoc();
    auto reshard = ReshardOp::create(builder, loc, withSharding(nn::tensorType(source), target), operand,
                                     builder.getStringAttr(why.cause),
                                     why.avoid.empty() ? StringAttr() : builder.getStringAttr(why.avoid));
    setValueIds(reshard, {{}, valueIdsOf(producer).made});
    return reshard;
  }

  /// For a sum over time that data parallelism cuts in the end: the cut to make in every micro-batch, so that each rank
  /// accumulates its piece alone. Other sums over ranks wait until the end of the step.
  std::optional<Sharding> scatteredFirst(const Sharding &from, const Sharding &to) const {
    AxisNames cut = cutAxes(to);
    auto isScattered = [&](const std::string &axis) {
      return !rowAxesOf({axis}, mesh).empty() && llvm::is_contained(cut, axis);
    };
    bool endsTime = llvm::any_of(axesWithRole(from.partial, mesh, AxisRole::Time),
                                 [&](const std::string &axis) { return !llvm::is_contained(to.partial, axis); });
    if (!scattersFirst || !endsTime || llvm::none_of(from.partial, isScattered))
      return std::nullopt;
    Sharding piece = to;
    piece.partial.clear();
    llvm::copy_if(from.partial, std::back_inserter(piece.partial),
                  [&](const std::string &axis) { return !isScattered(axis); });
    if (intersects(piece.partial, cut)) // a sum that tensor parallelism both makes and cuts is cut at the end
      return std::nullopt;
    return piece;
  }

  bool slicesTo(const Sharding &from, const Sharding &to) {
    Expected<std::vector<ReshardStep>> steps = planReshard(from, to, mesh);
    return steps.ok() && llvm::all_of(*steps, [](const ReshardStep &step) { return step.kind == ReshardStep::Slice; });
  }

  FailureOr<int64_t> bytes(Value source, const Sharding &from, const Sharding &to, Operation *user) {
    Expected<std::vector<ReshardStep>> steps = planReshard(from, to, mesh);
    if (!steps.ok())
      return userError(user, steps.status().kind())
             << describeOp(user) << " needs " << toString(to) << " of a value that is " << toString(from) << ": "
             << steps.status().message();
    // A micro-batch slices its rows from a value that all ranks hold; apart from slices and sums, nothing crosses time.
    for (const ReshardStep &step : *steps)
      if (step.kind != ReshardStep::Accumulate && step.kind != ReshardStep::Slice &&
          !axesWithRole(step.axes, mesh, AxisRole::Time).empty())
        return userError(user, ErrorKind::Unsupported)
               << describeOp(user) << " needs " << toString(to) << " of a value that is " << toString(from)
               << ": micro-batches come one after the other, so nothing but a sum can pass between them; use "
                  "--micro-batches=1"
               << nn::guessedBatchText(user->getParentOfType<func::FuncOp>());
    return bytesMoved(*steps, mesh, elementBytes(nn::tensorType(source).getElementType()));
  }

  const Mesh &mesh;
  const bool cutsStates, scattersFirst;
  SmallVector<Want> wants; ///< program order
  DenseMap<Value, std::vector<Sharding>> wanted;
  DenseMap<Value, SmallVector<std::pair<Sharding, Value>>> made;
};

struct InsertReshards : impl::InsertReshardsBase<InsertReshards> {
  using InsertReshardsBase::InsertReshardsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    Mesh mesh = meshOf(function);
    // A layout that stores parameters in pieces treats them as level 3 does.
    bool storesPieces = llvm::any_of(function.front().getOps<nn::ParameterOp>(), [&](nn::ParameterOp op) {
      return !rowAxesOf(cutAxes(shardingOf(op.getResult())), mesh).empty();
    });
    Resharder resharder(mesh, storesPieces ? 3 : int64_t(zero));
    // 1. Reshards of earlier passes become wants, so that equal ones are shared.
    SmallVector<ReshardOp> earlier(function.front().getOps<ReshardOp>());
    DenseMap<OpOperand *, Sharding> fixed;
    for (ReshardOp reshard : earlier)
      if (!isa_and_present<ReshardOp>(reshard.getOperand().getDefiningOp()))
        resharder.addWantsThrough(reshard);
    for (Want &want : resharder.returned)
      fixed[want.use] = want.target;
    for (ReshardOp reshard : llvm::reverse(earlier))
      if (reshard->use_empty())
        reshard.erase();
    // 2. The shardings that every op needs, in program order; the return needs complete sums.
    for (Operation &op : function.front()) {
      if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op)) {
        if (failed(resharder.addWants(ruled)))
          return signalPassFailure();
        continue;
      }
      for (OpOperand &use : op.getOpOperands()) {
        Sharding target = fixed.count(&use) ? fixed[&use] : shardingOf(use.get());
        if (isa<func::ReturnOp>(op))
          target.partial.clear();
        resharder.addWant(use, target);
      }
    }
    // 3. The reshards.
    if (failed(resharder.insertAll()))
      return signalPassFailure();
    for (Operation &op : function.front()) {
      removeFactors(&op);
      removeWholeOutput(&op);
      if (isa<nn::ParameterOp>(op))
        setOrigins(&op, {}); // ops keep theirs until they are local
    }
  }
};
} // namespace
} // namespace hpc
