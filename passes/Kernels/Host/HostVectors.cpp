// Tiles keep an accumulator for each of their vectors in a register; the target's number of registers bounds their
// size.
#include "passes/Kernels/Host/HostVectors.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

namespace hpc::kernels {

Value HostVectors::splat(Value scalar) {
  Value undefined = LLVM::PoisonOp::create(s.builder, s.loc, vector.clone(scalar.getType()));
  Value zero = s.whole(s.builder.getI64Type(), 0);
  Value first = LLVM::InsertElementOp::create(s.builder, s.loc, undefined, scalar, zero);
  return LLVM::ShuffleVectorOp::create(s.builder, s.loc, first, undefined, SmallVector<int32_t>(size_t(lanes()), 0));
}

static Value addressOf(ScalarBuilder &s, Type type, Value pointer, Value position) {
  return LLVM::GEPOp::create(s.builder, s.loc, pointer.getType(), type, pointer, position);
}
static unsigned bytesOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }

Value HostVectors::load(const VectorRows &rows, const IndexExpr &row, int64_t column) {
  IndexExpr at = indices.add(rows.offset, indices.add(IndexBuilder::mul(row, rows.stride), column * lanes()));
  return LLVM::LoadOp::create(s.builder, s.loc, vector, addressOf(s, element(), rows.pointer, indices.value(at)),
                              bytesOf(element()));
}
void HostVectors::store(Value value, const VectorRows &rows, const IndexExpr &row, int64_t column) {
  IndexExpr at = indices.add(rows.offset, indices.add(IndexBuilder::mul(row, rows.stride), column * lanes()));
  LLVM::StoreOp::create(s.builder, s.loc, value, addressOf(s, element(), rows.pointer, indices.value(at)),
                        bytesOf(element()));
}
Value HostVectors::loadScalar(Type type, Value pointer, const IndexExpr &position) {
  return LLVM::LoadOp::create(s.builder, s.loc, type, addressOf(s, type, pointer, indices.value(position)));
}
void HostVectors::storeScalar(Value value, Value pointer, const IndexExpr &position) {
  LLVM::StoreOp::create(s.builder, s.loc, value, addressOf(s, value.getType(), pointer, indices.value(position)));
}

Value HostVectors::joinLanes(Value lanes, function_ref<Value(Value, Value)> join) {
  for (int64_t half = vector.getNumElements() / 2; half > 0; half /= 2) {
    SmallVector<int32_t> lower(static_cast<size_t>(half)), upper(static_cast<size_t>(half));
    std::iota(lower.begin(), lower.end(), 0);
    std::iota(upper.begin(), upper.end(), int32_t(half));
    lanes = join(LLVM::ShuffleVectorOp::create(s.builder, s.loc, lanes, lanes, lower),
                 LLVM::ShuffleVectorOp::create(s.builder, s.loc, lanes, lanes, upper));
  }
  return LLVM::ExtractElementOp::create(s.builder, s.loc, lanes, s.whole(s.builder.getI64Type(), 0));
}

Value HostVectors::scratch(int64_t count, Type type) {
  return emitter.nest().scratch(type ? type : element(), std::max<int64_t>(count, 1));
}

SmallVector<Value> HostVectors::loop(Value first, Value last, int64_t step, int64_t extent, ValueRange states,
                                     function_ref<SmallVector<Value>(const IndexExpr &, ValueRange)> body) {
  auto loop = scf::ForOp::create(s.builder, s.loc, first, last, indices.constant(step), states);
  OpBuilder::InsertionGuard guard(s.builder);
  s.builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next;
  emitter.inScope([&] { next = body(indices.atom(loop.getInductionVar(), extent), loop.getRegionIterArgs()); });
  s.builder.setInsertionPointToEnd(loop.getBody());
  if (!states.empty())
    scf::YieldOp::create(s.builder, s.loc, next);
  return SmallVector<Value>(loop.getResults());
}
void HostVectors::loop(Value first, Value last, int64_t step, int64_t extent,
                       function_ref<void(const IndexExpr &)> body) {
  loop(first, last, step, extent, {}, [&](const IndexExpr &i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}
void HostVectors::loop(int64_t count, function_ref<void(const IndexExpr &)> body) {
  loop(indices.constant(0), indices.constant(count), 1, count, body);
}

// ---- products -----------------------------------------------------------------------------------

int64_t HostVectors::tileRows(int64_t rows, int64_t columns) const {
  // The rest holds a row of b and the broadcast scalar.
  int64_t accumulators = unit.registers * 3 / 4;
  int64_t most = std::clamp<int64_t>(accumulators / std::max<int64_t>(columns, 1), 1, maxTileRows);
  if (rows == 0)
    return most;
  if (rows <= most)
    return rows;
  for (int64_t even = most; even * 3 >= most * 2; --even) // no remainder beats a few accumulators more
    if (rows % even == 0)
      return even;
  return most;
}

void HostVectors::tile(const VectorRows &c, const IndexExpr &row, int64_t rows, int64_t firstColumn, int64_t columns,
                       const ScalarMatrix &a, const VectorRows &b, Value depth,
                       function_ref<Value(const IndexExpr &, int64_t)> start) {
  ScalarBuilder exact = s.contracting();
  SmallVector<Value> sums;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t column = firstColumn; column < firstColumn + columns; ++column)
      sums.push_back(start(indices.add(row, r), column));
  sums = loop(
      indices.constant(0), depth, 1, std::numeric_limits<int32_t>::max(), sums,
      [&](const IndexExpr &k, ValueRange states) {
        SmallVector<Value> vectors, next;
        for (int64_t column = firstColumn; column < firstColumn + columns; ++column)
          vectors.push_back(load(b, k, column));
        for (int64_t r = 0; r < rows; ++r) {
          IndexExpr at = indices.add(a.offset, IndexBuilder::mul(indices.add(row, r), a.rowStride));
          Value scalar = splat(loadScalar(element(), a.pointer, indices.add(at, IndexBuilder::mul(k, a.depthStride))));
          for (int64_t column = 0; column < columns; ++column)
            next.push_back(exact.add(exact.mul(scalar, vectors[size_t(column)]), states[size_t(r * columns + column)]));
        }
        return next;
      });
  for (int64_t r = 0, next = 0; r < rows; ++r)
    for (int64_t column = firstColumn; column < firstColumn + columns; ++column)
      store(sums[size_t(next++)], c, indices.add(row, r), column);
}

void HostVectors::product(const VectorRows &c, const ProductRows &rows, const ScalarMatrix &a, const VectorRows &b,
                          Value depth, function_ref<Value(const IndexExpr &, int64_t)> start) {
  const int64_t widest = widestTile();
  for (int64_t column = 0; column < b.columns; column += widest) {
    int64_t columns = std::min(widest, b.columns - column), step = tileRows(rows.fixed, columns);
    auto at = [&](const IndexExpr &row, int64_t count) { tile(c, row, count, column, columns, a, b, depth, start); };
    if (!rows.count) {
      int64_t whole = rows.fixed / step * step;
      if (whole == step)
        emitter.inScope([&] { at(0, step); });
      else if (whole > 0)
        loop(indices.constant(0), indices.constant(whole), step, whole, [&](const IndexExpr &row) { at(row, step); });
      if (whole < rows.fixed)
        emitter.inScope([&] { at(whole, rows.fixed - whole); });
      continue;
    }
    constexpr int64_t manyRows = std::numeric_limits<int32_t>::max();
    loop(indices.constant(0), rows.count, step, manyRows, [&](const IndexExpr &first) {
      if (!rows.lastTile)
        return at(first, step);
      // Indices are not negative, so it is shifted while it is a number of its own.
      Value begin = s.make<arith::MinSIOp>(indices.value(first), rows.lastTile);
      IndexExpr shifted = indices.atom(s.add(begin, indices.constant(maxTileRows)), manyRows);
      at(indices.add(shifted, -maxTileRows), step);
    });
  }
}

} // namespace hpc::kernels
