// From the program of one virtual rank to that of a step: places become step scalars, gathered keys and values become states.
// Everything else that crosses ranks mixes positions, and is refused where it does.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Location.h"
#include "passes/Generate/Passes.h"
#include "runtime/plan/GenerationPorts.h"

namespace hpc {

#define GEN_PASS_DEF_HOLDKEYS
#include "passes/Generate/Passes.h.inc"

/// Whether a use is the keys or values of an attention.
static bool isOfKeys(OpOperand &use) {
  auto attention = dyn_cast<nn::AttentionOp>(use.getOwner());
  return attention && (use.get() == attention.getKey() || use.get() == attention.getValue());
}

namespace {
class Step {
public:
  /// The mesh of `function` has an axis of steps, and inside of it one of the rows of a step.
  explicit Step(func::FuncOp function) : function(function), block(function.front()), mesh(dist::meshOf(function)), builder(function.getContext()) {
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      arguments.push_back(nn::argumentPort(function, index));
      for (std::string &dim : arguments.back().dims) // a size that the model does not leave open
        if (dim == std::to_string(length()))
          dim = std::to_string(rows());
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      results.push_back(nn::resultPort(function, index));
  }

  LogicalResult run() {
    position = addScalar(plan::positionName, length() - rows());
    if (rows() > 1)
      row = addScalar(plan::rowName, rows() - 1);
    for (Operation &op : llvm::make_early_inc_range(block)) {
      builder.setInsertionPoint(&op);
      if (steps() == 1)
        holdWhole(&op);
      if (isa<dist::DistDialect>(op.getDialect())) {
        FailureOr<Value> value = valueOf(&op);
        if (failed(value))
          return failure();
        op.getResult(0).replaceAllUsesWith(*value);
        op.erase();
      }
    }
    forgetMesh();
    block.getTerminator()->insertOperands(block.getTerminator()->getNumOperands(), written);
    function.setFunctionType(builder.getFunctionType(block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
    function.setAllArgAttrs(SmallVector<DictionaryAttr>(arguments.size()));
    function.setAllResultAttrs(SmallVector<DictionaryAttr>(results.size()));
    nn::setArgumentPorts(function, arguments);
    nn::setResultPorts(function, results);
    return success();
  }

private:
  int64_t steps() const { return mesh.axes[0].size; }
  int64_t rows() const { return mesh.axes[1].size; }
  int64_t length() const { return steps() * rows(); }

  Value addScalar(StringRef name, int64_t largest) {
    nn::ArgumentPort port;
    port.stepScalar = name.str();
    port.largest = largest;
    arguments.push_back(port);
    return block.addArgument(RankedTensorType::get({}, builder.getI64Type()), function.getLoc());
  }

  /// A step computes this value in place of an op of dist.
  FailureOr<Value> valueOf(Operation *op) {
    if (auto offset = dyn_cast<dist::OffsetOp>(op))
      return placeOf(offset);
    if (auto slice = dyn_cast<dist::SliceOp>(op))
      return rowsOf(slice);
    auto gather = dyn_cast<dist::AllGatherOp>(op);
    if (gather && gather.getAxis() == mesh.axes[0].name && llvm::all_of(gather->getUses(), isOfKeys))
      return stateOf(gather.getOperand(), nn::tensorType(gather.getResult()), int64_t(gather.getFromDim()));
    return refuse(op);
  }

  /// A step of all positions gathers nothing, and what its attention reads is held as well.
  void holdWhole(Operation *op) {
    for (OpOperand &use : op->getOpOperands()) {
      constexpr int64_t keyDim = 2;
      if (!isOfKeys(use) || nn::shapeOf(use.get())[keyDim] != length())
        continue;
      Value &state = whole[use.get()];
      if (!state)
        state = stateOf(use.get(), nn::tensorType(use.get()), keyDim);
      use.set(state);
    }
  }

  LogicalResult refuse(Operation *op) {
    // The op that mixes is the one that adds up, or one that reads what others have.
    Operation *mixer = *op->user_begin();
    for (OpOperand &use : op->getUses())
      if (!isOfKeys(use))
        mixer = use.getOwner();
    if (Operation *producer = op->getOperand(0).getDefiningOp(); producer && cast<CollectiveOpInterface>(op).getReduction())
      mixer = producer;
    return userError(mixer, ErrorKind::Unsupported)
           << "--generate: " << describeOp(mixer) << " mixes the positions of a sequence, and a step has nothing of earlier positions but the keys and values of attention; "
           << "generate with a model whose positions meet in causal attention alone";
  }

  LogicalResult refuseSize(Operation *op, int64_t size) {
    return userError(*op->user_begin(), ErrorKind::Unsupported)
           << "--generate: " << describeOp(*op->user_begin()) << " has a dim of " << size << " that moves with the " << length()
           << " positions of a sequence; export the model with one element a position there";
  }

  /// The first index of a dim that a rank has.
  FailureOr<Value> placeOf(dist::OffsetOp op) {
    const dist::DimSharding dim = op.getDim().getValue().dims[0];
    const std::vector<std::string> axes = dist::cutAxes(op.getDim().getValue());
    if (dim.size() != 1 || dim[0].size != length() || (steps() > 1 && axes.front() != mesh.axes[0].name))
      return refuseSize(op, dist::globalSize(dim));
    return axes.back() == mesh.axes[0].name ? position : Value(nn::AddOp::create(builder, op.getLoc(), position, row));
  }

  /// The rows of a step, or the one of them that counts, of a value that all steps (all rows) have.
  FailureOr<Value> rowsOf(dist::SliceOp op) {
    const bool isOfStep = op.getAxis() == mesh.axes[0].name;
    const Value first = isOfStep ? position : row;
    const size_t dim = size_t(op.getToDim()), sub = size_t(op.getToSub());
    if (const int64_t size = op.getAfter().getValue().dims[dim][sub].size; size != length() && (isOfStep || size != rows()))
      return refuseSize(op, size);
    // A source needs no gather: it starts elsewhere.
    if (auto iota = op.getOperand().getDefiningOp<nn::IotaOp>(); iota && iota.getDim() == dim && op.getBefore().getValue().dims[dim].size() == 1) {
      Value offset = iota.getOffset() ? Value(nn::AddOp::create(builder, op.getLoc(), iota.getOffset(), first)) : first;
      return Value(nn::IotaOp::create(builder, iota.getLoc(), op.getType(), offset, iota.getDim(), iota.getStart(), iota.getStep()));
    }
    // 1. The dim, with the digits of its index apart.
    SmallVector<int64_t> shape(nn::shapeOf(op.getOperand()));
    const dist::DimSharding subDims = op.getBefore().getValue().dims[dim];
    SmallVector<int64_t> digits;
    for (const dist::SubDim &each : subDims)
      digits.push_back(dist::boxSize(each, mesh));
    SmallVector<int64_t> apart(shape);
    apart.erase(apart.begin() + dim);
    apart.insert(apart.begin() + dim, digits.begin(), digits.end());
    const Type element = nn::tensorType(op.getOperand()).getElementType();
    auto reshaped = [&](Value value, ArrayRef<int64_t> to) {
      return nn::shapeOf(value) == to ? value : Value(nn::ReshapeOp::create(builder, op.getLoc(), RankedTensorType::get(to, element), value));
    };
    Value source = reshaped(op.getOperand(), apart);
    // 2. The elements first, first + 1, ...
    const int64_t count = isOfStep ? rows() : 1;
    apart[dim + sub] = count;
    Value indices = nn::IotaOp::create(builder, op.getLoc(), RankedTensorType::get({count}, builder.getI64Type()), first, 0, 0, 1);
    Value taken = nn::GatherOp::create(builder, op.getLoc(), RankedTensorType::get(apart, element), source, indices, int64_t(dim + sub));
    return reshaped(taken, nn::shapeOf(op.getResult()));
  }

  /// The next state, with the rows of this step at its position.
  Value stateOf(Value rows, RankedTensorType type, int64_t dim) {
    nn::ArgumentPort port;
    port.state = (plan::cachePrefix + Twine(written.size())).str();
    arguments.push_back(port);
    Value state = block.addArgument(dist::withoutSharding(type), rows.getLoc());
    results.push_back({"", port.state, ""});
    written.push_back(nn::UpdateSliceOp::create(builder, rows.getLoc(), state, rows, position, dim));
    return written.back();
  }

  /// Takes the shardings off all types, and off ops what ties them to those of the whole sequence.
  void forgetMesh() {
    auto forget = [&](Value value) { value.setType(dist::withoutSharding(nn::tensorType(value))); };
    llvm::for_each(block.getArguments(), forget);
    for (Operation &op : block) {
      llvm::for_each(op.getResults(), forget);
      for (NamedAttribute attribute : llvm::to_vector(op.getDiscardableAttrs()))
        if (StringRef name = attribute.getName(); name.starts_with("dist.") || llvm::is_contained({valueIdAttrName, movedIdAttrName, globalAttrsName}, name))
          op.removeAttr(attribute.getName());
    }
    function->getParentOfType<ModuleOp>()->removeAttr(dist::meshAttrName);
  }

  func::FuncOp function;
  Block &block;
  const dist::Mesh mesh;
  OpBuilder builder;
  Value position, row;
  SmallVector<nn::ArgumentPort> arguments;
  SmallVector<nn::ResultPort> results;
  SmallVector<Value> written;
  llvm::DenseMap<Value, Value> whole; ///< states of a step of all positions, by what they hold
};

struct HoldKeys : impl::HoldKeysBase<HoldKeys> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && failed(Step(function).run()))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
