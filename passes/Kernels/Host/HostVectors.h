// Vectors of a CPU in generated code, and the one loop of small products: a tile of results stays in
// registers while scalars are broadcast over rows of vectors. For tiles on the stack or in buffers; it calls
// no library.
#pragma once

#include "passes/Kernels/Code/MachineCode.h"
#include "passes/Kernels/Elements/ElementEmitter.h"

namespace hpc::kernels {

/// Rows of vectors in memory: row i begins at pointer[offset + i * stride], in elements of registers.
struct VectorRows {
  Value pointer;
  IndexExpr offset;
  int64_t stride, columns; ///< columns: vectors of a row
};
/// Single elements in memory: (row, k) is pointer[offset + row * rowStride + k * depthStride].
struct ScalarMatrix {
  Value pointer;
  IndexExpr offset;
  int64_t rowStride, depthStride;
  Type unit = {}; ///< the unit of offset and strides; elements if it is null
};
/// One step of a product's sum: a number, or a pair of bf16 that are neighbours along the depth, 32 bits in registers
/// and memory of type f32, the first one in the lower bits. Pairs treat numbers below 2^-126 as 0.
enum class Step { Number, PairOfBFloats };
/// Rows of a product: `fixed`, or `count`, a number known at run time. Then there are only whole tiles, so up to
/// maxTileRows - 1 rows after the last are computed too, unless no tile may begin after `lastTile`: then as many
/// before.
struct ProductRows {
  int64_t fixed = 0;
  Value count, lastTile; ///< lastTile > -maxTileRows
};
constexpr int64_t maxTileRows = 16;

class HostVectors {
public:
  /// Vectors of `lanes` elements of `element`, f32 or f64.
  HostVectors(ElementEmitter &emitter, VectorUnit unit, Type element, int64_t lanes)
      : emitter(emitter), s(emitter.registers()), indices(emitter.index()), unit(unit),
        vector(VectorType::get({lanes}, element)) {}

  Type element() const { return vector.getElementType(); }
  VectorType type() const { return vector; }
  int64_t lanes() const { return vector.getNumElements(); }

  /// In every lane, for any type.
  Value splat(Value scalar);
  Value constant(double value) { return s.constant(vector, value); }
  Value load(const VectorRows &rows, const IndexExpr &row, int64_t column);
  void store(Value value, const VectorRows &rows, const IndexExpr &row, int64_t column);
  Value loadScalar(Type type, Value pointer, const IndexExpr &position);
  void storeScalar(Value value, Value pointer, const IndexExpr &position);
  /// The `column`-th vector of elements of another type, one for each lane.
  Value loadLanes(Type type, Value pointer, int64_t column);
  /// Lane j of row i of `from` becomes lane i of row j of `to`, lanes counted along whole rows: each has as many rows
  /// as the other has lanes in a row.
  void transpose(const VectorRows &from, const VectorRows &to);
  /// Pairs of the two, rounded to nearest even.
  Value pairs(Value first, Value second);
  /// The lanes joined by halves, into a scalar.
  Value joinLanes(Value vector, function_ref<Value(Value, Value)> join);

  /// Memory of the item's own, in elements of `type` (of this vector's where none is given).
  Value scratch(int64_t count, Type type = {});
  VectorRows scratchRows(int64_t rows, int64_t columns) {
    return {scratch(rows * columns * lanes()), 0, columns * lanes(), columns};
  }

  /// for (i = first; i < last; i += step) states = body(i, states), where 0 <= i < extent.
  SmallVector<Value> loop(Value first, Value last, int64_t step, int64_t extent, ValueRange states,
                          function_ref<SmallVector<Value>(const IndexExpr &, ValueRange)> body);
  void loop(Value first, Value last, int64_t step, int64_t extent, function_ref<void(const IndexExpr &)> body);
  void loop(int64_t count, function_ref<void(const IndexExpr &)> body);

  /// c[row] = start(c[row]) + sum over k < depth of a(row, k) * b[k]. `start` returns the initial value of a vector of
  /// c, given its place; the sum is in the order of k, each step one multiply-add. For pairs `depth` counts steps, and
  /// so do the rows of b.
  void product(const VectorRows &c, const ProductRows &rows, const ScalarMatrix &a, const VectorRows &b, Value depth,
               function_ref<Value(const IndexExpr &row, int64_t column)> start, Step step = Step::Number);
  /// Vectors of a row that a tile of a product has at most.
  int64_t widestTile() const { return unit.registers / 8; }
  /// Rows of a tile where `rows` are to be computed of `columns` vectors each (0: a number that is not known).
  int64_t tileRows(int64_t rows, int64_t columns) const;

private:
  void tile(const VectorRows &c, const IndexExpr &row, int64_t rows, int64_t firstColumn, int64_t columns,
            const ScalarMatrix &a, const VectorRows &b, Value depth,
            function_ref<Value(const IndexExpr &row, int64_t column)> start, Step step);
  Value multiplyAdd(Value scalar, Value vector, Value sum, Step step);
  Value callOfPairs(StringRef intrinsic, VectorType type, ValueRange operands);

  ElementEmitter &emitter;
  ScalarBuilder &s;
  IndexBuilder &indices;
  VectorUnit unit;
  VectorType vector;
};

} // namespace hpc::kernels
