// Two kinds of region. By rows: an item is a row of the root shape: first its reductions over the last dim and its
// composites' numbers, then one loop over the last dim for all results; if sums of rows are among the results, an item
// is a block of rows, one after the other. By columns: an item is a block of columns (ColumnRegion).
#include "passes/Kernels/Elements/RegionBody.h"

#include "compiler/Accumulations.h"
#include "compiler/Diagnostics.h"
#include "compiler/ElementType.h"
#include "passes/Kernels/Elements/Accumulation.h"
#include "passes/Kernels/Elements/ColumnRegion.h"
#include "passes/Kernels/Elements/RegionShape.h"
#include "passes/Kernels/Elements/RowComposites.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <set>

namespace hpc::kernels {

LogicalResult checkOps(nn::FusedOp region) {
  for (Operation &op : region.getBody().front().without_terminator()) {
    if (!hasElementEmitter(op.getName()) && !isAttention(&op))
      return userError(&op, ErrorKind::Internal)
             << op.getName() << " in region '" << region.getSymbol()
             << "' has no code; add it to passes/Kernels/Elements/ScalarEmitter.cpp or ElementEmitter.cpp";
    for (Value value : op.getResults())
      if (!findDType(value.getType()))
        return userError(&op, ErrorKind::Unsupported)
               << "element type of " << value.getType() << " has no generated code";
    if (auto constant = dyn_cast<nn::ConstantOp>(op); constant && !isa<DenseElementsAttr>(constant.getValue()))
      return userError(&op, ErrorKind::Internal) << "a constant in region '" << region.getSymbol() << "' must be dense";
  }
  return success();
}

void eraseDeadOps(func::FuncOp function) {
  function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
}

namespace {
/// The longest row that a composite keeps on the stack; it computes elements of a longer one again.
constexpr int64_t maxRowOnStack = 4096;

/// Whether the region reads `value`, which has the root's shape, only at the element that it computes or in
/// once-per-row code: then its row may use the buffer of a result, whose elements overwrite it one by one.
bool isReadInOrder(Value value, const RegionShape &shape) {
  SmallVector<Value> open = {value};
  DenseSet<Value> seen = {value};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (isa<nn::YieldOp>(user) || (isa<nn::ReduceOp>(user) && llvm::is_contained(shape.rowOps, user)))
        continue;
      bool isSameElement = accessOf(user) == Access::Elementwise || llvm::is_contained(shape.rowOps, user);
      if (!isSameElement || nn::shapeOf(user->getResult(0)) != ArrayRef<int64_t>(shape.root))
        return false;
      if (seen.insert(user->getResult(0)).second)
        open.push_back(user->getResult(0));
    }
  return true;
}

/// The positions where a row of `columns` elements, concatenated or padded, goes from one part to the next: a loop for
/// each part reads that part alone, in vectors, where one loop selects the part at each element. At most a few parts,
/// of a minimum length.
SmallVector<int64_t> findSeams(nn::FusedOp region, int64_t columns) {
  constexpr size_t mostSeams = 3;
  constexpr int64_t leastLength = 8;
  std::set<int64_t> seams = {0, columns};
  region.getBody().walk([&](Operation *op) {
    if (op->getNumResults() == 0 || nn::shapeOf(op->getResult(0)).empty() ||
        nn::shapeOf(op->getResult(0)).back() != columns)
      return;
    for (int64_t seam : seamsOf(op))
      seams.insert(seam);
  });
  SmallVector<int64_t> list(seams.begin(), seams.end());
  for (size_t i = 1; i < list.size(); ++i)
    if (list[i] - list[i - 1] < leastLength)
      return {0, columns};
  return list.size() - 2 <= mostSeams ? list : SmallVector<int64_t>{0, columns};
}

/// The sum of exp(x - top) of a softmax written as single ops, where `top` is the rows' maximum; null if there is none.
nn::ReduceOp sumBelow(nn::ReduceOp top, const RegionShape &shape) {
  if (top.getKind() != ReduceKind::Max || !nn::tensorType(top.getOperand()).getElementType().isF32())
    return {};
  for (Operation *op : shape.rowOps) {
    auto sum = dyn_cast<nn::ReduceOp>(op);
    auto exp = sum && sum.getKind() == ReduceKind::Sum ? sum.getOperand().getDefiningOp<nn::ExpOp>() : nn::ExpOp();
    auto difference = exp ? exp.getOperand().getDefiningOp<nn::SubOp>() : nn::SubOp();
    if (difference && difference.getLhs() == top.getOperand() && difference.getRhs() == top.getResult())
      return sum;
  }
  return {};
}

/// By columns, on a target where one computes an item alone.
struct ColumnEmitter : BodyEmitter {
  using BodyEmitter::BodyEmitter;

  void emitColumns(const ColumnRegion &region, const IndexExpr &item) {
    auto [outer, block] = indices.split(item, region.blocks());
    IndexExpr first = IndexBuilder::mul(block, ColumnRegion::width);
    Value count = indices.constant(ColumnRegion::width);
    if (region.columns() % ColumnRegion::width != 0) // the last block
      count = registers.make<arith::MinSIOp>(
          count, registers.sub(indices.constant(region.columns()), indices.value(first)));
    // The index of the reductions' results, but for the column; in their operand the reduced dims are set in loops.
    Index at(region.operand.size());
    Index kept = delinearize(indices, outer, region.kept());
    for (size_t dim = 0, next = 0; dim + 1 < at.size(); ++dim)
      if (!llvm::is_contained(region.axes, int64_t(dim)))
        at[dim] = kept[next++];
    auto forEachColumn = [&](function_ref<void(const IndexExpr &, Index)> body, const Index &index) {
      emitter.loop(indices.constant(0), count, ColumnRegion::width, {}, [&](const IndexExpr &column, Value) -> Value {
        Index here = index;
        here.back() = indices.add(first, column);
        body(column, here);
        return {};
      });
    };
    // 1. Start values of the block's sums.
    SmallVector<Accumulation> sums;
    SmallVector<Value> memory;
    SmallVector<nn::ReduceOp> reductions(region.reductions);
    for (nn::ReduceOp op : reductions) {
      Type element = nn::tensorType(op.getOperand()).getElementType();
      sums.push_back({registers, op.getKind(), registerType(element), isUnsigned(element)});
      memory.push_back(emitter.nest().scratch(sums.back().memoryType(), ColumnRegion::width));
    }
    forEachColumn(
        [&](const IndexExpr &column, const Index &) {
          for (auto [sum, place] : llvm::zip_equal(sums, memory))
            emitter.nest().store(sum.toMemory(sum.start()), place, indices.value(column));
        },
        at);
    // 2. Down the rows.
    std::function<void(Index, ArrayRef<int64_t>)> along = [&](Index index, ArrayRef<int64_t> axes) {
      if (!axes.empty()) {
        emitter.loop(region.operand[size_t(axes.front())], {}, [&](const IndexExpr &i, Value) -> Value {
          index[size_t(axes.front())] = i;
          along(index, axes.drop_front());
          return {};
        });
        return;
      }
      forEachColumn(
          [&](const IndexExpr &column, const Index &here) {
            for (auto [op, sum, place] : llvm::zip_equal(reductions, sums, memory)) {
              Value state = sum.fromMemory(emitter.nest().load(sum.memoryType(), place, indices.value(column)));
              Value next = sum.combine(state, emitter.element(op.getOperand(), here));
              emitter.nest().store(sum.toMemory(next), place, indices.value(column));
            }
          },
          index);
    };
    along(at, region.axes);
    // 3. The results from the sums.
    forEachColumn(
        [&](const IndexExpr &column, const Index &here) {
          for (auto [op, sum, place] : llvm::zip_equal(reductions, sums, memory)) {
            Value state = sum.fromMemory(emitter.nest().load(sum.memoryType(), place, indices.value(column)));
            emitter.remember(op.getResult(), here,
                             registers.round(sum.finish(state), nn::tensorType(op.getResult()).getElementType()));
          }
          IndexExpr linear = linearize(indices, here, nn::shapeOf(reductions.front().getResult()));
          storeAll(here, linear, [](Value) { return true; });
        },
        at);
  }
};
} // namespace

/// Where the element of a result lies: of nn.update_slice in its state, of which the region computes the rows.
static IndexExpr placeOf(ElementEmitter &emitter, Value result, const Index &at, const IndexExpr &linear) {
  auto update = result.getDefiningOp<nn::UpdateSliceOp>();
  if (!update)
    return linear;
  ArrayRef<int64_t> state = nn::shapeOf(update.getState());
  const size_t dim = size_t(update.getDim());
  const int64_t places = update.getWraps() ? std::numeric_limits<int64_t>::max() / 2 : state[dim] - nn::shapeOf(update.getRows())[dim] + 1; // of the first row
  Index there = at;
  there[dim] = emitter.index().add(at[dim], emitter.index().atom(emitter.element(update.getPosition(), {}), places));
  if (update.getWraps())
    there[dim] = emitter.index().split(there[dim], state[dim]).second;
  return linearize(emitter.index(), there, state);
}

void BodyEmitter::storeAll(const Index &at, const IndexExpr &linear, function_ref<bool(Value)> isChosen) {
  // All elements before the first store: a result in place overwrites what another may read.
  SmallVector<IndexExpr> places;
  for (Value value : yielded) {
    places.push_back(linear);
    if (!isChosen(value))
      continue;
    emitter.element(value, at);
    places.back() = placeOf(emitter, value, at, linear);
  }
  emitter.once([&] {
    for (auto [value, output, place] : llvm::zip_equal(yielded, outputs, places))
      if (isChosen(value)) {
        Type type = nn::tensorType(value).getElementType();
        Value element = emitter.element(value, at);
        if (Value later = rowIsResult ? Value() : emitter.isLater())
          element = registers.select(later, registers.add(emitter.load(type, output, place), element), element);
        emitter.store(element, type, output, place);
      }
  });
}

/// A row for a composite: of a result's buffer, overwritten when the element is known, else on the stack; only the op
/// that accumulates may use a buffer with sums of earlier micro-batches. If several threads compute the row, each reads
/// only its own elements; their own memory is preferred then, since it is nearer.
std::optional<RowMemory> BodyEmitter::memoryFor(Operation *op, const RegionShape &shape, const IndexExpr &row,
                                                SmallVector<bool> &taken) {
  if (!keepsRow(op))
    return std::nullopt;
  Type element = rowType(op);
  LoopNest &nest = emitter.nest();
  if (nest.isShared()) {
    if (!isReadInOrder(op->getResult(0), shape))
      return std::nullopt;
    if (Value own = nest.ownRow(storageType(element), shape.columns()))
      return RowMemory{own, 0};
  }
  for (auto [i, value] : llvm::enumerate(yielded))
    if (!taken[i] && nn::shapeOf(value) == ArrayRef<int64_t>(shape.root) &&
        nn::tensorType(value).getElementType() == element && region.inPlaceOperand(unsigned(i)) < 0 &&
        isReadInOrder(op->getResult(0), shape) && (value == op->getResult(0) || !region.getAddsOverAttr())) {
      taken[i] = true;
      return RowMemory{outputs[i], IndexBuilder::mul(row, shape.columns()), value == op->getResult(0)};
    }
  if (nest.isShared() || shape.columns() > maxRowOnStack)
    return std::nullopt;
  return RowMemory{nest.scratch(storageType(element), shape.columns()), 0};
}

/// Computes both in one pass if the nest can; otherwise does nothing.
void BodyEmitter::emitShiftedSum(const RegionShape &shape, nn::ReduceOp top, const Index &rowElement) {
  nn::ReduceOp sum = sumBelow(top, shape);
  if (!sum)
    return;
  auto at = [&](const IndexExpr &column) {
    Index index = rowElement;
    index.back() = column;
    return index;
  };
  std::optional<ShiftedSum> both = emitter.shareShifted(
      shape.columns(), [&](const IndexExpr &column) { return emitter.element(top.getOperand(), at(column)); },
      [&](const IndexExpr &column, Value shift) {
        emitter.remember(top.getResult(), rowElement, shift);
        return emitter.element(sum.getOperand(), at(column));
      },
      [&] { return emitter.element(top.getResult(), rowElement); });
  if (!both)
    return;
  emitter.remember(top.getResult(), rowElement, both->largest);
  emitter.remember(sum.getResult(), rowElement, both->sum);
}

void BodyEmitter::emitRow(const RegionShape &shape, const IndexExpr &row, const IndexExpr &item) {
  Index rowIndex = delinearize(indices, row, shape.outer());
  Index rowElement = rowIndex; // of a value of row shape
  if (!shape.root.empty())
    rowElement.push_back(0);
  SmallVector<bool> taken(yielded.size());
  for (Operation *op : shape.rowOps) {
    if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
      emitShiftedSum(shape, reduce, rowElement);
      emitter.element(op->getResult(0), rowElement);
    } else if (RowNumbers known = emitter.startRow(op, rowElement, memoryFor(op, shape, row, taken)); known.memory) {
      rowIsResult = known.memory->isResult;
    }
  }
  auto isPerRow = [&](Value value) { return shape.columns() == 1 || shape.isRowShape(computedShape(value)); };
  storeAll(rowElement, row, isPerRow);
  if (shape.columns() == 1)
    return;
  auto element = [&](const IndexExpr &column) -> Value {
    Index at = rowIndex;
    at.push_back(column);
    SmallVector<Value> terms; // before a result in place overwrites what they read
    for (const ColumnSum &sum : shape.columnSums) {
      ArrayRef<int64_t> from = nn::shapeOf(sum.term);
      Index there = from == ArrayRef<int64_t>(shape.root) ? rowIndex : delinearize(indices, row, from.drop_back());
      there.push_back(column);
      terms.push_back(emitter.element(sum.term, there));
    }
    storeAll(at, indices.add(IndexBuilder::mul(row, shape.columns()), column),
             [&](Value value) { return !isPerRow(value) && !shape.isColumnSum(value); });
    forEachSum(shape, indices.add(IndexBuilder::mul(item, shape.columns()), column),
               [&](size_t sum, Value before) { return registers.add(before, terms[sum]); });
    return {};
  };
  if (emitter.nest().isShared()) { // the threads' columns must be those of the whole row
    emitter.share(shape.columns(), {}, element, nullptr);
    return;
  }
  SmallVector<int64_t> seams = findSeams(region, shape.columns());
  for (size_t i = 1; i < seams.size(); ++i)
    emitter.share(
        seams[i] - seams[i - 1], {},
        [&](const IndexExpr &column) { return element(indices.add(column, seams[i - 1])); }, nullptr);
}

/// Replaces each sum, at an element of its result, by `next`(its number, its current value).
void BodyEmitter::forEachSum(const RegionShape &shape, const IndexExpr &linear,
                             function_ref<Value(size_t, Value)> next) {
  for (auto [value, output] : llvm::zip_equal(yielded, outputs))
    for (auto [number, sum] : llvm::enumerate(shape.columnSums))
      if (sum.op->getResult(0) == value) {
        Type type = nn::tensorType(value).getElementType();
        emitter.store(next(number, emitter.load(type, output, linear)), type, output, linear);
      }
}

void BodyEmitter::emitItem(const RegionShape &shape, const IndexExpr &item) {
  if (shape.columnSums.empty())
    return emitRow(shape, item, item);
  // If several threads compute a row, each adds up its own columns.
  emitter.share(
      shape.columns(), {},
      [&](const IndexExpr &column) -> Value {
        forEachSum(shape, indices.add(IndexBuilder::mul(item, shape.columns()), column),
                   [&](size_t, Value before) { return registers.like(before, 0); });
        return {};
      },
      nullptr);
  emitter.forEachRow(shape.rowsOfItem, [&](const IndexExpr &row) {
    emitRow(shape, indices.add(IndexBuilder::mul(item, shape.rowsOfItem), row), item);
  });
}

LogicalResult emitBody(ElementEmitter &emitter, nn::FusedOp region, ValueRange outputs) {
  ColumnEmitter body(region, emitter, outputs);
  if (std::optional<ColumnRegion> columns = findColumnRegion(region)) {
    emitter.forEachItem(columns->items(), [&](const IndexExpr &item) { body.emitColumns(*columns, item); });
    return success();
  }
  std::optional<RegionShape> shape = findRegionShape(region);
  if (!shape)
    return failure();
  for (Operation *op : shape->rowOps)
    if (isRowComposite(op->getName()))
      prepareRowComposite(emitter, op, shape->rowsOfItem);
  emitter.forEachItem(shape->items(), [&](const IndexExpr &item) { body.emitItem(*shape, item); });
  return success();
}

} // namespace hpc::kernels
