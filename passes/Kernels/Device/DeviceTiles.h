// Tiles of matrices in a kernel whose block of threads computes small products together: four threads have a row of a
// tile, every fourth column each. All barriers are reached by all threads, since trip counts are the block's.
#pragma once

#include "passes/Kernels/Device/DeviceLoops.h"
#include "passes/Kernels/Elements/ScalarBuilder.h"

#include <array>

namespace hpc::kernels {

/// A tensor of rank 4 in a buffer, seen as [batch, head, row, column]. Strides and offset are in elements.
struct DeviceMatrices {
  Value buffer;
  Type element;
  std::array<int64_t, 4> stride = {0, 0, 0, 0};
  int64_t offset = 0;
  int64_t rows = 0, columns = 0;   ///< rows: one more than the last row's number
  int64_t firstRow = 0;            ///< earlier rows are not in the buffer
  SmallVector<Type, 2> casts = {}; ///< applied to each element read, in order
};

/// Rows of one of the matrices from `first` on: in shared memory if it had space, else in their buffer. Rows after the
/// last one read as 0.
struct DeviceTile {
  const DeviceMatrices *matrices = nullptr;
  Value shared; ///< null: read from the buffer
  Value base;   ///< of the matrix: an element of the buffer
  Value first;
};

class DeviceTiles {
public:
  static constexpr int64_t rows = 32;      ///< of a tile
  static constexpr int64_t threadsOfRow = 4; ///< neighbours within a warp
  static constexpr int64_t threads = rows * threadsOfRow;
  static constexpr int64_t columnsOfThread = rows / threadsOfRow; ///< of a product of two tiles' rows

  /// `wide`: the type of the computation.
  DeviceTiles(OpBuilder &builder, Location loc, DeviceLoops &nest, Type wide);

  Value row() const { return rowIndex; }      ///< of a tile, this thread's
  Value column() const { return firstColumn; } ///< 0..threadsOfRow-1

  /// Shared memory for tiles of `matrices`; null where there is too little.
  Value reserve(const DeviceMatrices &matrices);
  /// Starts a tile: all threads copy its elements to shared memory, if it has some. A barrier has to follow.
  DeviceTile stage(const DeviceMatrices &matrices, Value memory, Value base, Value first);
  Value baseOf(const DeviceMatrices &matrices, Value batch, Value head);

  using States = SmallVector<Value>;
  States loop(Value first, Value last, int64_t step, ValueRange states, function_ref<States(Value, ValueRange)> body);

  /// Dot products of `leftRow` of one tile with rows column() + 4 n of another, n = 0..columnsOfThread-1.
  States dots(const DeviceTile &left, const DeviceTile &right, Value leftRow);
  /// sums[u] += sum over n of weight(n) * right[n][firstColumn + column() + 4 u], n over all rows of a tile.
  States addProduct(ValueRange sums, function_ref<Value(Value)> weight, const DeviceTile &right, int64_t firstColumn);
  /// The states of the threads of a row, combined.
  Value joinRow(Value state, function_ref<Value(Value, Value)> join);

  /// A square of numbers in shared memory that the threads of a block exchange.
  Value reserveSquare() { return nest.shared(wide, rows * squareWidth); }
  void storeSquare(Value square, Value row, Value column, Value value);
  Value loadSquare(Value square, Value row, Value column);

  /// An element of a buffer, widened, and back, rounded once.
  Value load(const DeviceMatrices &matrices, Value base, Value row, Value column);
  void store(const DeviceMatrices &matrices, Value base, Value row, Value column, Value value);
  Value convert(Value value, Type from, Type to);

  // Arithmetic of indices.
  Value number(int64_t value) { return nest.constant(value); }
  Value add(Value a, Value b) { return s.add(a, b); }
  Value add(Value a, int64_t b) { return b == 0 ? a : s.add(a, number(b)); }
  Value mul(Value a, int64_t b) { return s.mul(a, number(b)); }
  Value least(Value a, Value b) { return s.make<arith::MinSIOp>(a, b); }
  Value most(Value a, Value b) { return s.make<arith::MaxSIOp>(a, b); }
  Value isLess(Value a, Value b) { return s.compare(arith::CmpIPredicate::slt, a, b); }
  /// a / by and a % by, of a number that is not negative.
  std::pair<Value, Value> split(Value a, int64_t by);

  OpBuilder &builder;
  Location loc;
  DeviceLoops &nest;
  ScalarBuilder s;
  Type wide;

private:
  static constexpr int64_t squareWidth = rows + 1; // rows in different banks
  static int64_t paddedColumns(const DeviceMatrices &matrices) {
    return (matrices.columns + threadsOfRow - 1) / threadsOfRow * threadsOfRow + 1; // likewise
  }
  Value element(const DeviceTile &tile, Value row, Value column);

  Value rowIndex, firstColumn;
};

} // namespace hpc::kernels
