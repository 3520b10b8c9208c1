// A row of a tile in shared memory has an odd number of elements, so that threads of several rows hit different banks.
#include "passes/Kernels/Device/DeviceTiles.h"

#include "passes/Kernels/Elements/ElementEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hpc::kernels {

DeviceTiles::DeviceTiles(OpBuilder &builder, Location loc, DeviceLoops &nest, Type wide)
    : builder(builder), loc(loc), nest(nest), s(builder, loc), wide(wide) {
  std::tie(rowIndex, firstColumn) = split(nest.lane(), threadsOfRow);
}

std::pair<Value, Value> DeviceTiles::split(Value a, int64_t by) {
  if (by == 1)
    return {a, number(0)};
  return {s.make<arith::DivUIOp>(a, number(by)), s.make<arith::RemUIOp>(a, number(by))};
}

DeviceTiles::States DeviceTiles::loop(Value first, Value last, int64_t step, ValueRange states,
                                      function_ref<States(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(builder, loc, first, last, number(step), states);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  States next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!states.empty()) {
    builder.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(builder, loc, next);
  }
  return States(loop.getResults());
}

Value DeviceTiles::reserve(const DeviceMatrices &matrices) {
  return nest.shared(wide, rows * paddedColumns(matrices));
}

Value DeviceTiles::baseOf(const DeviceMatrices &matrices, Value batch, Value head) {
  return add(add(mul(batch, matrices.stride[0]), mul(head, matrices.stride[1])), matrices.offset);
}

Value DeviceTiles::convert(Value value, Type from, Type to) { return from == to ? value : emitCast(s, value, from, to); }

Value DeviceTiles::load(const DeviceMatrices &matrices, Value base, Value row, Value column) {
  Value position = add(base, add(mul(row, matrices.stride[2]), mul(column, matrices.stride[3])));
  Type stored = storageType(matrices.element);
  Value value = nest.load(stored, matrices.buffer, position);
  if (registerType(matrices.element) != stored)
    value = s.widen(value, matrices.element);
  value = emitCasts(s, value, matrices.element, matrices.casts);
  Type type = matrices.casts.empty() ? matrices.element : matrices.casts.back();
  return convert(value, registerType(type), wide);
}

void DeviceTiles::store(const DeviceMatrices &matrices, Value base, Value row, Value column, Value value) {
  Value position = add(base, add(mul(row, matrices.stride[2]), mul(column, matrices.stride[3])));
  Value rounded = convert(value, wide, matrices.element);
  if (rounded.getType() != storageType(matrices.element))
    rounded = s.narrow(rounded, matrices.element);
  nest.store(rounded, matrices.buffer, position);
}

DeviceTile DeviceTiles::stage(const DeviceMatrices &matrices, Value memory, Value base, Value first) {
  DeviceTile tile{&matrices, memory, base, first};
  if (!memory || matrices.columns == 0)
    return tile;
  const int64_t count = rows * matrices.columns;
  loop(number(0), number((count + threads - 1) / threads), 1, {}, [&](Value turn, ValueRange) -> States {
    Value i = add(mul(turn, threads), nest.lane());
    auto copy = [&] {
      auto [row, column] = split(i, matrices.columns);
      DeviceTile whereItIs{&matrices, Value(), base, first};
      nest.store(element(whereItIs, row, column), memory, add(mul(row, paddedColumns(matrices)), column));
    };
    if (count % threads == 0)
      copy();
    else
      nest.onlyIf(isLess(i, number(count)), copy);
    return {};
  });
  return tile;
}

Value DeviceTiles::element(const DeviceTile &tile, Value row, Value column) {
  const DeviceMatrices &matrices = *tile.matrices;
  if (tile.shared)
    return nest.load(wide, tile.shared, add(mul(row, paddedColumns(matrices)), column));
  // Inside the buffer, whatever column is requested.
  if (matrices.columns % threadsOfRow != 0)
    column = least(column, number(matrices.columns - 1));
  Value at = add(tile.first, row);
  if ((matrices.rows - matrices.firstRow) % rows == 0)
    return load(matrices, tile.base, at, column);
  Value last = number(matrices.rows - 1);
  Value value = load(matrices, tile.base, least(at, last), column);
  return s.select(s.compare(arith::CmpIPredicate::sle, at, last), value, s.like(value, 0));
}

DeviceTiles::States DeviceTiles::dots(const DeviceTile &left, const DeviceTile &right, Value leftRow) {
  States zeros(columnsOfThread, s.constant(wide, 0));
  return loop(number(0), number(left.matrices->columns), 1, zeros, [&](Value depth, ValueRange sums) {
    Value a = element(left, leftRow, depth);
    States next;
    for (auto [n, sum] : llvm::enumerate(sums))
      next.push_back(s.fma(a, element(right, add(firstColumn, int64_t(n) * threadsOfRow), depth), sum));
    return next;
  });
}

DeviceTiles::States DeviceTiles::addProduct(ValueRange sums, function_ref<Value(Value)> weight, const DeviceTile &right,
                                            int64_t first) {
  return loop(number(0), number(rows), 1, sums, [&](Value n, ValueRange sums) {
    Value factor = weight(n);
    States next;
    for (auto [u, sum] : llvm::enumerate(sums))
      next.push_back(s.fma(factor, element(right, n, add(firstColumn, first + int64_t(u) * threadsOfRow)), sum));
    return next;
  });
}

Value DeviceTiles::joinRow(Value state, function_ref<Value(Value, Value)> join) {
  for (int64_t distance = 1; distance < threadsOfRow; distance *= 2)
    state = join(state, nest.shuffle(state, distance));
  return state;
}

void DeviceTiles::storeSquare(Value square, Value row, Value column, Value value) {
  nest.store(value, square, add(mul(row, squareWidth), column));
}
Value DeviceTiles::loadSquare(Value square, Value row, Value column) {
  return nest.load(wide, square, add(mul(row, squareWidth), column));
}

} // namespace hpc::kernels
