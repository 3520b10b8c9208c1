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

Value HostVectors::loadLanes(Type type, Value pointer, int64_t column) {
  return LLVM::LoadOp::create(s.builder, s.loc, vector.clone(type), addressOf(s, type, pointer, indices.value(column * lanes())), bytesOf(type));
}

/// Transposes as many vectors as they have lanes, by blocks of growing size that are exchanged across the diagonal
/// (Eklundh 1972).
static void transposeSquare(ScalarBuilder &s, MutableArrayRef<Value> rows) {
  for (size_t block = 1; block < rows.size(); block *= 2) {
    SmallVector<int32_t> upper, lower;
    for (size_t lane = 0; lane < rows.size(); ++lane) {
      const bool isRight = lane & block;
      upper.push_back(int32_t(isRight ? rows.size() + lane - block : lane));
      lower.push_back(int32_t(isRight ? rows.size() + lane : lane + block));
    }
    for (size_t row = 0; row < rows.size(); ++row)
      if (!(row & block)) {
        const Value first = rows[row], second = rows[row + block];
        rows[row] = LLVM::ShuffleVectorOp::create(s.builder, s.loc, first, second, upper);
        rows[row + block] = LLVM::ShuffleVectorOp::create(s.builder, s.loc, first, second, lower);
      }
  }
}

void HostVectors::transpose(const VectorRows &from, const VectorRows &to) {
  auto squareOf = [&](VectorRows rows, const IndexExpr &row, const IndexExpr &column) {
    rows.offset = indices.add(rows.offset, indices.add(IndexBuilder::mul(row, lanes() * rows.stride),
                                                       IndexBuilder::mul(column, lanes())));
    return rows;
  };
  loop(to.columns, [&](const IndexExpr &i) {
    loop(from.columns, [&](const IndexExpr &j) {
      const VectorRows source = squareOf(from, i, j), target = squareOf(to, j, i);
      SmallVector<Value> rows;
      for (int64_t row = 0; row < lanes(); ++row)
        rows.push_back(load(source, row, 0));
      transposeSquare(s, rows);
      for (int64_t row = 0; row < lanes(); ++row)
        store(rows[size_t(row)], target, row, 0);
    });
  });
}

// ---- pairs of bf16 ------------------------------------------------------------------------------

/// An intrinsic of AVX512-BF16, for vectors of this width.
Value HostVectors::callOfPairs(StringRef intrinsic, VectorType type, ValueRange operands) {
  std::string name = ("llvm.x86.avx512bf16." + intrinsic + "." + Twine(lanes() * 32)).str();
  return LLVM::CallIntrinsicOp::create(s.builder, s.loc, type, s.builder.getStringAttr(name), operands).getResult(0);
}

static VectorType halvesOf(ScalarBuilder &s, VectorType words) {
  return VectorType::get({2 * words.getNumElements()}, s.builder.getBF16Type());
}

Value HostVectors::pairs(Value first, Value second) {
  const VectorType halves = halvesOf(s, vector);
  Value rounded = callOfPairs("cvtne2ps2bf16", halves, {second, first}); // the second's come after the first's
  SmallVector<int32_t> order;
  for (int32_t lane = 0; lane < int32_t(lanes()); ++lane)
    order.append({lane, lane + int32_t(lanes())});
  Value joined = LLVM::ShuffleVectorOp::create(s.builder, s.loc, rounded, rounded, order);
  return LLVM::BitcastOp::create(s.builder, s.loc, vector, joined);
}

Value HostVectors::multiplyAdd(Value scalar, Value row, Value sum, Step step) {
  ScalarBuilder exact = s.contracting();
  if (step == Step::Number)
    return exact.add(exact.mul(scalar, row), sum);
  auto halves = [&](Value words) -> Value {
    return LLVM::BitcastOp::create(s.builder, s.loc, halvesOf(s, vector), words);
  };
  return callOfPairs("dpbf16ps", vector, {sum, halves(scalar), halves(row)});
}

// -------------------------------------------------------------------------------------------------

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
                       function_ref<Value(const IndexExpr &, int64_t)> start, Step step) {
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
          Value place = indices.value(indices.add(at, IndexBuilder::mul(k, a.depthStride)));
          Type counted = a.unit ? a.unit : element();
          Value scalar = splat(LLVM::LoadOp::create(s.builder, s.loc, element(),
                                                    addressOf(s, counted, a.pointer, place), bytesOf(counted)));
          for (int64_t column = 0; column < columns; ++column)
            next.push_back(multiplyAdd(scalar, vectors[size_t(column)], states[size_t(r * columns + column)], step));
        }
        return next;
      });
  for (int64_t r = 0, next = 0; r < rows; ++r)
    for (int64_t column = firstColumn; column < firstColumn + columns; ++column)
      store(sums[size_t(next++)], c, indices.add(row, r), column);
}

void HostVectors::product(const VectorRows &c, const ProductRows &rows, const ScalarMatrix &a, const VectorRows &b,
                          Value depth, function_ref<Value(const IndexExpr &, int64_t)> start, Step step) {
  const int64_t widest = widestTile();
  for (int64_t column = 0; column < b.columns; column += widest) {
    int64_t columns = std::min(widest, b.columns - column);
    // Where the last tile is given, it is so for tiles as high as those of the widest columns; higher ones would read behind it.
    int64_t height = tileRows(rows.fixed, rows.count ? std::min(widest, b.columns) : columns);
    auto at = [&](const IndexExpr &row, int64_t count) {
      tile(c, row, count, column, columns, a, b, depth, start, step);
    };
    if (!rows.count) {
      int64_t whole = rows.fixed / height * height;
      if (whole == height)
        emitter.inScope([&] { at(0, height); });
      else if (whole > 0)
        loop(indices.constant(0), indices.constant(whole), height, whole,
             [&](const IndexExpr &row) { at(row, height); });
      if (whole < rows.fixed)
        emitter.inScope([&] { at(whole, rows.fixed - whole); });
      continue;
    }
    constexpr int64_t manyRows = std::numeric_limits<int32_t>::max();
    loop(indices.constant(0), rows.count, height, manyRows, [&](const IndexExpr &first) {
      if (!rows.lastTile)
        return at(first, height);
      // Indices are not negative, so it is shifted while it is a number of its own.
      Value begin = s.make<arith::MinSIOp>(indices.value(first), rows.lastTile);
      IndexExpr shifted = indices.atom(s.add(begin, indices.constant(maxTileRows)), manyRows);
      at(indices.add(shifted, -maxTileRows), height);
    });
  }
}

} // namespace hpc::kernels
