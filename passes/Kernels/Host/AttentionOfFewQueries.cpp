// The lanes of products are channels, those of a softmax are keys: with the queries in lanes, as in blocks of many
// queries, a vector would hold one number, and each element of a key would need a load of its own.
#include "passes/Kernels/Host/AttentionOfFewQueries.h"

#include "passes/Kernels/Host/AttentionTile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>
#include <numeric>

namespace hpc::kernels {

namespace {
constexpr int64_t mostVectors = 64; ///< of all queries: the operations of a key are unrolled
/// Keys at a time: so many that the core prefetches keys, then values, for some microseconds without a break.
constexpr int64_t keysAtOnce = 256;
/// Places in the keys of a block that are read side by side: a core prefetches several streams faster than one.
constexpr int64_t streamsOfKeys = 4;

int64_t countQueries(const AttentionRegion &region) { return region.queries * region.repeat; }

/// Lanes of channels: the widest vector that cuts depth and width into whole ones.
int64_t channelLanes(const AttentionRegion &region, VectorUnit unit) {
  int64_t bits = registerType(region.query.elementType).getIntOrFloatBitWidth();
  int64_t channels = std::gcd(region.depth, region.width), lanes = unit.bytes * 8 / bits;
  while (lanes > 1 && channels % lanes != 0)
    lanes /= 2;
  return lanes * bits >= 128 ? lanes : 1;
}
int64_t keyLanes(const AttentionRegion &region, VectorUnit unit) {
  return unit.bytes * 8 / registerType(region.query.elementType).getIntOrFloatBitWidth();
}

struct FewQueriesEmitter {
  ElementEmitter &emitter;
  const AttentionRegion &region;
  ValueRange buffers;
  VectorUnit unit;
  ScalarBuilder &s;
  IndexBuilder &indices;
  HostVectors channels, keys;
  int64_t numQueries;
  VectorRows query, sums; ///< a row for each query, of channels
  VectorRows scores;      ///< of the keys of a block: products, then weights
  VectorRows bias, visible; ///< of those keys; one row where all queries have the same
  VectorRows numbers;     ///< of each query: the largest score so far, then the sum of exponentials
  IndexExpr batch, group;
  Value movingOffset; ///< of a region that moves()
  SmallVector<Value> seen; ///< of a region that isPlaced(): by query, the number of keys that it sees

  FewQueriesEmitter(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers, VectorUnit unit)
      : emitter(emitter), region(region), buffers(buffers), unit(unit), s(emitter.registers()),
        indices(emitter.index()),
        channels(emitter, unit, registerType(region.query.elementType), channelLanes(region, unit)),
        keys(emitter, unit, registerType(region.query.elementType), keyLanes(region, unit)),
        numQueries(countQueries(region)) {
    query = channels.scratchRows(numQueries, region.depth / channels.lanes());
    sums = channels.scratchRows(numQueries, region.width / channels.lanes());
    int64_t columns = llvm::divideCeil(std::clamp<int64_t>(region.keys, 1, keysAtOnce), keys.lanes());
    scores = keys.scratchRows(numQueries, columns);
    if (region.bias)
      bias = keys.scratchRows(rowsOf(region.bias), columns);
    if (region.visible)
      visible = keys.scratchRows(rowsOf(region.visible), columns);
    numbers = {channels.scratch(2 * numQueries), 0, 2, 0};
  }

  // ---- places ----

  IndexExpr position(const AttentionTensor &tensor, const IndexExpr &head, const IndexExpr &index) {
    IndexExpr at = indices.add(tensor.offset, IndexBuilder::mul(batch, tensor.strides[0]));
    return indices.add(indices.add(at, IndexBuilder::mul(head, tensor.strides[1])),
                       IndexBuilder::mul(index, tensor.strides[2]));
  }
  /// Queries are in the order of positions, heads of a position beside each other.
  IndexExpr headOf(int64_t each) {
    return indices.add(IndexBuilder::mul(group, region.repeat), each % region.repeat);
  }
  int64_t positionOf(int64_t each) const { return each / region.repeat; }
  IndexExpr positionOfQuery(const AttentionTensor &tensor, int64_t each) {
    return position(tensor, headOf(each), positionOf(each));
  }

  Value number(int64_t each, int64_t which) {
    return channels.loadScalar(channels.element(), numbers.pointer, 2 * each + which);
  }
  void setNumber(int64_t each, int64_t which, Value value) {
    channels.storeScalar(value, numbers.pointer, 2 * each + which);
  }

  /// A vector of a key's or value's channels, as the op sees them, widened.
  Value loadChannels(const AttentionTensor &tensor, const IndexExpr &row, int64_t column) {
    Type stored = storageType(tensor.elementType);
    IndexExpr at = indices.add(row, column * channels.lanes());
    Value pointer = buffers[tensor.buffer];
    Value address = LLVM::GEPOp::create(s.builder, s.loc, pointer.getType(), stored, pointer, indices.value(at));
    Value vector = LLVM::LoadOp::create(s.builder, s.loc, channels.type().clone(stored), address,
                                        stored.getIntOrFloatBitWidth() / 8);
    if (stored != tensor.elementType)
      vector = s.widen(vector, tensor.elementType);
    return emitCasts(s, vector, tensor.elementType, tensor.casts);
  }

  // ---- visible keys ----

  /// The number of keys that the query sees, clamped to a meaningful range; below 0 it means none.
  Value seenBy(int64_t each) {
    if (!region.moves())
      return indices.constant(knownSeenBy(each));
    if (region.isPlaced())
      return seen[size_t(each)];
    Value number = s.add(movingOffset, indices.constant(positionOf(each) + 1));
    return s.make<arith::MinSIOp>(s.make<arith::MaxSIOp>(number, indices.constant(0)), indices.constant(region.keys));
  }
  int64_t knownSeenBy(int64_t each) const {
    if (!region.causalOffset)
      return region.keys;
    int64_t offset = std::clamp<int64_t>(*region.causalOffset, -region.queries, region.keys);
    return std::clamp<int64_t>(positionOf(each) + offset + 1, 0, region.keys);
  }
  /// Keys that nothing sees are left out, but not where a query sees none, whose weights are NaN then.
  Value keyEnd() {
    Value fewest = seenBy(0), most = seenBy(numQueries - 1);
    for (Value number : seen) {
      fewest = s.make<arith::MinSIOp>(fewest, number);
      most = s.make<arith::MaxSIOp>(most, number);
    }
    if (region.guarded || (!region.moves() && knownSeenBy(0) > 0))
      return most;
    Value all = indices.constant(region.keys);
    if (!region.moves())
      return all;
    return s.select(s.compare(arith::CmpIPredicate::sgt, fewest, indices.constant(0)), most, all);
  }

  int64_t rowsOf(Value mask) const { return isPerKey(region, mask) ? 1 : numQueries; }
  template <typename Element>
  void fill(const VectorRows &rows, Value mask, Element element, const IndexExpr &first, Value count) {
    for (int64_t each = 0; each < rowsOf(mask); ++each)
      keys.loop(indices.constant(0), count, 1, keysAtOnce, [&](const IndexExpr &key) {
        Index at = {batch, headOf(each), positionOf(each), indices.add(first, key)};
        keys.storeScalar(element(emitter, region, at), rows.pointer, indices.add(key, each * rows.stride));
      });
  }

  // ---- a block of keys ----

  void multiplyKeys(const IndexExpr &first, Value count) {
    for (const AttentionKeys &part : region.parts) {
      auto [begin, end] = keysOfPart(emitter, region, part, first, count);
      auto multiply = [&](const IndexExpr &key) { multiplyKey(part.key, key, indices.add(first, key)); };
      Value some = s.make<arith::MaxSIOp>(s.sub(end, begin), indices.constant(0));
      Value each = s.make<arith::DivUIOp>(some, indices.constant(streamsOfKeys)), rest = begin;
      SmallVector<IndexExpr> starts;
      for (int64_t stream = 0; stream < streamsOfKeys; ++stream, rest = s.add(rest, each))
        starts.push_back(indices.atom(rest, keysAtOnce));
      channels.loop(indices.constant(0), each, 1, keysAtOnce, [&](const IndexExpr &key) {
        for (const IndexExpr &start : starts)
          multiply(indices.add(start, key));
      });
      channels.loop(rest, end, 1, keysAtOnce, multiply);
    }
  }
  /// Key `number`, which is `key` in its block.
  void multiplyKey(const AttentionTensor &tensor, const IndexExpr &key, const IndexExpr &number) {
    ScalarBuilder exact = s.contracting();
    IndexExpr row = position(tensor, group, number);
    SmallVector<Value> products(static_cast<size_t>(numQueries));
    for (int64_t column = 0; column < query.columns; ++column) {
      Value right = loadChannels(tensor, row, column);
      for (int64_t each = 0; each < numQueries; ++each) {
        Value &sum = products[size_t(each)], left = channels.load(query, each, column);
        sum = sum ? exact.add(exact.mul(left, right), sum) : s.mul(left, right);
      }
    }
    auto join = [&](Value a, Value b) { return s.add(a, b); };
    for (int64_t each = 0; each < numQueries; ++each)
      channels.storeScalar(channels.joinLanes(products[size_t(each)], join), scores.pointer,
                           indices.add(key, each * scores.stride));
  }

  /// Turns scores into weights; returns the factor for the sums so far.
  Value weigh(int64_t each, const IndexExpr &first, Value count) {
    Type element = keys.element(), i32 = s.builder.getI32Type();
    Value lowest = keys.constant(-std::numeric_limits<double>::infinity());
    // 1. Scores; none for keys that the query does not see, or after the last.
    Value seen = s.sub(seenBy(each), indices.value(first));
    seen = s.make<arith::MinSIOp>(s.make<arith::MaxSIOp>(seen, indices.constant(0)), count);
    seen = keys.splat(arith::TruncIOp::create(s.builder, s.loc, i32, seen));
    Value scale = s.constant(keys.type(), FloatAttr::get(element, region.scale).getValueAsDouble());
    SmallVector<int32_t> numbers(static_cast<size_t>(keys.lanes()));
    std::iota(numbers.begin(), numbers.end(), int32_t(0));
    Value lanes = s.make<arith::ConstantOp>(DenseElementsAttr::get(keys.type().clone(i32), ArrayRef(numbers)));
    auto columnsOf = [&](const VectorRows &rows, int64_t row) { return VectorRows{rows.pointer, row * rows.stride, keys.lanes(), 1}; };
    const VectorRows row = columnsOf(scores, each);
    Value columns = s.make<arith::CeilDivUIOp>(count, indices.constant(keys.lanes()));
    auto eachColumn = [&](Value state, function_ref<Value(const IndexExpr &, Value)> body) {
      return keys.loop(indices.constant(0), columns, 1, scores.columns, state, [&](const IndexExpr &column, ValueRange states) {
        return SmallVector<Value>{body(column, states.front())};
      }).front();
    };
    // 2. The largest so far. A NaN is left to the exponential.
    auto larger = [&](Value score, Value top) {
      return s.select(s.compare(arith::CmpFPredicate::OGT, score, top), score, top);
    };
    Value tops = eachColumn(lowest, [&](const IndexExpr &column, Value tops) {
      Value score = s.mul(keys.load(row, column, 0), scale);
      if (region.visible) {
        Value isVisible = keys.load(columnsOf(visible, rowsOf(region.visible) == 1 ? 0 : each), column, 0);
        score = s.select(s.compare(arith::CmpFPredicate::UNE, isVisible, keys.constant(0)), score, keys.constant(region.hidden));
      }
      if (region.bias)
        score = s.add(score, keys.load(columnsOf(bias, rowsOf(region.bias) == 1 ? 0 : each), column, 0));
      Value start = arith::TruncIOp::create(s.builder, s.loc, i32, indices.value(IndexBuilder::mul(column, keys.lanes())));
      Value key = s.add(lanes, keys.splat(start));
      score = s.select(s.compare(arith::CmpIPredicate::slt, key, seen), score, lowest);
      keys.store(score, row, column, 0);
      return larger(score, tops);
    });
    Value before = number(each, 0), top = larger(keys.joinLanes(tops, larger), before);
    Value nothing = s.compare(arith::CmpFPredicate::OEQ, top,
                              s.constant(element, -std::numeric_limits<double>::infinity()));
    Value shift = s.select(nothing, s.constant(element, 0), top), shifts = keys.splat(shift);
    Value factor = emitExp(s, s.sub(before, shift));
    setNumber(each, 0, top);
    // 3. Exponentials, and their sum.
    Value total = eachColumn(keys.constant(0), [&](const IndexExpr &column, Value total) {
      Value weight = emitExp(s, s.sub(keys.load(row, column, 0), shifts));
      keys.store(weight, row, column, 0);
      return s.add(total, weight);
    });
    total = keys.joinLanes(total, [&](Value a, Value b) { return s.add(a, b); });
    setNumber(each, 1, s.add(s.mul(number(each, 1), factor), total));
    return factor;
  }

  /// sums[each] = sums[each] * its factor + its weights times the values, for as many columns of vectors at a time as
  /// there are registers.
  void addValues(const IndexExpr &first, Value count, ArrayRef<Value> factors) {
    ScalarBuilder exact = s.contracting();
    const int64_t atOnce = std::max<int64_t>(1, unit.registers * 3 / 4 / numQueries);
    for (int64_t start = 0; start < sums.columns; start += atOnce) {
      const int64_t columns = std::min(atOnce, sums.columns - start);
      SmallVector<Value> states;
      for (int64_t each = 0; each < numQueries; ++each)
        for (int64_t column = start; column < start + columns; ++column)
          states.push_back(s.mul(channels.load(sums, each, column), channels.splat(factors[size_t(each)])));
      for (const AttentionKeys &part : region.parts) {
        auto [begin, end] = keysOfPart(emitter, region, part, first, count);
        states = channels.loop(begin, end, 1, keysAtOnce, states, [&](const IndexExpr &key, ValueRange states) {
          IndexExpr row = position(part.value, group, indices.add(first, key));
          SmallVector<Value> values, next;
          for (int64_t column = start; column < start + columns; ++column)
            values.push_back(loadChannels(part.value, row, column));
          for (int64_t each = 0; each < numQueries; ++each) {
            Value weight = channels.splat(
                channels.loadScalar(channels.element(), scores.pointer, indices.add(key, each * scores.stride)));
            for (Value value : values)
              next.push_back(exact.add(exact.mul(weight, value), states[next.size()]));
          }
          return next;
        });
      }
      for (int64_t each = 0, state = 0; each < numQueries; ++each)
        for (int64_t column = start; column < start + columns; ++column)
          channels.store(states[size_t(state++)], sums, each, column);
    }
  }

  // ---- a group ----

  void start() {
    Value zero = s.constant(channels.element(), 0), zeros = channels.constant(0);
    for (int64_t each = 0; each < numQueries; ++each) {
      setNumber(each, 0, s.constant(channels.element(), -std::numeric_limits<double>::infinity()));
      setNumber(each, 1, zero);
      for (int64_t column = 0; column < sums.columns; ++column)
        channels.store(zeros, sums, each, column);
      IndexExpr from = positionOfQuery(region.query, each);
      channels.loop(region.depth, [&](const IndexExpr &channel) {
        Value element = emitter.load(region.query.elementType, buffers[region.query.buffer],
                                     indices.add(from, IndexBuilder::mul(channel, region.query.strides[3])));
        channels.storeScalar(element, query.pointer, indices.add(channel, each * query.stride));
      });
    }
  }

  void finish(Value output) {
    const AttentionTensor &result = region.results[0];
    Type element = channels.element();
    Value zero = s.constant(element, 0), one = s.constant(element, 1);
    for (int64_t each = 0; each < numQueries; ++each) {
      Value total = number(each, 1), share = s.divReal(one, total);
      Value isNothing = s.compare(arith::CmpFPredicate::ULE, total, zero);
      IndexExpr to = positionOfQuery(result, each);
      channels.loop(region.width, [&](const IndexExpr &channel) {
        Value sum = channels.loadScalar(element, sums.pointer, indices.add(channel, each * sums.stride));
        sum = s.mul(sum, share);
        if (region.keys == 0) // a sum of nothing
          sum = zero;
        else if (region.guarded)
          sum = s.select(isNothing, zero, sum);
        emitter.store(emitCast(s, sum, element, result.elementType), result.elementType, output,
                      indices.add(to, IndexBuilder::mul(channel, result.strides[3])));
      });
    }
  }

  void emit(const IndexExpr &item, Value output) {
    std::tie(batch, group) = indices.split(item, region.groups);
    if (region.moves())
      movingOffset = emitCausalOffset(emitter, region);
    seen.clear();
    for (int64_t each = 0; each < numQueries && region.isPlaced(); ++each)
      seen.push_back(s.add(emitLastKey(emitter, region, batch, positionOf(each), movingOffset), indices.constant(1)));
    start();
    Value end = keyEnd();
    keys.loop(indices.constant(0), end, keysAtOnce, std::max<int64_t>(region.keys, 1), [&](const IndexExpr &first) {
      Value count = s.make<arith::MinSIOp>(indices.constant(keysAtOnce), s.sub(end, indices.value(first)));
      multiplyKeys(first, count);
      if (region.bias)
        fill(bias, region.bias, biasElement, first, count);
      if (region.visible)
        fill(visible, region.visible, visibleElement, first, count);
      SmallVector<Value> factors;
      for (int64_t each = 0; each < numQueries; ++each)
        factors.push_back(weigh(each, first, count));
      addValues(first, count, factors);
    });
    finish(output);
  }
};
} // namespace

bool takesFewQueries(const AttentionRegion &region, VectorUnit unit) {
  auto isSideBySide = [](const AttentionKeys &part) {
    return part.key.strides[3] == 1 && part.value.strides[3] == 1;
  };
  if (!hasFewQueries(region.op) || region.isPart() || region.dropout || region.depth == 0 || region.width == 0 ||
      !llvm::all_of(region.parts, isSideBySide))
    return false;
  const int64_t lanes = channelLanes(region, unit);
  return lanes > 1 && countQueries(region) * std::max(region.depth, region.width) <= mostVectors * lanes;
}

void emitAttentionOfFewQueries(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers,
                               ValueRange outputs, VectorUnit unit) {
  FewQueriesEmitter few(emitter, region, buffers, unit);
  emitter.forEachItem(region.batch * region.groups,
                      [&](const IndexExpr &item) { few.emit(item, outputs[region.results[0].buffer]); });
}

} // namespace hpc::kernels
