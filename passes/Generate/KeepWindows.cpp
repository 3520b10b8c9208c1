// If no query sees keys that are W positions or more before its own, the state becomes a ring of as many rows as a chunk of queries sees together.
// The softmax does not depend on the order of keys: attention reads the rows as they lie, with the masks of the positions that they hold.
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/Masks.h"
#include "passes/Generate/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace hpc {

#define GEN_PASS_DEF_KEEPWINDOWS
#include "passes/Generate/Passes.h.inc"

static RankedTensorType withLastDim(Value value, int64_t size) {
  RankedTensorType type = nn::tensorType(value);
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = size;
  return type.clone(shape);
}

namespace {
/// Rings of one number of rows in place of states of `length` rows.
class Ring {
public:
  Ring(OpBuilder &builder, nn::UpdateSliceOp update, int64_t length, int64_t rows) : builder(builder), loc(update.getLoc()), length(length), rows(rows) {
    const int64_t written = nn::shapeOf(update.getRows())[size_t(update.getDim())];
    const auto along = RankedTensorType::get({rows}, builder.getI64Type());
    // Row r holds the last position up to `last` that is r modulo `rows`; one below 0 where nothing was written, which no query sees.
    Value last = nn::AddOp::create(builder, loc, update.getPosition(), number(written - 1));
    Value lastRow = nn::ModOp::create(builder, loc, last, number(rows)), lap = nn::SubOp::create(builder, loc, last, lastRow);
    Value isOfLap = nn::CompareOp::create(builder, loc, nn::ComparePredicate::le, nn::IotaOp::create(builder, loc, along, Value(), 0, 0, 1), lastRow);
    held = nn::SelectOp::create(builder, loc, isOfLap, nn::IotaOp::create(builder, loc, along, lap, 0, 0, 1), nn::IotaOp::create(builder, loc, along, lap, 0, -rows, 1));
  }

  void take(nn::AttentionOp op, nn::UpdateSliceOp update) {
    Value start = op.getQueryStart().front();
    auto move = [&](OpOperand &mask) { mask.set(masksOf(mask.get())); };
    if (op.getBias())
      llvm::for_each(op.getBiasMutable(), move);
    if (op.getVisible())
      llvm::for_each(op.getVisibleMutable(), move);
    // Later rows of a chunk lie anywhere in the ring. Of one row there are none.
    if (nn::shapeOf(update.getRows())[size_t(update.getDim())] > 1) {
      const int64_t queries = nn::shapeOf(op.getQuery())[2];
      Value query = nn::IotaOp::create(builder, loc, RankedTensorType::get({1, 1, queries, 1}, builder.getI64Type()), start, 2, 0, 1);
      Value key = nn::ReshapeOp::create(builder, loc, RankedTensorType::get({1, 1, 1, rows}, builder.getI64Type()), held);
      Value visible = nn::CompareOp::create(builder, loc, nn::ComparePredicate::ge, query, key);
      if (op.getVisible())
        visible = nn::AndOp::create(builder, loc, op.getVisible(), visible);
      else
        op.setHidden(llvm::APFloat(-std::numeric_limits<double>::infinity()));
      op.getVisibleMutable().assign(visible);
    }
    // Rows that nothing has written yet are the last ones: they are not read.
    op.getQueryStartMutable().assign(Value(nn::MinOp::create(builder, loc, start, number(rows - 1))));
  }

private:
  Value number(int64_t value) { return nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(RankedTensorType::get({}, builder.getI64Type()), value)); }

  bool isAlongKeys(Value value) const { return !nn::shapeOf(value).empty() && nn::shapeOf(value).back() == length; }

  /// What has the mask of the ring's rows if its operands have theirs.
  bool keepsKeys(Operation *op) const {
    return accessOf(op) == Access::Elementwise || isa<nn::BroadcastOp>(op) || (isa<nn::ReshapeOp>(op) && isAlongKeys(op->getOperand(0)));
  }

  /// A mask or bias with the keys of the ring as its last dim.
  Value masksOf(Value mask) {
    llvm::SetVector<Operation *> ops;
    SmallVector<Value> open = {mask};
    while (!open.empty())
      if (Value value = open.pop_back_val(); isAlongKeys(value) && value.getDefiningOp() && keepsKeys(value.getDefiningOp()) && ops.insert(value.getDefiningOp()))
        llvm::append_range(open, value.getDefiningOp()->getOperands());
    SmallVector<Operation *> sorted = ops.takeVector();
    llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    IRMapping ofRing;
    auto taken = [&](Value value) {
      if (isAlongKeys(value) && !ofRing.contains(value))
        ofRing.map(value, takenFrom(value));
      return ofRing.lookupOrDefault(value);
    };
    for (Operation *op : sorted) {
      llvm::for_each(op->getOperands(), taken);
      Operation *clone = builder.clone(*op, ofRing);
      clone->getResult(0).setType(withLastDim(op->getResult(0), rows));
    }
    return taken(mask);
  }

  /// The elements of the positions held, of a value of all positions.
  Value takenFrom(Value value) {
    const RankedTensorType type = withLastDim(value, rows);
    auto iota = value.getDefiningOp<nn::IotaOp>();
    if (!iota || iota.getDim() + 1 != uint64_t(type.getRank()) || type.getNumElements() != rows)
      return nn::GatherOp::create(builder, loc, type, value, held, type.getRank() - 1);
    Value numbers = held;
    if (iota.getOffset())
      numbers = nn::AddOp::create(builder, loc, numbers, iota.getOffset());
    if (iota.getStep() != 1)
      numbers = nn::MulOp::create(builder, loc, numbers, number(int64_t(iota.getStep())));
    if (iota.getStart() != 0)
      numbers = nn::AddOp::create(builder, loc, numbers, number(int64_t(iota.getStart())));
    if (!type.getElementType().isInteger(64))
      numbers = nn::CastOp::create(builder, loc, nn::tensorType(numbers).clone(type.getElementType()), numbers);
    return nn::ReshapeOp::create(builder, loc, type, numbers);
  }

  OpBuilder &builder;
  const Location loc;
  const int64_t length, rows;
  Value held; ///< i64 [rows]: the positions of the rows once the step's own are written
};

/// Whether nothing but `attention` reads the state, and the function returns it.
bool isOwn(nn::UpdateSliceOp update, nn::AttentionOp attention) {
  return llvm::all_of(update->getUsers(), [&](Operation *user) { return user == attention || isa<func::ReturnOp>(user); });
}

struct KeepWindows : impl::KeepWindowsBase<KeepWindows> {
  using KeepWindowsBase::KeepWindowsBase;

  void keep(nn::AttentionOp op) {
    const auto window = cast_or_null<IntegerAttr>(op->removeAttr(windowAttrName));
    auto keys = op.getKey().getDefiningOp<nn::UpdateSliceOp>(), values = op.getValue().getDefiningOp<nn::UpdateSliceOp>();
    // A score in place of `visible` that counts is no mask.
    if (!window || !keys || !values || !isOwn(keys, op) || !isOwn(values, op) || (op.getVisible() && op.getHidden().value_or(llvm::APFloat(0.0)).convertToDouble() > maskingNumber))
      return;
    const size_t dim = size_t(keys.getDim());
    const int64_t length = nn::shapeOf(keys.getState())[dim], rows = window.getInt() + std::max<int64_t>(chunk, nn::shapeOf(keys.getRows())[dim]) - 1;
    if (rows >= length)
      return;
    for (nn::UpdateSliceOp update : {keys, values}) {
      SmallVector<int64_t> shape(nn::shapeOf(update.getState()));
      shape[dim] = rows;
      update.getState().setType(nn::tensorType(update.getState()).clone(shape));
      update.getResult().setType(nn::tensorType(update.getResult()).clone(shape));
      update.setWraps(true);
    }
    OpBuilder builder(op);
    Ring(builder, keys, length, rows).take(op, keys);
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    for (nn::AttentionOp op : llvm::make_early_inc_range(function.front().getOps<nn::AttentionOp>()))
      keep(op);
    Block &block = function.front();
    function.setFunctionType(FunctionType::get(&getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  }
};
} // namespace

} // namespace hpc
