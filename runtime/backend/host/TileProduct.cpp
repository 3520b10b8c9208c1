// The tiles multiply while the rest of the core packs the next part of B, prefetches the one after it, and writes the
// finished part of C: a few vector instructions for that follow every few multiplications.
#include "runtime/backend/host/TileProduct.h"

#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/TilePanels.h"

#include <algorithm>
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hpc::host {

namespace {

/// The packed part of A, two parts of B and the sums of two parts of C fit into L2 together. Columns of B are packed
/// several panels at once, so that memory is read in long pieces; one of their panels, `panelDepth` deep, fits into L1.
constexpr int64_t rowsAtOnce = 256, columnsAtOnce = 128, panelDepth = 128;
/// Deeper sums come in blocks of this: each starts at 0 and is added to C, which keeps the chain of roundings short.
constexpr int64_t depthAtOnce = 768;
constexpr int64_t alignment = 64;
/// A result of more is written past the caches, which it would empty; its lines need not be read before.
constexpr int64_t streamedBytes = 4 << 20;

template <typename T> constexpr int64_t leftBytes = rowsAtOnce * depthAtOnce * pieces<T> * 2;
template <typename T> constexpr int64_t rightBytes = columnsAtOnce * panelDepth * pieces<T> * 2;
constexpr int64_t sumsBytes = rowsAtOnce * columnsAtOnce * 4;
template <typename L, typename R> constexpr int64_t allBytes = leftBytes<L> + 2 * (rightBytes<R> + sumsBytes);

bool findTiles() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return false;
  constexpr unsigned amxBf16 = 1u << 22, amxTile = 1u << 24;
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (d & amxBf16) && (d & amxTile) && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         ::syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

struct alignas(64) TileConfiguration {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,amx-tile,amx-bf16"))),                   \
                            apply_to = function)

/// A part of an operand that is packed later, prefetched a few lines at a time, so that nothing waits for memory. All
/// lines at once would stall the core until they arrive.
class Ahead {
public:
  template <typename T> void begin(const PanelSource<T> &source, int64_t calls) {
    data = reinterpret_cast<const char *>(source.data);
    stride = source.ld * int64_t(sizeof(T));
    bytes = (source.alongDepth ? source.depth : source.width) * int64_t(sizeof(T));
    vectors = source.alongDepth ? source.width : source.depth;
    linesACall = (vectors * ((bytes + 63) / 64) + calls - 1) / calls;
    at = 0;
  }
  void end() { vectors = 0; }

  void ask() {
    for (int64_t line = 0; line < linesACall && vectors > 0; ++line) {
      _mm_prefetch(data + at, _MM_HINT_T1);
      if ((at += 64) < bytes)
        continue;
      at = 0;
      data += stride;
      --vectors;
    }
  }

private:
  const char *data = nullptr;
  int64_t stride = 0, bytes = 0, vectors = 0, linesACall = 0, at = 0;
};

/// Writes a part of C's sums, `columnsAtOnce` to a row, to C or adds them: a row a call.
class Writing {
public:
  void begin(const float *from, int64_t rows, int64_t width, bool addToC, bool pastCaches, float *to, int64_t ld) {
    sums = from;
    remaining = rows;
    columns = width;
    add = addToC;
    streams = pastCaches;
    c = to;
    ldc = ld;
  }
  /// Calls of step() that are left.
  int64_t left() const { return remaining; }
  void step() {
    int64_t j = 0;
    if (streams) // up to the first whole line
      write(j, std::min(columns, int64_t(-reinterpret_cast<uintptr_t>(c) % alignment / sizeof(float))));
    for (; j + 16 <= columns; j += 16) {
      const __m512 value = valueAt(j, 0xffff);
      if (streams)
        _mm512_stream_ps(c + j, value);
      else
        _mm512_storeu_ps(c + j, value);
    }
    write(j, columns - j);
    sums += columnsAtOnce;
    c += ldc;
    --remaining;
  }
  /// Whether all written elements are numbers.
  bool isFinite() const { return unordered == 0; }

private:
  __m512 valueAt(int64_t j, __mmask16 lanes) {
    __m512 value = _mm512_maskz_loadu_ps(lanes, sums + j);
    if (add)
      value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes, c + j));
    unordered |= _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    return value;
  }
  void write(int64_t &j, int64_t count) {
    const __mmask16 lanes = __mmask16((1u << count) - 1);
    if (count > 0)
      _mm512_mask_storeu_ps(c + j, lanes, valueAt(j, lanes));
    j += count;
  }

  const float *sums = nullptr;
  int64_t remaining = 0, columns = 0, ldc = 0;
  bool add = false, streams = false;
  float *c = nullptr;
  __mmask16 unordered = 0;
};

/// The core's work beside the tiles, spread evenly over `calls` of some().
template <typename L, typename R> class Beside {
public:
  Packing<L> left;
  Packing<R> right;
  Writing writing;
  Ahead ahead;

  void begin(int64_t callsToCome) {
    calls = callsToCome;
    steps = left.left() + right.left() + writing.left();
    due = 0;
  }
  void some() {
    ahead.ask();
    for (due += steps; due >= calls; due -= calls)
      one();
  }
  void finish() {
    left.finish();
    right.finish();
    while (writing.left() > 0)
      writing.step();
  }

private:
  void one() {
    if (writing.left() > 0)
      writing.step();
    else if (right.left() > 0)
      right.step();
    else if (left.left() > 0)
      left.step();
  }

  int64_t calls = 1, steps = 0, due = 0;
};

/// Tiles 0 to 3 are C's, 4 and 5 A's, 6 and 7 B's.
template <int rowTiles, int columnTiles> void multiplyStep() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (columnTiles > 1)
    _tile_dpbf16ps(1, 4, 7);
  if constexpr (rowTiles > 1)
    _tile_dpbf16ps(2, 5, 6);
  if constexpr (rowTiles > 1 && columnTiles > 1)
    _tile_dpbf16ps(3, 5, 7);
}
template <int rowTiles> void loadLeft(const std::byte *tiles) {
  _tile_loadd(4, tiles, 64);
  if constexpr (rowTiles > 1)
    _tile_loadd(5, tiles + tileBytes, 64);
}
template <int columnTiles> void loadRight(const std::byte *tiles) {
  _tile_loadd(6, tiles, 64);
  if constexpr (columnTiles > 1)
    _tile_loadd(7, tiles + tileBytes, 64);
}

/// Products of pieces of A and B, the smallest first: {piece of A, piece of B}. Those are left out that are below the
/// last bit of f32.
struct PieceProduct {
  int a, b;
};
template <int ofA, int ofB> constexpr PieceProduct pieceProducts[1] = {{0, 0}};
template <> constexpr PieceProduct pieceProducts<2, 1>[2] = {{1, 0}, {0, 0}};
template <> constexpr PieceProduct pieceProducts<3, 1>[3] = {{2, 0}, {1, 0}, {0, 0}};
template <> constexpr PieceProduct pieceProducts<2, 2>[4] = {{1, 1}, {0, 1}, {1, 0}, {0, 0}};
template <> constexpr PieceProduct pieceProducts<3, 3>[6] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};
template <typename L, typename R> constexpr int64_t productsAStep = std::size(pieceProducts<pieces<L>, pieces<R>>);

/// Adds one panel of A times one of B to four tiles of sums, or writes them.
template <typename L, typename R, int rowTiles, int columnTiles>
void multiplyPanels(const std::byte *a, const std::byte *b, int64_t steps, bool add, float *sums,
                    Beside<L, R> &beside) {
  constexpr int64_t left = rowTiles * tileBytes, right = columnTiles * tileBytes, stride = columnsAtOnce * 4;
  float *const lower = sums + tileRows * columnsAtOnce;
  if (add) {
    _tile_loadd(0, sums, stride);
    _tile_loadd(1, sums + tileRows, stride);
    _tile_loadd(2, lower, stride);
    _tile_loadd(3, lower + tileRows, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step, a += pieces<L> * left, b += pieces<R> * right) {
    PieceProduct held{-1, -1};
#pragma clang loop unroll(full)
    for (PieceProduct each : pieceProducts<pieces<L>, pieces<R>>) {
      if (each.a != held.a)
        loadLeft<rowTiles>(a + each.a * left);
      if (each.b != held.b)
        loadRight<columnTiles>(b + each.b * right);
      held = each;
      multiplyStep<rowTiles, columnTiles>();
      beside.some();
    }
  }
  _tile_stored(0, sums, stride);
  if constexpr (columnTiles > 1)
    _tile_stored(1, sums + tileRows, stride);
  if constexpr (rowTiles > 1)
    _tile_stored(2, lower, stride);
  if constexpr (rowTiles > 1 && columnTiles > 1)
    _tile_stored(3, lower + tileRows, stride);
}

template <typename L, typename R>
void multiplyPanels(const std::byte *a, const std::byte *b, int64_t steps, int64_t rowTiles, int64_t columnTiles,
                    bool add, float *sums, Beside<L, R> &beside) {
  if (rowTiles > 1)
    return columnTiles > 1 ? multiplyPanels<L, R, 2, 2>(a, b, steps, add, sums, beside)
                           : multiplyPanels<L, R, 2, 1>(a, b, steps, add, sums, beside);
  return columnTiles > 1 ? multiplyPanels<L, R, 1, 2>(a, b, steps, add, sums, beside)
                         : multiplyPanels<L, R, 1, 1>(a, b, steps, add, sums, beside);
}

template <typename T>
PanelSource<T> sourceOf(const ConstMatrix &matrix, bool alongDepth, int64_t at, int64_t width, int64_t x,
                        int64_t depth) {
  const T *data = reinterpret_cast<const T *>(matrix.data);
  return {data + (alongDepth ? at * matrix.ld + x : x * matrix.ld + at), matrix.ld, alongDepth, width, depth};
}

/// C[row..row+rows, :] += A[.., x..x+depth] * B[x..x+depth, :], a part of B after the other: `columnsAtOnce` wide,
/// `panelDepth` deep.
template <typename L, typename R>
bool multiplyRows(const Product &product, int64_t row, int64_t rows, int64_t x, int64_t depth, std::byte *scratch) {
  const int64_t deep = panelDepth, parts = (depth + deep - 1) / deep,
                count = (product.n + columnsAtOnce - 1) / columnsAtOnce * parts;
  auto columnOf = [&](int64_t part) { return part / parts * columnsAtOnce; };
  auto atOf = [&](int64_t part) { return part % parts * deep; };
  auto leftSource = [&](int64_t at) {
    return sourceOf<L>(product.a, !product.a.transpose, row, rows, x + at, std::min(deep, depth - at));
  };
  auto rightSource = [&](int64_t part) {
    const int64_t column = columnOf(part), at = atOf(part);
    return sourceOf<R>(product.b, product.b.transpose, column, std::min(columnsAtOnce, product.n - column), x + at,
                       std::min(deep, depth - at));
  };
  std::byte *const left = scratch, *const right = left + leftBytes<L>;
  float *const sums = reinterpret_cast<float *>(right + 2 * rightBytes<R>);
  auto leftAt = [&](int64_t at) { return left + at * rowsAtOnce * pieces<L> * 2; };
  auto rightOf = [&](int64_t part) { return right + part % 2 * rightBytes<R>; };
  auto sumsOf = [&](int64_t part) { return sums + part / parts % 2 * rowsAtOnce * columnsAtOnce; };

  float *const c = reinterpret_cast<float *>(product.c.data) + row * product.c.ld;
  const bool streams = !product.addToC && depth == product.k && product.m * product.n * 4 >= streamedBytes;
  Beside<L, R> beside;
  beside.left.begin(leftSource(0), Side::Left, left);
  beside.right.begin(rightSource(0), Side::Right, right);
  beside.finish();
  for (int64_t part = 0; part < count; ++part) {
    const int64_t column = columnOf(part), columns = std::min(columnsAtOnce, product.n - column), at = atOf(part),
                  steps = stepsOf(std::min(deep, depth - at));
    const int64_t calls = panelsOf(columns) * panelsOf(rows) * steps * productsAStep<L, R>;
    if (column == 0 && at + deep < depth)
      beside.left.begin(leftSource(at + deep), Side::Left, leftAt(at + deep));
    if (part + 1 < count)
      beside.right.begin(rightSource(part + 1), Side::Right, rightOf(part + 1));
    if (part + 2 < count)
      beside.ahead.begin(rightSource(part + 2), calls);
    else
      beside.ahead.end();
    beside.begin(calls);
    const int64_t leftColumn = steps * pieces<L> * tileBytes, rightColumn = steps * pieces<R> * tileBytes;
    for (int64_t j = 0; j < columns; j += panelWidth)
      for (int64_t i = 0; i < rows; i += panelWidth)
        multiplyPanels<L, R>(leftAt(at) + i / tileRows * leftColumn, rightOf(part) + j / tileRows * rightColumn, steps,
                          tilesOf(std::min(panelWidth, rows - i)), tilesOf(std::min(panelWidth, columns - j)), at > 0,
                          sumsOf(part) + i * columnsAtOnce + j, beside);
    beside.finish();
    if (at + deep >= depth)
      beside.writing.begin(sumsOf(part), rows, columns, product.addToC || x > 0, streams, c + column, product.c.ld);
  }
  beside.finish();
  return beside.writing.isFinite();
}

template <typename L, typename R> bool multiplyAs(const Product &product, std::byte *scratch) {
  const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  bool finite = true;
  for (int64_t row = 0; row < product.m; row += rowsAtOnce)
    for (int64_t x = 0; x < product.k; x += depthAtOnce)
      finite &= multiplyRows<L, R>(product, row, std::min(rowsAtOnce, product.m - row), x,
                                std::min(depthAtOnce, product.k - x), scratch);
  _tile_release();
  _mm_sfence(); // other threads may read what was streamed
  return finite;
}

#pragma clang attribute pop

} // namespace

bool hasTiles() {
  static const bool has = findTiles();
  return has;
}

bool fitsTiles(const Product &product) {
  const DType type = product.a.dtype;
  const bool types = product.c.dtype == DType::F32 && product.accumulate == DType::F32 && (product.b.dtype == type || product.b.dtype == DType::I8) &&
                     (type == DType::F32 || type == DType::BF16 || type == DType::F16);
  // Below, oneDNN takes f32 as fast (measured); it has no products of 16 bits, nor of f32 and i8.
  const int64_t least = std::min(product.n, product.k), leastOfBoth = product.b.dtype == DType::F32 ? 64 : fewRows + 1;
  const double others = double(product.m) * double(product.n) * double(product.k) /
                        double(std::max<int64_t>(std::min(product.m, least), 1));
  return types && product.mayUseTiles && product.m > fewRows && least >= leastOfBoth && others > 64 * 128 && hasTiles();
}

int64_t tileScratch() { return allBytes<float, float> + alignment; }

bool multiplyTiles(const Product &product, std::vector<std::byte> &scratch) {
  scratch.resize(std::max(scratch.size(), size_t(tileScratch())));
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(scratch.data()) % alignment;
  std::byte *aligned = scratch.data() + (misaligned ? alignment - misaligned : 0);
  const bool isInt8 = product.b.dtype == DType::I8;
  switch (product.a.dtype) {
  case DType::BF16:
    return isInt8 ? multiplyAs<LoneBFloat16, Int8>(product, aligned) : multiplyAs<BFloat16, BFloat16>(product, aligned);
  case DType::F16:
    return isInt8 ? multiplyAs<Float16, Int8>(product, aligned) : multiplyAs<Float16, Float16>(product, aligned);
  default:
    return isInt8 ? multiplyAs<float, Int8>(product, aligned) : multiplyAs<float, float>(product, aligned);
  }
}

} // namespace hpc::host
