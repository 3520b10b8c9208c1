// Pass hpc-verify-partitioned: derives every op again from its rule and the encodings of its operands and results.
// The rule refers to global shapes, so each op is rebuilt on global types in a scratch block, and made local once more
// to compare.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Location.h"
#include "mlir/IR/Verifier.h"
#include "passes/Partition/CollectiveCheck.h"
#include "passes/Partition/Passes.h"
#include "passes/Partition/ReducedPadding.h"

namespace hpc {
#define GEN_PASS_DEF_VERIFYPARTITIONED
#include "passes/Partition/Passes.h.inc"

using namespace dist;

namespace {
class Checker {
public:
  Checker(const Mesh &mesh) : mesh(mesh) {}

  LogicalResult check(Operation *op) {
    for (Value result : op->getResults())
      if (failed(checkValue(result)))
        return failure();
    if (std::optional<int64_t> id = valueIdsOf(op).made; id && !ids.insert(*id).second)
      return fail(op) << "has the " << valueIdAttrName << " " << *id << " of another op";
    if (failed(checkTime(op)))
      return failure();
    if (isCollective(op))
      return checkStep(op);
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
      return checkComputation(op);
    if (isa<ReshardOp>(op))
      return fail(op) << "is left; hpc-localize turns reshards into collectives";
    if (isa<FillTailOp>(op))
      return success();
    if (auto constant = dyn_cast<nn::ConstantOp>(op))
      return isReplicated(shardingOf(constant.getResult()))
                 ? success()
                 : LogicalResult(fail(op) << "is cut; constants are whole, then sliced");
    if (auto parameter = dyn_cast<nn::ParameterOp>(op))
      return shardingOf(parameter.getResult()).partial.empty() ? success() : LogicalResult(fail(op) << "is partial");
    if (isa<OffsetOp>(op))
      return success();
    if (isa<func::ReturnOp>(op)) {
      for (Value value : op->getOperands())
        if (!shardingOf(value).partial.empty())
          return fail(op) << "returns a partial sum " << toString(shardingOf(value)) << " of "
                          << (value.getDefiningOp() ? describeOp(value.getDefiningOp()) : "an argument")
                          << "; a collective is missing";
      return success();
    }
    return fail(op) << "is not an op of a partitioned program";
  }

  /// Checks that the shape is local and the sharding legal and in normal form.
  LogicalResult checkValue(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    ShardingAttr attr = shardingAttrOf(value);
    auto place = [&] { return userError(value.getLoc(), ErrorKind::Internal); };
    if (!type || !attr)
      return place() << "a value of type " << value.getType() << " has no sharding";
    const Sharding &sharding = attr.getValue();
    if (Status legal = verify(sharding, globalShape(sharding), mesh); !legal.ok())
      return place() << legal.message();
    if (normalize(sharding, mesh) != sharding)
      return place() << toString(sharding) << " is not in normal form: " << toString(normalize(sharding, mesh));
    if (type.getShape() != ArrayRef<int64_t>(boxShape(sharding, mesh)))
      return place() << type << " does not have the shape of its local box, "
                     << RankedTensorType::get(boxShape(sharding, mesh), type.getElementType());
    return success();
  }

private:
  InFlightDiagnostic fail(Operation *op) { return userError(op, ErrorKind::Internal) << describeOp(op) << ": "; }

  // ---- collectives ------------------------------------------------------------------------------

  LogicalResult checkStep(Operation *op) {
    if (std::string wrong = checkCollective(op, mesh); !wrong.empty())
      return fail(op) << wrong;
    if (isa<AccumulateOp>(op))
      totals.insert(op->getResult(0));
    auto reduce = dyn_cast<AllReduceOp>(op);
    if (!reduce || reduce.getKind() == ReduceKind::Sum)
      return success();
    // A collective that is no sum belongs to the op right before it, which checkComputation has seen.
    if (!combines.contains(op))
      return fail(op) << "combines no reduction over its axes; it is left over or doubled";
    return success();
  }

  // ---- computation ------------------------------------------------------------------------------

  /// The op on global types, its constants beside it (a rule may look at a literal zero).
  Operation *rebuildGlobal(Operation *op, ArrayRef<Value> given, Block &scratch) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointToEnd(&scratch);
    SmallVector<Value> operands;
    for (Value operand : given) {
      Value source = operand;
      while (source.getDefiningOp() && isCollective(source.getDefiningOp()))
        source = source.getDefiningOp()->getOperand(0);
      if (source.getDefiningOp<nn::ConstantOp>() &&
          nn::shapeOf(source) == ArrayRef<int64_t>(globalShape(shardingOf(operand))))
        operands.push_back(builder.clone(*source.getDefiningOp())->getResult(0));
      else
        operands.push_back(scratch.addArgument(globalType(nn::tensorType(operand)), op->getLoc()));
    }
    SmallVector<Type> types;
    for (Value result : op->getResults())
      types.push_back(globalType(nn::tensorType(result)));
    OperationState state(op->getLoc(), op->getName(), operands, types, globalAttributes(op));
    return builder.create(state);
  }

  /// The operands of the global form, and the offsets that partition has appended to them, or to their segments. An offset
  /// that two segments have counts once.
  struct Operands {
    SmallVector<Value> global, offsets;
  };
  static std::optional<Operands> splitOperands(Operation *op) {
    Operands split;
    OperandRange rest = op->getOperands();
    auto take = [&](size_t size, size_t numGlobal) {
      llvm::append_range(split.global, rest.take_front(numGlobal));
      for (Value offset : rest.slice(numGlobal, size - numGlobal))
        if (!llvm::is_contained(split.offsets, offset))
          split.offsets.push_back(offset);
      rest = rest.drop_front(size);
    };
    constexpr StringRef segmentsName = "operandSegmentSizes";
    if (auto segments = op->getAttrOfType<DenseI32ArrayAttr>(segmentsName)) {
      auto global = dyn_cast_or_null<DenseI32ArrayAttr>(globalAttributes(op).get(segmentsName));
      if (!global || global.size() != segments.size())
        return std::nullopt;
      for (auto [size, numGlobal] : llvm::zip(segments.asArrayRef(), global.asArrayRef())) {
        if (numGlobal < 0 || numGlobal > size)
          return std::nullopt;
        take(size_t(size), size_t(numGlobal));
      }
    } else {
      size_t numGlobal = rest.size();
      while (numGlobal > 0 && rest[numGlobal - 1].getDefiningOp<OffsetOp>())
        --numGlobal;
      take(rest.size(), numGlobal);
    }
    return split;
  }

  LogicalResult checkComputation(Operation *op) {
    std::optional<Operands> split = splitOperands(op);
    if (!split)
      return fail(op) << "has fewer operands than its global form";
    Block scratch;
    Operation *global = rebuildGlobal(op, split->global, scratch);
    auto ruled = cast<ShardingRuleOpInterface>(global);

    SmallVector<Sharding> operands, results;
    SmallVector<AxisNames> partials;
    for (Value operand : split->global) {
      operands.push_back(shardingOf(operand));
      partials.push_back(operands.back().partial);
    }
    for (Value result : op->getResults())
      results.push_back(shardingOf(result));
    std::string why;
    std::optional<OpSharding> sharding = readOpSharding(ruled.getShardingRule(), operands, results, mesh, why);
    if (!sharding)
      return fail(op) << why;
    for (auto [factor, cut] : llvm::zip(sharding->rule.factors, sharding->factors))
      if (isCut(cut) && factor.isInternal)
        return fail(op) << "reduces over a dim that is cut " << toString(cut)
                        << "; hpc-decompose-sharded replaces such ops";
      else if (factor.combinesAtOnce() &&
               !axesWithRole(axesOf(cut), mesh, AxisRole::Time).empty())
        return fail(op) << "takes a " << name(*factor.reduction) << " over micro-batches, cut " << toString(cut);
    if (failed(checkPartials(op, *sharding, partials)) || failed(checkPadding(op, *sharding, split->global)))
      return failure();
    for (ReduceKind kind : allReduceKinds)
      if (kind != ReduceKind::Sum && failed(checkCombined(op, *sharding, kind)))
        return failure();
    return checkLocalForm(op, ruled, *sharding, *split);
  }

  /// Ops of every micro-batch read nothing that is known only at the end of the step.
  LogicalResult checkTime(Operation *op) {
    auto isPerBatch = [&](Value value) { return isPerMicroBatch(shardingOf(value), mesh); };
    auto readsTotal = [&](Value value) { return totals.contains(value); };
    if (isa<func::ReturnOp>(op) || llvm::none_of(op->getOperands(), readsTotal))
      return success();
    if (llvm::any_of(op->getOperands(), isPerBatch) || llvm::any_of(op->getResults(), isPerBatch))
      return fail(op) << "reads in every micro-batch what depends on a sum over all of them";
    totals.insert(op->result_begin(), op->result_end());
    return success();
  }

  /// Operands and results are partial exactly where the rule lets a sum pass.
  LogicalResult checkPartials(Operation *op, OpSharding &sharding, ArrayRef<AxisNames> partials) {
    sharding.setPassing(op);
    for (unsigned i = 0; i < partials.size(); ++i)
      if (AxisNames expected = sharding.operand(i, mesh).partial; expected != partials[i])
        return fail(op) << "operand " << i << " is partial over {" << llvm::join(partials[i], ", ")
                        << "}, the op takes it partial over {" << llvm::join(expected, ", ")
                        << "}; a collective is missing, doubled or over the wrong axis";
    if (intersects(sharding.passing, axesOf(sharding.factors)))
      return fail(op) << "is partial over an axis that cuts one of its factors";
    if (sharding.rule.linear.kind == LinearClause::None && !sharding.passing.empty())
      return fail(op) << "has a partial result, but is not linear";
    for (OpResult result : op->getResults())
      if (shardingOf(result).partial != sharding.result(result.getResultNumber(), mesh).partial)
        return fail(op) << "result " << result.getResultNumber() << " is " << toString(shardingOf(result))
                        << ", the op gives " << toString(sharding.result(result.getResultNumber(), mesh));
    if (!sharding.passing.empty() && sharding.rule.linear.kind == LinearClause::Product && sharding.carrier < 0)
      return fail(op) << "has a partial result, but no operand that brings it";
    return success();
  }

  LogicalResult checkPadding(Operation *op, const OpSharding &sharding, ArrayRef<Value> operands) {
    for (auto [i, operand] : llvm::enumerate(operands)) {
      std::optional<TailFill> fill = tailFillOf(sharding, unsigned(i), nn::tensorType(operand).getElementType(), mesh);
      if (!fill || hasPadding(operand, fill->value))
        continue;
      auto filled = operand.getDefiningOp<FillTailOp>();
      if (!filled || filled.getDims() != ArrayRef<int64_t>(fill->dims) ||
          filled.getValue() != fill->value)
        return fail(op) << "reduces over padding of operand " << i << " (" << toString(shardingOf(operand))
                        << "), which dist.fill_tail must set to " << fill->value;
    }
    return success();
  }

  LogicalResult checkCombined(Operation *op, const OpSharding &sharding, ReduceKind kind) {
    for (OpResult result : op->getResults())
      if (failed(checkCombined(
              result, reducedAxes(sharding.rule, sharding.factors, kind, result.getResultNumber()), kind)))
        return failure();
    return success();
  }

  LogicalResult checkCombined(OpResult result, const AxisNames &axes, ReduceKind kind) {
    if (axes.empty())
      return success();
    Operation *op = result.getOwner();
    for (Operation *user : result.getUsers()) {
      auto combine = dyn_cast<AllReduceOp>(user);
      AxisNames has = combine ? axesOf(combine.getAxes()) : AxisNames();
      llvm::sort(has);
      if (!combine || combine.getKind() != kind || has != axes)
        return fail(op) << "reduces over a dim cut over " << llvm::join(axes, ", ") << "; " << describeOp(user)
                        << " reads its result before the ranks' values are combined";
      combines.insert(user);
    }
    return success();
  }

  /// localize() of the global form gives exactly this op, offsets included.
  LogicalResult checkLocalForm(Operation *op, ShardingRuleOpInterface global, const OpSharding &sharding,
                               const Operands &split) {
    SmallVector<DimSharding> indices;
    for (auto [factor, cut] : llvm::zip(sharding.rule.factors, sharding.factors))
      if (factor.isIndex && isCut(cut))
        indices.push_back(cut);
    ArrayRef<Value> offsets = split.offsets;
    if (offsets.size() != indices.size())
      return fail(op) << "reads " << indices.size() << " cut coordinates, but has " << offsets.size() << " offsets";
    for (auto [offset, cut] : llvm::zip(offsets, indices)) {
      auto made = offset.getDefiningOp<OffsetOp>();
      if (!made)
        return fail(op) << "reads coordinates cut " << toString(cut) << " with what is no dist.offset";
      if (normalize(made.getDim().getValue(), mesh) != normalize(Sharding{{cut}, {}}, mesh))
        return fail(op) << "reads coordinates cut " << toString(cut) << " with the offset of "
                        << toString(made.getDim().getValue());
    }
    Block scratch;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointToEnd(&scratch);
    Operation *again =
        global.localize(builder, split.global, op->getResultTypes(), offsets);
    for (NamedAttribute attr : again->getAttrs())
      if (!again->getDiscardableAttrDictionary().contains(attr.getName()) &&
          op->getAttr(attr.getName()) != attr.getValue())
        return fail(op) << "attribute '" << attr.getName().strref() << "' is " << op->getAttr(attr.getName())
                        << ", on the local box it is " << attr.getValue();
    return again->getOperands() == op->getOperands()
               ? success()
               : LogicalResult(fail(op) << "does not have the operands of its local form");
  }

  const Mesh &mesh;
  DenseSet<int64_t> ids;
  DenseSet<Operation *> combines;
  DenseSet<Value> totals; ///< values that depend on a sum over all micro-batches
};

struct VerifyPartitioned : impl::VerifyPartitionedBase<VerifyPartitioned> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    Mesh mesh = meshOf(function);
    if (failed(mlir::verify(getOperation())))
      return signalPassFailure();
    Checker checker(mesh);
    for (BlockArgument argument : function.getArguments())
      if (failed(checker.checkValue(argument)))
        return signalPassFailure();
    for (Operation &op : function.front())
      if (failed(checker.check(&op)))
        return signalPassFailure();
  }
};
} // namespace
} // namespace hpc
