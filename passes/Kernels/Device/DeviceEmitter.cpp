// A region as a kernel: the shapes of DeviceShape on DeviceLoops. RegionBody and ElementEmitter define elements, as for
// the host.
#include "passes/Kernels/Device/DeviceEmitter.h"

#include "compiler/Diagnostics.h"
#include "passes/Kernels/Device/DeviceAttention.h"
#include "passes/Kernels/Device/DeviceLoops.h"
#include "passes/Kernels/Elements/Accumulation.h"
#include "passes/Kernels/Elements/CausalOffset.h"
#include "passes/Kernels/Elements/Dropout.h"
#include "passes/Kernels/Elements/RegionBody.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace hpc::kernels {

namespace {
constexpr int64_t argumentAlignment = 16; // plan::Kernel guarantees it for every pointer

struct DeviceBody : BodyEmitter {
  const DeviceShape &shape;
  DeviceLoops &nest;
  DeviceBody(nn::FusedOp region, ElementEmitter &emitter, ValueRange outputs, const DeviceShape &shape,
             DeviceLoops &nest)
      : BodyEmitter(region, emitter, outputs), shape(shape), nest(nest) {}

  /// `width` neighbours, one after the other: LLVM joins their accesses. As a loop it leaves them apart where an element
  /// takes many instructions, which takes three times as long on an H100.
  void emitElements(const IndexExpr &item) {
    int64_t columns = shape.rows->columns();
    auto [row, chunk] = indices.split(item, std::max<int64_t>(columns / shape.width, 1));
    Index at = delinearize(indices, row, shape.rows->outer());
    if (!shape.rows->root.empty())
      at.push_back(0);
    for (int64_t i = 0; i < shape.width; ++i)
      emitter.inScope([&, row = row, chunk = chunk] {
        IndexExpr column = indices.add(IndexBuilder::mul(chunk, shape.width), i);
        if (!at.empty())
          at.back() = column;
        storeAll(at, indices.add(IndexBuilder::mul(row, columns), column), [](Value) { return true; });
      });
  }

  /// Two steps: a lane of threads sums every n-th row, then the first lane joins the lanes' sums in their order.
  void emitColumns(const IndexExpr &item) {
    const ColumnRegion &columns = *shape.columns;
    constexpr int64_t width = DeviceShape::columnsOfBlock;
    int64_t lanes = shape.lanesOfColumn(), blocks = (columns.columns() + width - 1) / width;
    auto [outer, block] = indices.split(item, blocks);
    auto [lane, side] = indices.split(indices.atom(nest.lane(), shape.team), width);
    // The last block may have fewer columns: its threads beyond read the last one, and keep the result to themselves.
    IndexExpr wanted = indices.add(IndexBuilder::mul(block, width), side);
    Value isColumn = indices.isWithin(wanted, 0, columns.columns());
    Index at(columns.operand.size());
    Index kept = delinearize(indices, outer, columns.kept());
    for (size_t dim = 0, next = 0; dim + 1 < at.size(); ++dim)
      if (!llvm::is_contained(columns.axes, int64_t(dim)))
        at[dim] = kept[next++];
    at.back() = indices.clamp(wanted, columns.columns());

    // 1. Down the rows.
    SmallVector<int64_t> sizes;
    for (int64_t axis : columns.axes)
      sizes.push_back(columns.operand[size_t(axis)]);
    SmallVector<Accumulation> sums;
    SmallVector<Value> states; // registers, after LLVM's passes
    SmallVector<nn::ReduceOp> reductions(columns.reductions);
    for (nn::ReduceOp op : reductions) {
      Type element = nn::tensorType(op.getOperand()).getElementType();
      Accumulation &sum = sums.emplace_back(
          Accumulation{registers, op.getKind(), registerType(element), isUnsigned(element)});
      states.push_back(nest.scratch(sum.memoryType(), 1));
      nest.store(sum.toMemory(sum.start()), states.back(), indices.constant(0));
    }
    auto read = [&](size_t i, Value memory, Value position) {
      return sums[i].fromMemory(nest.load(sums[i].memoryType(), memory, position));
    };
    auto addRow = [&](const IndexExpr &row) {
      Index here = at;
      for (auto [axis, digit] : llvm::zip_equal(columns.axes, delinearize(indices, row, sizes)))
        here[size_t(axis)] = digit;
      for (size_t i = 0; i < sums.size(); ++i) {
        Value next = sums[i].combine(read(i, states[i], indices.constant(0)),
                                     emitter.element(reductions[i].getOperand(), here));
        nest.store(sums[i].toMemory(next), states[i], indices.constant(0));
      }
    };
    int64_t rows = shape.reducedRows(), whole = rows / lanes, rest = rows % lanes;
    emitter.loop(whole, {}, [&, lane = lane](const IndexExpr &i, Value) -> Value {
      addRow(indices.add(IndexBuilder::mul(i, lanes), lane));
      return {};
    });
    if (rest > 0)
      nest.onlyIf(indices.isWithin(indices.value(lane), indices.constant(0), indices.constant(rest)), [&, lane = lane] {
        emitter.inScope([&] { addRow(indices.add(whole * lanes, lane)); });
      });
    // 2. The lanes' sums, and the results from them.
    SmallVector<Value> partials;
    if (lanes > 1) {
      for (size_t i = 0; i < sums.size(); ++i) {
        partials.push_back(nest.shared(sums[i].memoryType(), shape.team));
        nest.store(nest.load(sums[i].memoryType(), states[i], indices.constant(0)), partials[i], nest.lane());
      }
      nest.barrier();
    }
    Value isFirst = registers.compare(arith::CmpIPredicate::slt, nest.lane(), indices.constant(width));
    Value isWanted = isColumn ? registers.make<arith::AndIOp>(isFirst, isColumn) : isFirst;
    nest.onlyIf(isWanted, [&, side = side] {
      emitter.inScope([&] {
        for (size_t i = 0; i < sums.size(); ++i) {
          Value total = lanes > 1 ? read(i, partials[i], indices.value(side)) : read(i, states[i], indices.constant(0));
          for (int64_t other = 1; other < lanes; ++other)
            total = sums[i].join(total, read(i, partials[i], indices.value(indices.add(side, other * width))));
          Type element = nn::tensorType(reductions[i].getResult()).getElementType();
          emitter.remember(reductions[i].getResult(), at, registers.round(sums[i].finish(total), element));
        }
        storeElement(at, linearize(indices, at, nn::shapeOf(reductions.front().getResult())));
      });
    });
  }

  /// Stores all results, for a single thread.
  void storeElement(const Index &at, const IndexExpr &linear) {
    for (Value value : yielded)
      emitter.element(value, at);
    for (auto [value, output] : llvm::zip_equal(yielded, outputs))
      emitter.store(emitter.element(value, at), nn::tensorType(value).getElementType(), output, linear);
  }

  DeviceMatrices matricesOf(const AttentionTensor &tensor, ValueRange in, int64_t rows, int64_t columns) {
    return {in[tensor.buffer], tensor.elementType, tensor.strides, tensor.offset, rows, columns, 0, tensor.casts};
  }
  void emitAttentions(const AttentionRegion &found, ValueRange operands) {
    DeviceAttention attention{found.batch, found.heads(), found.groups, found.queries, found.keys,
                              matricesOf(found.query, operands, found.queries, found.depth),
                              {}, {}, {}, {}, found.isPart(), {}, {}, {}, {}, found.scale, found.hidden, found.causalOffset, {}, found.guarded,
                              found.mayBeBlind(), registerType(found.query.elementType)};
    for (const AttentionKeys &part : found.parts) {
      attention.parts.push_back({matricesOf(part.key, operands, part.end, found.depth),
                                 matricesOf(part.value, operands, part.end, found.width)});
      attention.parts.back().key.firstRow = attention.parts.back().value.firstRow = part.first;
    }
    if (found.gradient)
      attention.gradient = matricesOf(*found.gradient, operands, found.queries, found.width);
    int64_t rows[] = {found.queries, found.keys, found.keys}, columns[] = {found.depth, found.depth, found.width};
    if (!found.isGradient()) {
      columns[0] = found.width;
      std::tie(rows[1], columns[1]) = std::pair(found.queries, 2); // log_sum
    }
    for (auto [i, tensor] : llvm::enumerate(found.elsewhere))
      attention.elsewhere.push_back(matricesOf(tensor, operands, found.queries, found.isGradient() ? (i == 0 ? 2 : 1) : (i == 0 ? found.width : 2)));
    for (auto [i, result] : llvm::enumerate(found.results))
      attention.results.push_back(matricesOf(result, outputs, rows[i], columns[i]));
    DeviceTiles tiles(registers.builder, registers.loc, nest, attention.wide);
    auto elementOf = [&](Value mask, Value batch, Value head, Value query, Value key) {
      Index at = broadcastIndex({indices.atom(batch, found.batch), indices.atom(head, found.heads()),
                                 indices.atom(query, found.queries), indices.atom(key, found.keys)},
                                nn::shapeOf(mask));
      Value element;
      emitter.inScope([&] { element = emitter.element(mask, at); });
      return element;
    };
    if (found.bias)
      attention.bias = [&](Value batch, Value head, Value query, Value key) {
        return tiles.convert(elementOf(found.bias, batch, head, query, key),
                             registerType(nn::tensorType(found.bias).getElementType()), attention.wide);
      };
    if (found.visible)
      attention.visible = [&](Value batch, Value head, Value query, Value key) {
        return elementOf(found.visible, batch, head, query, key);
      };
    auto positionOf = [&](Value batch, Value query) {
      Value position;
      emitter.inScope([&] {
        query = tiles.least(query, tiles.number(found.queries - 1));
        position = emitQueryPosition(emitter, found, indices.atom(batch, found.batch), indices.atom(query, found.queries));
      });
      return position;
    };
    std::optional<DropoutMask> dropout;
    if (found.dropout) {
      dropout.emplace(emitter, *found.dropout);
      attention.keeps = [&](Value batch, Value head, Value query, Value key) {
        auto [group, member] = tiles.split(head, found.repeat);
        if (found.queryPositions)
          query = positionOf(batch, query);
        Value at = tiles.mul(batch, dropout->stride(0));
        const Value along[] = {group, member, query, key};
        for (auto [dim, index] : llvm::enumerate(along))
          at = tiles.add(at, tiles.mul(index, dropout->stride(dim + 1)));
        return dropout->keeps(registers.add(dropout->start(), dropout->positionOf(at)));
      };
      attention.dropped = [&](Value weight, Value isKept) { return dropout->apply(weight, isKept); };
    }
    if (found.moves())
      attention.movingOffset = emitCausalOffset(emitter, found);
    if (found.isPlaced())
      attention.lastKey = [&](Value batch, Value query) {
        Value last;
        emitter.inScope([&] {
          last = emitLastKey(emitter, found, indices.atom(batch, found.batch), indices.atom(query, found.queries), attention.movingOffset);
        });
        return last;
      };
    nest.forEachItem(shape.items, [&](Value item) {
      found.isGradient() ? emitAttentionGrad(tiles, attention, item) : emitAttention(tiles, attention, item);
    });
  }

  void emit() {
    emitter.forEachItem(shape.items, [&](const IndexExpr &item) {
      switch (shape.kind) {
      case DeviceShape::Kind::Elements:
        return emitElements(item);
      case DeviceShape::Kind::Rows:
        return emitItem(*shape.rows, item);
      case DeviceShape::Kind::Columns:
        return emitColumns(item);
      case DeviceShape::Kind::Attention:
        return; // emitAttentions
      }
    });
  }
};
} // namespace

FailureOr<DeviceLaunch> emitDeviceRegion(nn::FusedOp region, ModuleOp kernels) {
  if (failed(checkOps(region)))
    return failure();
  std::optional<DeviceShape> shape = findDeviceShape(region);
  if (!shape)
    return userError(region, ErrorKind::Internal)
           << "results of region '" << region.getSymbol() << "' have no common root shape; split the region";
  OpBuilder builder(kernels.getContext());
  Location loc = builder.getUnknownLoc();
  Type pointer = LLVM::LLVMPointerType::get(kernels.getContext());
  size_t numOperands = region.getNumOperands(), numResults = region.getNumResults();
  SmallVector<Type> types(numOperands + numResults, pointer);
  types.append(collectScalars(region).size(), builder.getI64Type());
  builder.setInsertionPointToEnd(kernels.getBody());
  auto function = func::FuncOp::create(builder, loc, region.getSymbol(), builder.getFunctionType(types, {}));
  // Threads of a gradient exchange numbers through its unfinished result, so its pointer must not be noalias.
  const bool exchanges = shape->attention && shape->attention->isGradient();
  for (unsigned i = 0; i < numOperands + numResults; ++i) {
    if (i < numOperands || !exchanges)
      function.setArgAttr(i, "llvm.noalias", builder.getUnitAttr()); // of two in place, only one is used
    function.setArgAttr(i, "llvm.align", builder.getI64IntegerAttr(argumentAlignment));
  }
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  ValueRange arguments(entry->getArguments());
  ValueRange buffers = arguments.take_front(numOperands);
  SmallVector<Value> outputs(arguments.drop_front(numOperands).take_front(numResults));
  for (unsigned i = 0; i < numResults; ++i)
    if (int64_t operand = region.inPlaceOperand(i); operand >= 0)
      outputs[i] = buffers[operand];
  DeviceLoops nest(builder, loc, entry, *shape, outputs);
  ElementEmitter emitter(builder, nest, region, buffers, arguments.drop_front(numOperands + numResults), entry);
  DeviceBody body(region, emitter, outputs, *shape, nest);
  if (!shape->attention)
    body.emit();
  else if (shape->items > 0)
    body.emitAttentions(*shape->attention, buffers);
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, loc);
  eraseDeadOps(function);
  return DeviceLaunch{region.getSymbol().str(), shape->blocks(), shape->threads(), nest.sharedBytes()};
}

} // namespace hpc::kernels
