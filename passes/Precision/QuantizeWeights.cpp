// A weight that a product reads is marked, not rewritten: its value is then that of int8 numbers and scales, and every
// phase up to kernels sees an f32 parameter as before. So what an element is cannot depend on how the weight is cut.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Location.h"
#include "compiler/ModuleAttributes.h"
#include "passes/Precision/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_QUANTIZEWEIGHTS
#include "passes/Precision/Passes.h.inc"

namespace {
/// The part of a stored weight that a product reads.
struct ReadWeight {
  nn::ParameterOp parameter;
  SmallVector<Operation *> views;   ///< from the product back to the parameter
  std::optional<unsigned> summed; ///< the parameter's dim that the product sums over, if it is one
};
} // namespace

/// The operand's dim that is dim `dim` of a view's result, whole and alone.
static std::optional<unsigned> dimBehind(Operation *view, unsigned dim) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(view);
  if (!ruled)
    return std::nullopt;
  ShardingRule rule = ruled.getShardingRule();
  const ShardingRule::DimFactors &factors = rule.results[0][dim];
  int64_t size = nn::shapeOf(view->getResult(0))[dim];
  for (auto [before, other] : llvm::enumerate(rule.operands[0]))
    if (!factors.empty() && other == factors && nn::shapeOf(view->getOperand(0))[before] == size)
      return unsigned(before);
  return std::nullopt;
}

/// Null where the operand is not a view of a parameter.
static ReadWeight readWeight(Value operand, unsigned summed) {
  ReadWeight read{{}, {}, summed};
  while (isView(operand.getDefiningOp())) {
    Operation *view = operand.getDefiningOp();
    if (read.summed)
      read.summed = dimBehind(view, *read.summed);
    read.views.push_back(view);
    operand = view->getOperand(0);
  }
  read.parameter = operand.getDefiningOp<nn::ParameterOp>();
  return read;
}

static std::string whyNot(const ReadWeight &read, int64_t least) {
  RankedTensorType type = nn::tensorType(nn::ParameterOp(read.parameter).getResult());
  if (!type.getElementType().isF32())
    return "it is not f32";
  if (type.getNumElements() < least)
    return "it has fewer than " + std::to_string(least) + " numbers";
  if (!read.summed)
    return "its product sums over a part of a dim as it is stored, or over several";
  return "";
}

namespace {
/// Weights in int8 and views of them, each made once.
class Int8Copies {
public:
  Value of(const ReadWeight &read) {
    nn::ParameterOp parameter = read.parameter;
    Value &marked = copies[{parameter.getResult(), *read.summed}];
    if (!marked) {
      OpBuilder builder(parameter);
      auto copy = cast<nn::ParameterOp>(builder.clone(*parameter));
      nn::Storage storage = copy.stored();
      storage.int8Along = *read.summed;
      copy.setStored(storage);
      marked = copy;
      originals.insert(parameter);
    }
    Value value = marked;
    for (Operation *view : llvm::reverse(read.views)) {
      Value &shown = copies[{view->getResult(0), *read.summed}];
      if (!shown) {
        OpBuilder builder(view->getContext());
        builder.setInsertionPointAfter(view);
        Operation *copy = builder.clone(*view);
        copy->setOperand(0, value);
        shown = copy->getResult(0);
        originals.insert(view);
      }
      value = shown;
    }
    return value;
  }

  /// Views come behind what they show.
  void eraseUnread() {
    for (Operation *op : llvm::reverse(originals.getArrayRef()))
      if (op->use_empty())
        op->erase();
  }

private:
  llvm::DenseMap<std::pair<Value, unsigned>, Value> copies; ///< by what they copy, and the parameter's summed dim
  llvm::SmallSetVector<Operation *, 32> originals;
};

struct QuantizeWeights : impl::QuantizeWeightsBase<QuantizeWeights> {
  using QuantizeWeightsBase::QuantizeWeightsBase;

  LogicalResult refuse(ErrorKind kind, const std::string &message) {
    return userError(getOperation(), kind) << message;
  }

  LogicalResult check() {
    if (weights != "int8")
      return refuse(ErrorKind::Usage, "weights '" + weights + "' are unknown; use int8, or float for the types that the model has");
    if (StringRef(targetOf(getOperation())).contains(deviceTarget))
      return refuse(ErrorKind::Unsupported, "--weights=int8 is for the host: on devices there is no product of int8 weights "
                                            "yet; use --target=host, or --dtype=bf16 for half the bytes");
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!nn::writtenBy(function).empty())
        return refuse(ErrorKind::Unsupported, "--weights=int8 is for inference: a training step changes weights by less than an "
                                              "int8 can show; leave out --weights=int8 or --train");
    return success();
  }

  void runOnOperation() override {
    if (weights == "float")
      return;
    if (failed(check()))
      return signalPassFailure();
    SmallVector<nn::MatmulOp> products;
    getOperation().walk([&](nn::MatmulOp product) { products.push_back(product); });
    Int8Copies copies;
    for (nn::MatmulOp product : products) {
      unsigned rank = unsigned(nn::shapeOf(product.getRhs()).size());
      ReadWeight right = readWeight(product.getRhs(), rank - (product.getTransposeRhs() ? 1 : 2));
      ReadWeight left = readWeight(product.getLhs(), 0);
      std::string why = right.parameter ? whyNot(right, least) : left.parameter ? "it is the left operand" : "";
      if (right.parameter && why.empty())
        product.getRhsMutable().set(copies.of(right));
      else if (!why.empty())
        mlir::emitRemark(product.getLoc()) << "[hpc-quantize-weights] the weight of '" << nodeName(product.getLoc())
                                           << "' stays in float: " << why;
    }
    copies.eraseUnread();
  }
};
} // namespace

} // namespace hpc
