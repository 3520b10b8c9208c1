// For each block of queries: each query's largest score, the sum of its exponentials and its dout . out; then
// probabilities P and dS = P (dout v^T - dout . out), which add up to dv = P^T dout, dk = scale dS^T q and dq = scale dS k.
// With dropout, which draws its mask again for each, dropped weights and their dout v^T are 0. Where the gradients of all
// keys are too many for the stack, keys come in sections, each with a sweep over the queries. What the first sweep found
// of a query then waits where its dq will be written, which the last sweep sums.
#include "passes/Kernels/Host/AttentionGradEmitter.h"

#include "passes/Kernels/Host/AttentionTile.h"

#include <limits>

namespace hpc::kernels {

namespace {
constexpr int64_t sectionBytes = 512 << 10;

/// Numbers of a query that gradients need.
enum Statistic { Shift, Share, Mean, numStatistics };

struct GradEmitter {
  ElementEmitter &emitter;
  const AttentionRegion &region;
  AttentionTile tile;
  HostVectors &vectors;
  IndexBuilder &indices;
  ScalarBuilder &s;
  ValueRange outputs;

  int64_t keysOfSection;
  VectorRows query, gradient;         ///< of a block of queries, transposed
  VectorRows queryRows, gradientRows; ///< memory for the same as rows
  VectorRows products, ofWeights;     ///< of a block of keys: q k^T, later dS; dout v^T
  VectorRows queryGradient, keyGradients, valueGradients;
  VectorRows ofAllKeys;  ///< of a part of the keys: numbers of a query, transposed
  VectorRows statistics; ///< of a block of queries: a row of each
  Value keyMemory, valueMemory;

  GradEmitter(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers, ValueRange outputs,
              VectorUnit unit)
      : emitter(emitter), region(region), tile(emitter, region, buffers, unit), vectors(tile.vectors()),
        indices(emitter.index()), s(emitter.registers()), outputs(outputs) {
    int64_t columns = tile.columns(), lanes = vectors.lanes();
    query = tile.channelRows(region.depth);
    gradient = tile.channelRows(region.width);
    queryRows = tile.rowsMemory(region.query, region.depth, tile.width());
    gradientRows = tile.rowsMemory(*region.gradient, region.width, tile.width());
    products = tile.keyRows();
    ofWeights = tile.keyRows();
    queryGradient = tile.channelRows(region.depth);
    int64_t bytes = (queryRows.columns + gradientRows.columns) * lanes * vectors.element().getIntOrFloatBitWidth() / 8;
    int64_t blocks = std::max<int64_t>(sectionBytes / std::max<int64_t>(bytes * keysOfBlock, 1), 1);
    keysOfSection = std::min(blocks * keysOfBlock, std::max<int64_t>(region.keys, 1));
    // Tiles of products end in whole rows.
    keyGradients = vectors.scratchRows(keysOfSection + maxTileRows, queryRows.columns);
    valueGradients = vectors.scratchRows(keysOfSection + maxTileRows, gradientRows.columns);
    if (region.isPart())
      ofAllKeys = tile.channelRows(2);
    statistics = vectors.scratchRows(numStatistics, columns);
    keyMemory = tile.scalarsMemory(&AttentionKeys::key, region.depth);
    valueMemory = tile.scalarsMemory(&AttentionKeys::value, region.width);
  }

  bool isOneSection() const { return keysOfSection >= region.keys; }
  int64_t columns() const { return tile.columns(); }

  void fill(const VectorRows &rows, Value first, Value last) {
    Value zero = vectors.constant(0);
    vectors.loop(first, last, 1, std::numeric_limits<int32_t>::max(), [&](const IndexExpr &row) {
      for (int64_t column = 0; column < rows.columns; ++column)
        vectors.store(zero, rows, row, column);
    });
  }
  void forEachKeyBlock(const IndexExpr &first, Value end, function_ref<void(const IndexExpr &, Value)> body) {
    vectors.loop(indices.value(first), end, keysOfBlock, std::max<int64_t>(region.keys, 2),
                 [&](const IndexExpr &key) { body(key, tile.keysFrom(key, end)); });
  }

  void enterBlock(const IndexExpr &block) {
    tile.enterBlock(IndexBuilder::mul(block, queriesOfBlock));
    tile.loadTransposed(region.query, region.depth, query);
    tile.loadTransposed(*region.gradient, region.width, gradient);
  }

  /// q k^T and dout v^T of a block of keys; gives back the keys.
  ScalarMatrix multiply(const IndexExpr &first, Value count) {
    ScalarMatrix keys = tile.scalarsOf(&AttentionKeys::key, region.depth, first, count, keyMemory);
    tile.sumChannels(products, keys, region.depth, query, first, count);
    ScalarMatrix values = tile.scalarsOf(&AttentionKeys::value, region.width, first, count, valueMemory);
    tile.sumChannels(ofWeights, values, region.width, gradient, first, count);
    return keys;
  }

  // ---- statistics of a block ----

  /// Statistics of all keys, where those of the region are a part of them.
  void loadStatistics() {
    Value zero = vectors.constant(0), one = vectors.constant(1);
    SmallVector<Value> isNothing;
    tile.loadTransposed(region.elsewhere[0], 2, ofAllKeys);
    for (int64_t column = 0; column < columns(); ++column) {
      Value total = vectors.load(ofAllKeys, 1, column);
      isNothing.push_back(s.compare(region.guarded ? arith::CmpFPredicate::ULE : arith::CmpFPredicate::OEQ, total, zero));
      vectors.store(tile.shiftOf(vectors.load(ofAllKeys, 0, column)), statistics, Shift, column);
      vectors.store(s.select(isNothing.back(), zero, s.divReal(one, total)), statistics, Share, column);
    }
    tile.loadTransposed(region.elsewhere[1], 1, ofAllKeys);
    for (int64_t column = 0; column < columns(); ++column)
      vectors.store(s.select(isNothing[size_t(column)], zero, vectors.load(ofAllKeys, 0, column)), statistics, Mean, column);
  }

  void findStatistics() {
    Value zero = vectors.constant(0), lowest = vectors.constant(-std::numeric_limits<double>::infinity());
    for (int64_t column = 0; column < columns(); ++column) {
      vectors.store(lowest, statistics, Shift, column);
      vectors.store(zero, statistics, Share, column);
      vectors.store(zero, statistics, Mean, column);
    }
    forEachKeyBlock(0, tile.keyEnd(), [&](const IndexExpr &first, Value count) {
      multiply(first, count);
      SmallVector<Value> before, shifts, sums;
      for (int64_t column = 0; column < columns(); ++column)
        before.push_back(vectors.load(statistics, Shift, column));
      SmallVector<Value> tops = tile.overScores(
          products, first, count, before, [&](const IndexExpr &key, ArrayRef<Value> scores, ValueRange states) {
            SmallVector<Value> next;
            for (int64_t column = 0; column < columns(); ++column) {
              vectors.store(scores[size_t(column)], products, key, column);
              next.push_back(tile.larger(scores[size_t(column)], states[size_t(column)]));
            }
            return next;
          });
      for (int64_t column = 0; column < columns(); ++column) {
        shifts.push_back(tile.shiftOf(tops[size_t(column)]));
        Value factor = tile.exponential(before[size_t(column)], shifts.back());
        vectors.store(tops[size_t(column)], statistics, Shift, column);
        for (Statistic which : {Share, Mean})
          sums.push_back(s.mul(vectors.load(statistics, which, column), factor));
      }
      sums =
          vectors.loop(indices.constant(0), count, 1, keysOfBlock, sums, [&](const IndexExpr &key, ValueRange states) {
            SmallVector<Value> next;
            ScalarBuilder exact = s.contracting();
            for (int64_t column = 0; column < columns(); ++column) {
              Value term = tile.exponential(vectors.load(products, key, column), shifts[size_t(column)]);
              Value isKept = tile.keeps(indices.add(first, key), column);
              Value ofTerm = exact.mul(tile.dropped(vectors.load(ofWeights, key, column), isKept), term);
              next.push_back(exact.add(states[size_t(2 * column)], term));
              next.push_back(exact.add(states[size_t(2 * column + 1)], ofTerm));
            }
            return next;
          });
      for (int64_t column = 0; column < columns(); ++column) {
        vectors.store(sums[size_t(2 * column)], statistics, Share, column);
        vectors.store(sums[size_t(2 * column + 1)], statistics, Mean, column);
      }
    });
    for (int64_t column = 0; column < columns(); ++column) {
      Value total = vectors.load(statistics, Share, column);
      Value share = s.divReal(vectors.constant(1), total);
      Value mean = s.mul(vectors.load(statistics, Mean, column), share);
      if (region.guarded || region.mayBeBlind()) { // a query that sees nothing; guarded, or NaN
        Value isNothing = s.compare(region.guarded ? arith::CmpFPredicate::ULE : arith::CmpFPredicate::OEQ, total, zero);
        share = s.select(isNothing, zero, share);
        mean = s.select(isNothing, zero, mean);
      }
      Value shift = tile.shiftOf(vectors.load(statistics, Shift, column));
      vectors.store(shift, statistics, Shift, column);
      vectors.store(share, statistics, Share, column);
      vectors.store(mean, statistics, Mean, column);
    }
  }

  /// Elements of dq that have the bits of one; 0 where an element has more.
  int64_t piecesOfStatistic() const {
    return vectors.element().getIntOrFloatBitWidth() / region.results[0].elementType.getIntOrFloatBitWidth();
  }
  /// Whether they wait in the memory of dq. Where its channels are too few they are found again for each section.
  bool keepsStatistics() const {
    const int64_t pieces = piecesOfStatistic();
    return !isOneSection() && !region.isPart() && pieces > 0 && region.depth >= numStatistics * pieces;
  }
  void copyStatistics(bool toGradient) {
    const AttentionTensor &dq = region.results[0];
    const int64_t pieces = piecesOfStatistic();
    Type piece = s.builder.getIntegerType(dq.elementType.getIntOrFloatBitWidth());
    vectors.loop(indices.constant(0), tile.queryCount(), 1, tile.width(), [&](const IndexExpr &lane) {
      IndexExpr ofQuery = tile.positionOf(dq, lane);
      for (int64_t i = 0; i < numStatistics * pieces; ++i) {
        IndexExpr here = indices.add(IndexBuilder::mul(lane, pieces), i / pieces * statistics.stride * pieces + i % pieces);
        IndexExpr there = indices.add(ofQuery, i * dq.strides[3]);
        if (toGradient)
          vectors.storeScalar(vectors.loadScalar(piece, statistics.pointer, here), outputs[dq.buffer], there);
        else
          vectors.storeScalar(vectors.loadScalar(piece, outputs[dq.buffer], there), statistics.pointer, here);
      }
    });
  }
  /// For a sweep that needs them.
  void takeStatistics() {
    if (region.isPart())
      return loadStatistics();
    keepsStatistics() ? copyStatistics(false) : findStatistics();
  }

  // ---- probabilities, and the gradient of scores ----

  /// Replaces the products by scale dS, and dout v^T in `ofWeights` by P after dropout.
  void findScoreGradients(const IndexExpr &first, Value count) {
    SmallVector<Value> shifts, shares, means;
    for (int64_t column = 0; column < columns(); ++column) {
      shifts.push_back(vectors.load(statistics, Shift, column));
      shares.push_back(vectors.load(statistics, Share, column));
      means.push_back(vectors.load(statistics, Mean, column));
    }
    Value zero = vectors.constant(0);
    Value scale = s.constant(vectors.type(), FloatAttr::get(vectors.element(), region.scale).getValueAsDouble());
    tile.overScores(products, first, count, {}, [&](const IndexExpr &key, ArrayRef<Value> scores, ValueRange) {
      for (int64_t column = 0; column < columns(); ++column) {
        size_t at = size_t(column);
        Value weight = s.mul(tile.exponential(scores[at], shifts[at]), shares[at]);
        if (region.guarded)
          weight = s.select(s.compare(arith::CmpFPredicate::UNO, weight, weight), zero, weight);
        Value isKept = tile.keeps(indices.add(first, key), column);
        Value ofWeight = tile.dropped(vectors.load(ofWeights, key, column), isKept);
        Value ofScore = s.mul(weight, s.sub(ofWeight, means[at]));
        vectors.store(tile.whereVisible(s.mul(ofScore, scale), zero, column), products, key, column);
        vectors.store(tile.dropped(weight, isKept), ofWeights, key, column);
      }
      return SmallVector<Value>();
    });
  }

  void addToQueryGradient(const ScalarMatrix &keys, Value count) {
    tile.sumKeys(queryGradient, keys, region.depth, products, count, [&](const IndexExpr &channel, int64_t column) {
      return vectors.load(queryGradient, channel, column);
    });
  }
  void storeQueryGradient() {
    tile.storeTransposed(queryGradient, region.depth, region.results[0], outputs[region.results[0].buffer]);
  }

  /// Sums dq of a block, for several sections of keys.
  void sumQueryGradient() {
    fill(queryGradient, indices.constant(0), indices.constant(region.depth));
    forEachKeyBlock(0, tile.keyEnd(), [&](const IndexExpr &first, Value count) {
      ScalarMatrix keys = multiply(first, count);
      findScoreGradients(first, count);
      addToQueryGradient(keys, count);
    });
    storeQueryGradient();
  }

  // ---- gradients of keys and values ----

  /// sums[key] += the sum over the block's queries of numbers[key, query] * rows[query].
  void addOverQueries(const VectorRows &sums, const VectorRows &numbers, const VectorRows &rows, Value count) {
    ScalarMatrix scalars{numbers.pointer, numbers.offset, numbers.stride, 1};
    vectors.product(sums, {0, count, {}}, scalars, rows, tile.queryCount(),
                    [&](const IndexExpr &row, int64_t column) { return vectors.load(sums, row, column); });
  }

  void sweepSection(const IndexExpr &section) {
    Value last = s.make<arith::MinSIOp>(s.add(indices.value(section), indices.constant(keysOfSection)),
                                        indices.constant(region.keys));
    Value none = indices.constant(0);
    fill(keyGradients, none, indices.constant(keysOfSection + maxTileRows));
    fill(valueGradients, none, indices.constant(keysOfSection + maxTileRows));
    int64_t blocks = countQueryBlocks(region);
    // Every block has a gradient, even if it sees no key.
    Value firstBlock = isOneSection() ? none : tile.firstBlockThatSees(section);
    vectors.loop(firstBlock, indices.constant(blocks), 1, blocks, [&](const IndexExpr &block) {
      enterBlock(block);
      takeStatistics();
      VectorRows queries = tile.rowsOf(region.query, region.depth, queryRows);
      VectorRows gradients = tile.rowsOf(*region.gradient, region.width, gradientRows);
      if (isOneSection())
        fill(queryGradient, none, indices.constant(region.depth));
      forEachKeyBlock(section, s.make<arith::MinSIOp>(tile.keyEnd(), last), [&](const IndexExpr &first, Value count) {
        ScalarMatrix keys = multiply(first, count);
        findScoreGradients(first, count);
        if (isOneSection())
          addToQueryGradient(keys, count);
        // Rows that fill up the last tile add nothing.
        Value behind = s.add(count, indices.constant(maxTileRows));
        fill(products, count, behind);
        fill(ofWeights, count, behind);
        IndexExpr row = indices.add(first, IndexBuilder::mul(section, -1));
        auto from = [&](VectorRows sums) {
          sums.offset = indices.add(sums.offset, IndexBuilder::mul(row, sums.stride));
          return sums;
        };
        addOverQueries(from(keyGradients), products, queries, count);
        addOverQueries(from(valueGradients), ofWeights, gradients, count);
      });
      if (isOneSection())
        storeQueryGradient();
    });
    Value held = s.sub(last, indices.value(section));
    tile.storeKeys(keyGradients, region.depth, section, held, region.results[1], outputs[region.results[1].buffer]);
    tile.storeKeys(valueGradients, region.width, section, held, region.results[2], outputs[region.results[2].buffer]);
  }

  void forEachBlock(function_ref<void()> body) {
    vectors.loop(countQueryBlocks(region), [&](const IndexExpr &block) {
      enterBlock(block);
      body();
    });
  }
  void emit(const IndexExpr &item) {
    auto [batch, group] = indices.split(item, region.groups);
    tile.enterGroup(batch, group);
    if (keepsStatistics())
      forEachBlock([&] {
        findStatistics();
        copyStatistics(true);
      });
    int64_t keys = std::max<int64_t>(region.keys, 1); // without keys there still is dq
    vectors.loop(indices.constant(0), indices.constant(keys), keysOfSection, keys,
                 [&](const IndexExpr &section) { sweepSection(section); });
    if (!isOneSection())
      forEachBlock([&] {
        takeStatistics();
        sumQueryGradient();
      });
  }
};
} // namespace

void emitAttentionGrad(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers, ValueRange outputs,
                       VectorUnit unit) {
  GradEmitter gradient(emitter, region, buffers, outputs, unit);
  emitter.forEachItem(region.batch * region.groups, [&](const IndexExpr &item) { gradient.emit(item); });
}

} // namespace hpc::kernels
