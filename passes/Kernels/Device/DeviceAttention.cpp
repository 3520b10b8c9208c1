// Sums over keys use the largest score so far; when it grows, the sums are scaled. A row whose maximum is still -inf
// uses 0 instead, so that -inf minus -inf makes no NaN before all keys were seen.
#include "passes/Kernels/Device/DeviceAttention.h"

#include "passes/Kernels/Device/DeviceScores.h"

namespace hpc::kernels {

static int64_t tilesOf(int64_t count) { return (count + DeviceTiles::rows - 1) / DeviceTiles::rows; }
static int64_t chunksOf(int64_t columns) {
  return (columns + DeviceAttention::maxColumns - 1) / DeviceAttention::maxColumns;
}

int64_t attentionItems(const AttentionRegion &region) {
  if (region.isGradient())
    return region.batch * region.groups;
  return region.batch * region.heads() * tilesOf(region.queries) * chunksOf(region.width);
}

namespace {
using States = DeviceTiles::States;

struct Forward {
  DeviceTiles &t;
  const DeviceAttention &a;
  ScalarBuilder &s = t.s;
  Value weights = t.reserveSquare(), keyMemory = t.reserve(a.parts[0].key), valueMemory = t.reserve(a.parts[0].value),
        queryMemory = t.reserve(a.query); // the most frequently read first

  /// The result's columns firstColumn + column() + 4 u.
  void emit(Value batch, Value head, Value firstQuery, int64_t firstColumn, int64_t columns) {
    Value group = t.split(head, a.heads / a.groups).first;
    DeviceScores scores(t, a, batch, head);
    DeviceTile queries = t.stage(a.query, queryMemory, t.baseOf(a.query, batch, head), firstQuery);
    int64_t perThread = (columns + DeviceTiles::threadsOfRow - 1) / DeviceTiles::threadsOfRow;
    Value zero = s.constant(t.wide, 0);
    States states = {s.constant(t.wide, -INFINITY), zero};
    states.append(size_t(perThread), zero);
    if (!a.elsewhere.empty())
      startFromOthers(states, batch, head, firstQuery, firstColumn);
    for (const DeviceKeys &part : a.parts)
      states = takeKeys(part, scores, queries, t.baseOf(part.key, batch, group), t.baseOf(part.value, batch, group),
                        states, firstColumn);
    finish(states, batch, head, firstQuery, firstColumn);
  }

  /// Goes on from the result of other keys.
  void startFromOthers(States &states, Value batch, Value head, Value firstQuery, int64_t firstColumn) {
    const DeviceMatrices &result = a.elsewhere[0], &logSum = a.elsewhere[1];
    Value query = t.least(t.add(firstQuery, t.row()), t.number(a.queries - 1)), zero = s.constant(t.wide, 0);
    for (int64_t i = 0; i < 2; ++i)
      states[size_t(i)] = t.load(logSum, t.baseOf(logSum, batch, head), query, t.number(i));
    Value isNothing = s.compare(arith::CmpFPredicate::OEQ, states[1], zero), base = t.baseOf(result, batch, head);
    for (auto [u, sum] : llvm::enumerate(MutableArrayRef(states).drop_front(2))) {
      Value column = t.least(t.add(t.column(), firstColumn + int64_t(u) * DeviceTiles::threadsOfRow), t.number(result.columns - 1));
      sum = s.select(isNothing, zero, s.mul(t.load(result, base, query, column), states[1]));
    }
  }

  /// The states after the part's keys: the largest score so far, the sum of weights, the sums of columns.
  States takeKeys(const DeviceKeys &part, DeviceScores &scores, const DeviceTile &queries, Value keyBase, Value valueBase,
                  ValueRange states, int64_t firstColumn) {
    Value end = t.least(scores.keysEnd(queries.first), t.number(part.key.rows));
    return t.loop(t.number(part.key.firstRow), end, DeviceTiles::rows, states, [&](Value firstKey, ValueRange states) {
      DeviceTile keys = t.stage(part.key, keyMemory, keyBase, firstKey);
      DeviceTile values = t.stage(part.value, valueMemory, valueBase, firstKey);
      t.nest.barrier();
      OnlineSoftmax online(t, scores.masked(queries, keys), states[0], states[1]);
      for (auto [n, weight] : llvm::enumerate(scores.dropped(online.weights, scores.kept(queries, keys))))
        t.storeSquare(weights, t.row(), t.add(t.column(), int64_t(n) * DeviceTiles::threadsOfRow), weight);
      t.nest.barrier();
      States sums;
      for (Value sum : states.drop_front(2))
        sums.push_back(s.mul(sum, online.shrink));
      sums = t.addProduct(sums, [&](Value key) { return t.loadSquare(weights, t.row(), key); }, values, firstColumn);
      t.nest.barrier(); // tiles are overwritten
      States next = {online.maximum, online.sum};
      next.append(sums);
      return next;
    });
  }

  void storeLogSum(ArrayRef<Value> states, Value batch, Value head, Value query) {
    const DeviceMatrices &to = a.results[1];
    for (int64_t i = 0; i < 2; ++i)
      t.store(to, t.baseOf(to, batch, head), query, t.number(i), states[size_t(i)]);
  }

  void finish(ArrayRef<Value> states, Value batch, Value head, Value firstQuery, int64_t firstColumn) {
    Value zero = s.constant(t.wide, 0), sum = states[1], inverse = s.divReal(s.constant(t.wide, 1), sum);
    Value isSeen = s.compare(arith::CmpFPredicate::OGT, sum, zero);
    Value resultBase = t.baseOf(a.results[0], batch, head), query = t.add(firstQuery, t.row());
    t.nest.onlyIf(t.isLess(query, t.number(a.queries)), [&] {
      if (a.results.size() > 1 && firstColumn == 0)
        t.nest.onlyIf(s.compare(arith::CmpIPredicate::eq, t.column(), t.number(0)), [&] { storeLogSum(states, batch, head, query); });
      for (auto [u, total] : llvm::enumerate(states.drop_front(2))) {
        int64_t first = firstColumn + int64_t(u) * DeviceTiles::threadsOfRow;
        Value column = t.add(t.column(), first), result = s.mul(total, inverse);
        if (a.guarded || a.keys == 0)
          result = s.select(isSeen, result, zero);
        auto write = [&] { t.store(a.results[0], resultBase, query, column, result); };
        if (first + DeviceTiles::threadsOfRow <= a.results[0].columns)
          write();
        else
          t.nest.onlyIf(t.isLess(column, t.number(a.results[0].columns)), write);
      }
    });
  }
};
} // namespace

OnlineSoftmax::OnlineSoftmax(DeviceTiles &t, ArrayRef<Value> scores, Value seen, Value before) {
  ScalarBuilder &s = t.s;
  auto larger = [&](Value x, Value y) { return s.select(s.compare(arith::CmpFPredicate::OGT, x, y), x, y); };
  Value inTile = scores[0]; // NaN need not show: it does in the sum
  for (Value score : scores.drop_front())
    inTile = larger(score, inTile);
  maximum = larger(seen, t.joinRow(inTile, larger));
  base = finiteBase(s, maximum);
  Value sumOfTile;
  for (Value score : scores) {
    weights.push_back(emitExpBelowZero(s, s.sub(score, base)));
    sumOfTile = sumOfTile ? s.add(sumOfTile, weights.back()) : weights.back();
  }
  shrink = emitExpBelowZero(s, s.sub(seen, base));
  sum = s.add(s.mul(before, shrink), t.joinRow(sumOfTile, [&](Value x, Value y) { return s.add(x, y); }));
}

Value finiteBase(ScalarBuilder &s, Value maximum) {
  Value nothing = s.compare(arith::CmpFPredicate::OEQ, maximum, s.like(maximum, -INFINITY));
  return s.select(nothing, s.like(maximum, 0), maximum);
}

void emitAttention(DeviceTiles &t, const DeviceAttention &a, Value item) {
  Forward forward{t, a};
  auto [rest, chunk] = t.split(item, chunksOf(a.results[0].columns));
  auto [matrix, tile] = t.split(rest, tilesOf(a.queries));
  auto [batch, head] = t.split(matrix, a.heads);
  Value firstQuery = t.mul(tile, DeviceTiles::rows);
  int64_t chunks = chunksOf(a.results[0].columns);
  for (int64_t i = 0; i < chunks; ++i) {
    int64_t first = i * DeviceAttention::maxColumns;
    int64_t columns = std::min(DeviceAttention::maxColumns, a.results[0].columns - first);
    auto emit = [&, batch = batch, head = head] { forward.emit(batch, head, firstQuery, first, columns); };
    if (chunks == 1)
      emit();
    else
      t.nest.onlyIf(t.s.compare(arith::CmpIPredicate::eq, chunk, t.number(i)), emit);
  }
}

} // namespace hpc::kernels
