// The pass evaluates, for each step of a sequence, which keys a query sees; no input may change that. A step computes masks for its
// own queries alone, so nothing of length x length is made here.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interpreter/Interpreter.h"
#include "compiler/Location.h"
#include "compiler/Masks.h"
#include "passes/Generate/Passes.h"
#include "runtime/plan/GenerationPorts.h"

namespace hpc {

#define GEN_PASS_DEF_PROVECAUSAL
#include "passes/Generate/Passes.h.inc"

namespace {
/// The step scalars of a program.
struct Place {
  Value position, row; ///< `row` is null where a step has one row
};
/// The operands that decide which keys a query sees; null where there is none.
struct Masks {
  Value visible, bias, queryPositions;
  SmallVector<Value> queryStart, keyStart;

  explicit Masks(nn::AttentionOp op)
      : visible(op.getVisible()), bias(op.getBias()), queryPositions(op.getQueryPositions()), queryStart(op.getQueryStart()), keyStart(op.getKeyStart()) {}
  SmallVector<Value> all() const {
    SmallVector<Value> values;
    for (Value value : {visible, bias, queryPositions})
      if (value)
        values.push_back(value);
    llvm::append_range(values, queryStart);
    llvm::append_range(values, keyStart);
    return values;
  }
};

/// Values that follow from constants and the place of a step. What does not move with the place is computed once.
class MaskValues {
public:
  explicit MaskValues(const Place &place) : place(place) {
    for (Value scalar : {place.position, place.row})
      if (scalar)
        numbers[scalar] = Tensor(DType::I64, {});
  }

  /// "" or why the values cannot be known here.
  std::string add(ArrayRef<Value> values) {
    // 1. The ops, in program order.
    llvm::SetVector<Operation *> ops;
    SmallVector<Value> open(values);
    while (!open.empty()) {
      Value value = open.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op && !numbers.count(value))
        return "which positions it hides depends on an input";
      if (auto parameter = dyn_cast_if_present<nn::ParameterOp>(op); parameter && parameter.isAbsent())
        return "which positions it hides is in weight '" + parameter.getName().str() + "', whose file is not there";
      if (op && ops.insert(op))
        llvm::append_range(open, op->getOperands());
    }
    SmallVector<Operation *> sorted = ops.takeVector();
    llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    // 2. Those that stay as they are.
    for (Operation *op : sorted) {
      auto moves = [&](Value operand) { return operand == place.position || operand == place.row || llvm::is_contained(moving, operand.getDefiningOp()); };
      if (llvm::any_of(op->getOperands(), moves))
        moving.push_back(op);
      else if (Status status = evaluate(op); !status.ok())
        return "its masks cannot be evaluated: " + status.message();
    }
    return "";
  }

  Status moveTo(int64_t position, int64_t row) {
    numbers[place.position].ints[0] = position;
    if (place.row)
      numbers[place.row].ints[0] = row;
    for (Operation *op : moving)
      HPC_RETURN_IF_ERROR(evaluate(op));
    return Status::success();
  }

  const Tensor *of(Value value) const { return value ? &numbers.find(value)->second : nullptr; }

private:
  Status evaluate(Operation *op) {
    if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
      Expected<Tensor> stored = parametersFromFiles(".")(parameter, nn::shapeOf(parameter));
      HPC_RETURN_IF_ERROR(stored.status());
      numbers[parameter] = std::move(*stored);
      return Status::success();
    }
    auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) -> const Tensor * { return &numbers.find(operand)->second; });
    Expected<std::vector<Tensor>> results = evaluateOp(op, operands);
    HPC_RETURN_IF_ERROR(results.status());
    for (auto [result, tensor] : llvm::zip_equal(op->getResults(), *results))
      numbers[result] = std::move(tensor);
    return Status::success();
  }

  const Place &place;
  llvm::DenseMap<Value, Tensor> numbers;
  SmallVector<Operation *> moving;
};

/// An element of what broadcasts to [b, h, q, k].
double elementAt(const Tensor &tensor, std::array<int64_t, 4> index) {
  int64_t at = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    at = at * tensor.shape[dim] + (tensor.shape[dim] == 1 ? 0 : index[dim]);
  return tensor.number(at);
}

/// Looks for a later key that a query sees, for a query that sees nothing, and for the farthest key that one sees.
class MaskCheck {
public:
  MaskCheck(nn::AttentionOp op, const Masks &masks) : op(op), masks(masks) {}
  int64_t window = 0; ///< positions from the farthest key that a query sees to its own

  /// `first`: the position of the first query.
  std::string at(const MaskValues &numbers, int64_t first) {
    // 1. The numbers by what they are of.
    const Tensor *visible = numbers.of(masks.visible), *bias = numbers.of(masks.bias), *positions = numbers.of(masks.queryPositions);
    double start = op.getCausalOffset() ? double(int64_t(*op.getCausalOffset())) : 0;
    for (Value term : masks.queryStart)
      start += numbers.of(term)->number(0);
    for (Value term : masks.keyStart)
      start -= numbers.of(term)->number(0);
    // 2. Each query with each key, in every plane of batch and heads in which masks differ.
    const int64_t queries = nn::shapeOf(op.getQuery())[2], keys = nn::shapeOf(op.getKey())[2];
    const double hidden = op.getHidden().value_or(llvm::APFloat(0.0)).convertToDouble();
    int64_t batch = positions && positions->shape.size() == 2 ? positions->shape[0] : 1, heads = 1;
    for (const Tensor *mask : {visible, bias})
      if (mask) {
        batch = std::max(batch, mask->shape[0]);
        heads = std::max(heads, mask->shape[1]);
      }
    for (int64_t plane = 0; plane < batch * heads; ++plane)
      for (int64_t query = 0; query < queries; ++query) {
        const int64_t sample = plane / heads;
        const double last = start + (!positions ? double(query) : positions->number((positions->shape.size() == 2 ? sample * queries : 0) + query));
        auto isHidden = [&](int64_t key) {
          if (op.getCausalOffset() && double(key) > last)
            return true;
          const std::array<int64_t, 4> index = {sample, plane % heads, query, key};
          double score = bias ? elementAt(*bias, index) : 0;
          if (visible && elementAt(*visible, index) == 0)
            score += hidden;
          return score <= maskingNumber;
        };
        bool sees = false;
        for (int64_t key = 0; key < keys; ++key) {
          const bool isLater = key > first + query;
          if (isLater && !isHidden(key))
            return "position " + std::to_string(first + query) + " sees position " + std::to_string(key);
          if (!isLater && !sees && !isHidden(key)) {
            sees = true;
            window = std::max(window, first + query - key + 1);
          }
        }
        if (!sees)
          return "position " + std::to_string(first + query) + " sees no position";
      }
    return "";
  }

private:
  nn::AttentionOp op;
  const Masks &masks;
};

/// What the queries of all steps see.
struct Sight {
  std::string fault;  ///< why later keys may be among it; "" where none are
  int64_t window = 0; ///< MaskCheck::window
};

class Prover {
public:
  explicit Prover(func::FuncOp function) : function(function) {
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      std::string scalar = nn::argumentPort(function, index).stepScalar;
      if (scalar == plan::positionName)
        place.position = function.getArgument(index);
      else if (scalar == plan::rowName)
        place.row = function.getArgument(index);
    }
  }

  LogicalResult prove(nn::AttentionOp op) {
    auto update = op.getKey().getDefiningOp<nn::UpdateSliceOp>();
    if (!update)
      return success(); // keys that are no positions: a prompt of the model's own
    const Masks masks(op);
    const int64_t queries = nn::shapeOf(op.getQuery())[2], rows = nn::shapeOf(update.getRows())[update.getDim()], keys = nn::shapeOf(op.getKey())[2];
    const bool isOneRow = queries < rows;
    const bool isCausal = op.getCausalOffset() && int64_t(*op.getCausalOffset()) <= 0 && masks.keyStart.empty() && !masks.queryPositions && startsAtStep(masks.queryStart, isOneRow);
    if (isCausal && (!masks.visible || int64_t(*op.getCausalOffset()) < 0))
      return success();
    // 1. For every step, what its queries see; equal masks once.
    std::vector<const void *> key = {op->getAttr("hidden").getAsOpaquePointer(), op->getAttr("causal_offset").getAsOpaquePointer(), isOneRow ? this : nullptr};
    const SmallVector<Value> values = masks.all();
    for (Value value : {masks.visible, masks.bias, masks.queryPositions})
      key.push_back(value.getAsOpaquePointer());
    for (Value value : values)
      key.push_back(value.getAsOpaquePointer());
    auto [known, isNew] = proven.try_emplace(key);
    Sight &sight = known->second;
    if (isNew)
      sight = look(op, masks, values, isOneRow, rows, keys);
    if (!sight.fault.empty() && !isCausal)
      return userError(op, ErrorKind::Unsupported)
             << "--generate: " << describeOp(op) << " is not causal: " << sight.fault << "; a step has no later keys than its own, so generate with a decoder, whose attention hides them";
    // 2. What was found, as attributes.
    OpBuilder builder(op);
    if (!op.getCausalOffset()) {
      op.setCausalOffset(0);
      op.getQueryStartMutable().assign(isOneRow ? Value(nn::AddOp::create(builder, op.getLoc(), place.position, place.row)) : place.position);
    } else if (!isCausal) {
      return success(); // no window of positions as the attribute counts them
    }
    if (sight.fault.empty() && sight.window < keys)
      op->setAttr(windowAttrName, builder.getI64IntegerAttr(sight.window));
    return success();
  }

private:
  /// Whether a query's number is added to the place of the step.
  bool startsAtStep(ArrayRef<Value> starts, bool isOneRow) const {
    if (starts.size() != 1)
      return false;
    if (!isOneRow)
      return starts[0] == place.position;
    auto sum = starts[0].getDefiningOp<nn::AddOp>();
    return sum && sum.getLhs() == place.position && sum.getRhs() == place.row;
  }

  Sight look(nn::AttentionOp op, const Masks &masks, ArrayRef<Value> values, bool isOneRow, int64_t rows, int64_t keys) {
    if (values.empty() && !op.getCausalOffset())
      return {"each position sees all others"};
    MaskValues numbers(place);
    if (std::string why = numbers.add(values); !why.empty())
      return {why};
    MaskCheck check(op, masks);
    for (int64_t position = 0; position < keys; position += rows)
      for (int64_t row = 0; row < (isOneRow ? rows : 1); ++row) {
        if (Status status = numbers.moveTo(position, row); !status.ok())
          return {"its masks cannot be evaluated: " + status.message()};
        if (std::string wrong = check.at(numbers, position + row); !wrong.empty())
          return {wrong};
      }
    return {"", check.window};
  }

  func::FuncOp function;
  Place place;
  std::map<std::vector<const void *>, Sight> proven;
};

struct ProveCausal : impl::ProveCausalBase<ProveCausal> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    Prover prover(function);
    for (nn::AttentionOp op : function.front().getOps<nn::AttentionOp>())
      if (failed(prover.prove(op)))
        return signalPassFailure();
  }
};
} // namespace

} // namespace hpc
