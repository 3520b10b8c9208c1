// Forward: for each block of queries the keys once, block by block, the sums so far rescaled whenever a larger score
// comes.
#include "passes/Kernels/Host/AttentionEmitter.h"

#include "passes/Kernels/Host/AttentionGradEmitter.h"
#include "passes/Kernels/Host/AttentionOfFewQueries.h"
#include "passes/Kernels/Host/AttentionTile.h"

#include <limits>

namespace hpc::kernels {

int64_t countAttentionItems(const AttentionRegion &region) {
  int64_t groups = region.batch * region.groups;
  return region.isGradient() ? groups : groups * countQueryBlocks(region);
}

namespace {
struct ForwardEmitter {
  ElementEmitter &emitter;
  const AttentionRegion &region;
  AttentionTile tile;
  HostVectors &vectors;
  IndexBuilder &indices;
  ScalarBuilder &s;
  VectorRows query, products, sums, numbers; ///< numbers: the largest score so far, then the sum of exponentials
  VectorRows logSum; ///< of a part of the keys: as `numbers`
  Value keyMemory, valueMemory;

  ForwardEmitter(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers, VectorUnit unit)
      : emitter(emitter), region(region), tile(emitter, region, buffers, unit), vectors(tile.vectors()),
        indices(emitter.index()), s(emitter.registers()) {
    int64_t columns = tile.columns();
    query = tile.channelRows(region.depth);
    products = tile.keyRows();
    sums = tile.channelRows(region.width);
    numbers = vectors.scratchRows(2, columns);
    if (region.isPart())
      logSum = tile.channelRows(2);
    keyMemory = tile.scalarsMemory(&AttentionKeys::key, region.depth);
    valueMemory = tile.valuesMemory();
  }

  void start() {
    Value zero = vectors.constant(0), lowest = vectors.constant(-std::numeric_limits<double>::infinity());
    for (int64_t column = 0; column < tile.columns(); ++column) {
      vectors.store(lowest, numbers, 0, column);
      vectors.store(zero, numbers, 1, column);
    }
    vectors.loop(region.width, [&](const IndexExpr &channel) {
      for (int64_t column = 0; column < tile.columns(); ++column)
        vectors.store(zero, sums, channel, column);
    });
  }

  /// Goes on from the result of other keys.
  void startFromOthers() {
    tile.loadTransposed(region.elsewhere[0], region.width, sums);
    tile.loadTransposed(region.elsewhere[1], 2, logSum);
    Value zero = vectors.constant(0);
    SmallVector<Value> totals, isNothing;
    for (int64_t column = 0; column < tile.columns(); ++column) {
      vectors.store(vectors.load(logSum, 0, column), numbers, 0, column);
      totals.push_back(vectors.load(logSum, 1, column));
      vectors.store(totals.back(), numbers, 1, column);
      isNothing.push_back(s.compare(arith::CmpFPredicate::OEQ, totals.back(), zero));
    }
    vectors.loop(region.width, [&](const IndexExpr &channel) {
      for (int64_t column = 0; column < tile.columns(); ++column) {
        Value sum = s.mul(vectors.load(sums, channel, column), totals[size_t(column)]);
        vectors.store(s.select(isNothing[size_t(column)], zero, sum), sums, channel, column);
      }
    });
  }

  void takeKeys(const IndexExpr &first, Value count) {
    int64_t columns = tile.columns();
    ScalarMatrix keys = tile.scalarsOf(&AttentionKeys::key, region.depth, first, count, keyMemory);
    tile.sumChannels(products, keys, region.depth, query, first, count);
    // 1. The block's largest scores, and the factors for the sums so far.
    Value lowest = vectors.constant(-std::numeric_limits<double>::infinity());
    SmallVector<Value> before, shifts, factors;
    for (int64_t column = 0; column < columns; ++column)
      before.push_back(vectors.load(numbers, 0, column));
    SmallVector<Value> tops = tile.overScores(
        products, first, count, before, [&](const IndexExpr &key, ArrayRef<Value> scores, ValueRange states) {
          SmallVector<Value> next;
          for (int64_t column = 0; column < columns; ++column) {
            vectors.store(scores[size_t(column)], products, key, column);
            next.push_back(tile.larger(scores[size_t(column)], states[size_t(column)]));
          }
          return next;
        });
    for (int64_t column = 0; column < columns; ++column) {
      shifts.push_back(tile.shiftOf(tops[size_t(column)]));
      factors.push_back(tile.exponential(before[size_t(column)], shifts.back()));
      vectors.store(tops[size_t(column)], numbers, 0, column);
      if (tile.depthOfStep() > 1) // the last step may lack a key, which then has the weight 0
        vectors.store(lowest, products, indices.atom(count, keysOfBlock + 1), column);
    }
    // 2. Exponentials in place of the scores, and their sum, which includes dropped weights.
    SmallVector<Value> totals;
    for (int64_t column = 0; column < columns; ++column)
      totals.push_back(s.mul(vectors.load(numbers, 1, column), factors[size_t(column)]));
    auto takeStep = [&](const IndexExpr &step, ValueRange states) {
      SmallVector<Value> next(states);
      for (int64_t column = 0; column < columns; ++column) {
        SmallVector<Value> weights;
        for (int64_t member = 0; member < tile.depthOfStep(); ++member) {
          IndexExpr key = indices.add(IndexBuilder::mul(step, tile.depthOfStep()), member);
          Value term = tile.exponential(vectors.load(products, key, column), shifts[size_t(column)]);
          weights.push_back(tile.dropped(term, tile.keeps(indices.add(first, key), column)));
          next[size_t(column)] = s.contracting().add(next[size_t(column)], term);
        }
        vectors.store(tile.joinWeights(weights), products, step, column); // over scores that have been read
      }
      return next;
    };
    totals = vectors.loop(indices.constant(0), tile.keySteps(count), 1, keysOfBlock, totals, takeStep);
    for (int64_t column = 0; column < columns; ++column)
      vectors.store(totals[size_t(column)], numbers, 1, column);
    // 3. Values, weighted.
    ScalarMatrix values = tile.valuesOf(first, count, valueMemory);
    tile.sumKeys(sums, values, region.width, products, count, [&](const IndexExpr &channel, int64_t column) {
      return s.mul(vectors.load(sums, channel, column), factors[size_t(column)]);
    });
  }

  void storeLogSum(Value output) {
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t column = 0; column < tile.columns(); ++column)
        vectors.store(vectors.load(numbers, row, column), logSum, row, column);
    tile.storeTransposed(logSum, 2, region.results[1], output);
  }

  void finish(Value output) {
    // Without keys the result is a sum of nothing. A query that sees none has 0 / 0.
    Value zero = vectors.constant(0);
    SmallVector<Value> shares, isNothing;
    for (int64_t column = 0; column < tile.columns(); ++column) {
      Value total = vectors.load(numbers, 1, column);
      shares.push_back(s.divReal(vectors.constant(1), total));
      isNothing.push_back(region.keys == 0 ? s.compare(arith::CmpFPredicate::OEQ, zero, zero)
                                           : s.compare(arith::CmpFPredicate::ULE, total, zero));
    }
    vectors.loop(region.width, [&](const IndexExpr &channel) {
      for (int64_t column = 0; column < tile.columns(); ++column) {
        Value sum = s.mul(vectors.load(sums, channel, column), shares[size_t(column)]);
        if (region.guarded || region.keys == 0)
          sum = s.select(isNothing[size_t(column)], zero, sum);
        vectors.store(sum, sums, channel, column);
      }
    });
    tile.storeTransposed(sums, region.width, region.results[0], output);
  }

  void emit(const IndexExpr &item, ValueRange outputs) {
    auto [groups, block] = indices.split(item, countQueryBlocks(region));
    auto [batch, group] = indices.split(groups, region.groups);
    tile.enterGroup(batch, group);
    tile.enterBlock(IndexBuilder::mul(block, queriesOfBlock));
    tile.loadTransposed(region.query, region.depth, query);
    region.elsewhere.empty() ? start() : startFromOthers();
    Value end = tile.keyEnd();
    vectors.loop(indices.constant(0), end, keysOfBlock, std::max<int64_t>(region.keys, 1),
                 [&](const IndexExpr &first) { takeKeys(first, tile.keysFrom(first, end)); });
    if (region.results.size() > 1)
      storeLogSum(outputs[region.results[1].buffer]);
    finish(outputs[region.results[0].buffer]);
  }
};
} // namespace

void emitAttention(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers, ValueRange outputs,
                   VectorUnit unit) {
  if (region.isGradient())
    return emitAttentionGrad(emitter, region, buffers, outputs, unit);
  if (takesFewQueries(region, unit))
    return emitAttentionOfFewQueries(emitter, region, buffers, outputs, unit);
  ForwardEmitter forward(emitter, region, buffers, unit);
  emitter.forEachItem(countAttentionItems(region),
                      [&](const IndexExpr &item) { forward.emit(item, outputs); });
}

} // namespace hpc::kernels
