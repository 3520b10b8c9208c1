// Masks as functions of a step: what a query may see is evaluated for each step of a sequence, on numbers that no input changes.
// A mask that a step computes is one column of a query at a time, so nothing of length x length is held.
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
/// What decides which keys a query sees, or null: bools, numbers, positions.
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

/// Values that follow from constants and the place of a step, as a function of it.
class MaskProgram {
public:
  /// Empty where a value depends on more.
  static std::optional<MaskProgram> of(ArrayRef<Value> values, const Place &place) {
    // 1. The ops, in program order.
    llvm::SetVector<Operation *> ops;
    SmallVector<Value> open(values);
    bool readsRow = false;
    while (!open.empty()) {
      Value value = open.pop_back_val();
      Operation *op = value.getDefiningOp();
      readsRow |= !op && value == place.row;
      if (op ? isa<nn::ParameterOp>(op) : value != place.position && value != place.row)
        return std::nullopt;
      if (op && ops.insert(op))
        llvm::append_range(open, op->getOperands());
    }
    SmallVector<Operation *> sorted = ops.takeVector();
    llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    // 2. A function of them.
    MaskProgram made;
    made.readsRow = readsRow;
    OpBuilder builder(place.position.getContext());
    made.module = ModuleOp::create(place.position.getLoc());
    builder.setInsertionPointToEnd(made.module->getBody());
    Type scalar = place.position.getType();
    auto types = llvm::map_to_vector(values, [](Value value) { return value.getType(); });
    auto function = func::FuncOp::create(builder, place.position.getLoc(), "masks", builder.getFunctionType({scalar, scalar}, types));
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    IRMapping copies;
    copies.map(place.position, block->getArgument(0));
    if (place.row)
      copies.map(place.row, block->getArgument(1));
    for (Operation *op : sorted)
      builder.clone(*op, copies);
    func::ReturnOp::create(builder, place.position.getLoc(), llvm::map_to_vector(values, [&](Value value) { return copies.lookup(value); }));
    return made;
  }

  Expected<std::vector<Tensor>> at(int64_t position, int64_t row) {
    Tensor scalars[] = {Tensor(DType::I64, {}), Tensor(DType::I64, {})};
    scalars[0].ints[0] = position;
    scalars[1].ints[0] = row;
    return runFunction(module->lookupSymbol<func::FuncOp>("masks"), scalars);
  }

  bool readsRow = false;

private:
  OwningOpRef<ModuleOp> module;
};

/// An element of what broadcasts to [b, h, q, k].
double elementAt(const Tensor &tensor, std::array<int64_t, 4> index) {
  int64_t at = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    at = at * tensor.shape[dim] + (tensor.shape[dim] == 1 ? 0 : index[dim]);
  return tensor.number(at);
}

/// What a query sees that it must not, or why it sees nothing; "" where all is well.
class MaskCheck {
public:
  MaskCheck(nn::AttentionOp op, const Masks &masks) : op(op), masks(masks) {}

  /// `numbers`: of Masks::all. `first`: the position of the first query.
  std::string at(const std::vector<Tensor> &numbers, int64_t first) {
    // 1. The numbers by what they are of.
    size_t next = 0;
    auto take = [&](Value value) { return value ? &numbers[next++] : nullptr; };
    const Tensor *visible = take(masks.visible), *bias = take(masks.bias), *positions = take(masks.queryPositions);
    double start = 0;
    for (size_t i = 0; i < masks.queryStart.size() + masks.keyStart.size(); ++i)
      start += (i < masks.queryStart.size() ? 1 : -1) * numbers[next++].number(0);
    if (op.getCausalOffset())
      start += double(int64_t(*op.getCausalOffset()));
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
          sees = sees || (!isLater && !isHidden(key));
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
    if (op.getCausalOffset() && int64_t(*op.getCausalOffset()) <= 0 && masks.keyStart.empty() && !masks.queryPositions && startsAtStep(masks.queryStart, isOneRow))
      return success();
    // 1. For every step, what its queries see; equal masks once.
    std::vector<const void *> key = {op->getAttr("hidden").getAsOpaquePointer(), op->getAttr("causal_offset").getAsOpaquePointer(), isOneRow ? this : nullptr};
    const SmallVector<Value> values = masks.all();
    for (Value value : {masks.visible, masks.bias, masks.queryPositions})
      key.push_back(value.getAsOpaquePointer());
    for (Value value : values)
      key.push_back(value.getAsOpaquePointer());
    auto [known, isNew] = proven.try_emplace(key);
    if (isNew)
      known->second = whyNot(op, masks, values, isOneRow, rows, keys);
    if (!known->second.empty())
      return userError(op, ErrorKind::Unsupported)
             << "--generate: " << describeOp(op) << " is not causal: " << known->second << "; a step has no later keys than its own, so generate with a decoder, whose attention hides them";
    // 2. What was found, as the attribute.
    if (op.getCausalOffset())
      return success();
    op.setCausalOffset(0);
    OpBuilder builder(op);
    op.getQueryStartMutable().assign(isOneRow ? Value(nn::AddOp::create(builder, op.getLoc(), place.position, place.row)) : place.position);
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

  std::string whyNot(nn::AttentionOp op, const Masks &masks, ArrayRef<Value> values, bool isOneRow, int64_t rows, int64_t keys) {
    if (values.empty() && !op.getCausalOffset())
      return "each position sees all others";
    std::optional<MaskProgram> program = MaskProgram::of(values, place);
    if (!program)
      return "which positions it hides depends on weights or on an input";
    MaskCheck check(op, masks);
    for (int64_t position = 0; position < keys; position += rows)
      for (int64_t row = 0; row < (isOneRow ? rows : 1); ++row) {
        Expected<std::vector<Tensor>> numbers = program->at(position, row);
        if (!numbers.ok())
          return "its masks cannot be evaluated: " + numbers.status().message();
        if (std::string wrong = check.at(*numbers, position + row); !wrong.empty())
          return wrong;
      }
    return "";
  }

  func::FuncOp function;
  Place place;
  std::map<std::vector<const void *>, std::string> proven;
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
