// Rows of A are packed for a block that fits L2, then panels of B one after the other, each multiplied with all of
// them.
#include "runtime/backend/host/TileProduct.h"

#include "runtime/backend/host/TilePanels.h"

#include <algorithm>
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hpc::host {

namespace {

/// What is packed of A and of B and the sums of a part of C lie in L2 together. Columns of B are packed several panels
/// at once, so that memory is read in long pieces; one of their panels, `panelDepth` deep, lies in L1.
constexpr int64_t rowsAtOnce = 256, columnsAtOnce = 128, panelDepth = 128;
/// Deeper sums come in blocks of this: each starts at 0 and is added to C, which keeps the chain of roundings short.
constexpr int64_t depthAtOnce = 768;
constexpr int64_t alignment = 64;
/// A result of more is written past the caches, which it would empty; its lines need not be read before.
constexpr int64_t streamedBytes = 4 << 20;
constexpr int64_t sumsBytes = rowsAtOnce * columnsAtOnce * 4;

template <typename T> constexpr int64_t leftBytes = rowsAtOnce * depthAtOnce * pieces<T> * 2;
template <typename T> constexpr int64_t rightBytes = columnsAtOnce * panelDepth * pieces<T> * 2;

bool findTiles() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return false;
  constexpr unsigned amxBf16 = 1u << 22, amxTile = 1u << 24;
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (d & amxBf16) && (d & amxTile) && __builtin_cpu_supports("avx512f") &&
         ::syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

struct alignas(64) TileConfiguration {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

#pragma clang attribute push(__attribute__((target("avx512f,amx-tile,amx-bf16"))), apply_to = function)

/// The part of B that is packed next, asked for a few lines a step while this one is multiplied: memory that nobody
/// waits for. All at once would stop the core until they are there.
class Ahead {
public:
  Ahead() = default;
  template <typename T>
  Ahead(const PanelSource<T> &source, int64_t steps)
      : data(reinterpret_cast<const char *>(source.data)), stride(source.ld * int64_t(sizeof(T))),
        bytes((source.alongDepth ? source.depth : source.width) * int64_t(sizeof(T))),
        vectors(source.alongDepth ? source.width : source.depth),
        linesAStep((vectors * ((bytes + 63) / 64) + steps - 1) / steps) {}

  void ask() {
    for (int64_t line = 0; line < linesAStep && vectors > 0; ++line) {
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
  int64_t stride = 0, bytes = 0, vectors = 0, linesAStep = 0, at = 0;
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

/// Adds one panel of A times one of B to four tiles of sums, or writes them. Of the products of pieces those are left
/// out that are below the last bit of f32; the smallest come first in each step.
template <int pieceCount, int rowTiles, int columnTiles>
void multiplyPanels(const std::byte *a, const std::byte *b, int64_t steps, bool add, std::byte *sums, Ahead &ahead) {
  constexpr int64_t left = rowTiles * tileBytes, right = columnTiles * tileBytes;
  if (add) {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + tileBytes, 64);
    _tile_loadd(2, sums + 2 * tileBytes, 64);
    _tile_loadd(3, sums + 3 * tileBytes, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step, a += pieceCount * left, b += pieceCount * right) {
    ahead.ask();
    loadLeft<rowTiles>(a);
    if constexpr (pieceCount == 3) {
      loadRight<columnTiles>(b + 2 * right);
      multiplyStep<rowTiles, columnTiles>(); // 0 2
      loadRight<columnTiles>(b + right);
      multiplyStep<rowTiles, columnTiles>(); // 0 1
      loadLeft<rowTiles>(a + left);
      multiplyStep<rowTiles, columnTiles>(); // 1 1
      loadRight<columnTiles>(b);
      multiplyStep<rowTiles, columnTiles>(); // 1 0
      loadLeft<rowTiles>(a + 2 * left);
      multiplyStep<rowTiles, columnTiles>(); // 2 0
      loadLeft<rowTiles>(a);
    } else {
      loadRight<columnTiles>(b);
    }
    multiplyStep<rowTiles, columnTiles>(); // 0 0
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + tileBytes, 64);
  _tile_stored(2, sums + 2 * tileBytes, 64);
  _tile_stored(3, sums + 3 * tileBytes, 64);
}

template <int pieceCount>
void multiplyPanels(const std::byte *a, const std::byte *b, int64_t steps, int64_t rowTiles, int64_t columnTiles,
                    bool add, std::byte *sums, Ahead &ahead) {
  if (rowTiles > 1)
    return columnTiles > 1 ? multiplyPanels<pieceCount, 2, 2>(a, b, steps, add, sums, ahead)
                           : multiplyPanels<pieceCount, 2, 1>(a, b, steps, add, sums, ahead);
  return columnTiles > 1 ? multiplyPanels<pieceCount, 1, 2>(a, b, steps, add, sums, ahead)
                         : multiplyPanels<pieceCount, 1, 1>(a, b, steps, add, sums, ahead);
}

/// Writes four tiles of sums to C or adds them. Returns whether all of that is a number.
bool toC(const std::byte *sums, int64_t rows, int64_t columns, bool add, bool streams, float *c, int64_t ldc) {
  __mmask16 unordered = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; j += tileRows) {
      const __mmask16 lanes = __mmask16((1u << std::min<int64_t>(16, columns - j)) - 1);
      const int64_t tile = i / tileRows * panelTiles + j / tileRows;
      __m512 value = _mm512_maskz_loadu_ps(lanes, sums + tile * tileBytes + i % tileRows * 64);
      if (add)
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes, c + i * ldc + j));
      if (streams && lanes == 0xffff)
        _mm512_stream_ps(c + i * ldc + j, value);
      else
        _mm512_mask_storeu_ps(c + i * ldc + j, lanes, value);
      unordered |= _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    }
  return unordered == 0;
}

template <typename T> PanelSource<T> sourceOf(const ConstMatrix &matrix, bool alongDepth, int64_t at, int64_t width,
                                              int64_t x, int64_t depth) {
  const T *data = reinterpret_cast<const T *>(matrix.data);
  return {data + (alongDepth ? at * matrix.ld + x : x * matrix.ld + at), matrix.ld, alongDepth, width, depth};
}

int64_t panelsOf(int64_t width) { return (width + panelWidth - 1) / panelWidth; }

/// C[row..row+rows, :] += A[.., x..x+depth] * B[x..x+depth, :].
template <typename T>
bool multiplyRows(const Product &product, int64_t row, int64_t rows, int64_t x, int64_t depth, std::byte *scratch) {
  constexpr int count = pieces<T>;
  std::byte *const left = scratch, *const right = left + leftBytes<T>, *const sums = right + rightBytes<T>;
  float *const c = reinterpret_cast<float *>(product.c.data) + row * product.c.ld;
  auto leftAt = [&](int64_t at) { return left + at * rowsAtOnce * count * 2; };
  for (int64_t at = 0; at < depth; at += panelDepth)
    packLeft(sourceOf<T>(product.a, !product.a.transpose, row, rows, x + at, std::min(panelDepth, depth - at)),
             leftAt(at));
  auto source = [&](int64_t column, int64_t at) {
    return sourceOf<T>(product.b, product.b.transpose, column, std::min(columnsAtOnce, product.n - column), x + at,
                       std::min(panelDepth, depth - at));
  };
  const bool streams = !product.addToC && depth == product.k && product.m * product.n * 4 >= streamedBytes &&
                       reinterpret_cast<uintptr_t>(product.c.data) % 64 == 0 && product.c.ld % 16 == 0;
  bool finite = true;
  for (int64_t column = 0; column < product.n; column += columnsAtOnce) {
    const int64_t columns = std::min(columnsAtOnce, product.n - column);
    const int64_t panels = panelsOf(columns) * panelsOf(rows);
    auto eachPanel = [&](auto f) { // f(i, rows, j, columns, sums)
      for (int64_t j = 0; j < columns; j += panelWidth)
        for (int64_t i = 0; i < rows; i += panelWidth)
          f(i, std::min(panelWidth, rows - i), j, std::min(panelWidth, columns - j),
            sums + (j * rowsAtOnce + i * panelWidth) * 4);
    };
    for (int64_t at = 0; at < depth; at += panelDepth) {
      const int64_t deep = std::min(panelDepth, depth - at), tileColumn = stepsOf(deep) * count * tileBytes;
      packRight(source(column, at), right);
      const bool isDeepest = at + panelDepth >= depth;
      const int64_t nextColumn = isDeepest ? column + columnsAtOnce : column, nextAt = isDeepest ? 0 : at + panelDepth;
      Ahead ahead;
      if (nextColumn < product.n)
        ahead = Ahead(source(nextColumn, nextAt), panels * stepsOf(deep));
      eachPanel([&](int64_t i, int64_t high, int64_t j, int64_t wide, std::byte *panelSums) {
        multiplyPanels<count>(leftAt(at) + i / tileRows * tileColumn, right + j / tileRows * tileColumn, stepsOf(deep),
                              tilesOf(high), tilesOf(wide), at > 0, panelSums, ahead);
      });
    }
    eachPanel([&](int64_t i, int64_t high, int64_t j, int64_t wide, std::byte *panelSums) {
      finite &= toC(panelSums, high, wide, product.addToC || x > 0, streams, c + i * product.c.ld + column + j,
                    product.c.ld);
    });
  }
  return finite;
}

template <typename T> bool multiplyAs(const Product &product, std::byte *scratch) {
  const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  bool finite = true;
  for (int64_t row = 0; row < product.m; row += rowsAtOnce)
    for (int64_t x = 0; x < product.k; x += depthAtOnce)
      finite &= multiplyRows<T>(product, row, std::min(rowsAtOnce, product.m - row), x,
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
  const bool types = product.c.dtype == DType::F32 && product.accumulate == DType::F32 &&
                     product.a.dtype == product.b.dtype &&
                     (product.a.dtype == DType::F32 || product.a.dtype == DType::BF16);
  // Below, packing costs more than the tiles gain (measured).
  const int64_t least = std::min({product.m, product.n, product.k});
  const double others = double(product.m) * double(product.n) * double(product.k) / double(std::max<int64_t>(least, 1));
  return types && product.mayUseTiles && least >= 64 && others > 64 * 128 && hasTiles();
}

int64_t tileScratch() { return leftBytes<float> + rightBytes<float> + sumsBytes + alignment; }

bool multiplyTiles(const Product &product, std::vector<std::byte> &scratch) {
  scratch.resize(std::max(scratch.size(), size_t(tileScratch())));
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(scratch.data()) % alignment;
  std::byte *aligned = scratch.data() + (misaligned ? alignment - misaligned : 0);
  return product.a.dtype == DType::F32 ? multiplyAs<float>(product, aligned) : multiplyAs<uint16_t>(product, aligned);
}

} // namespace hpc::host
