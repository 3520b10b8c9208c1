// A causal offset may be any number of 64 bits; beyond the number of keys all is seen, so it is cut to that first.
#include "passes/Kernels/Device/DeviceScores.h"

namespace hpc::kernels {

/// a + the offset + more.
static Value addOffset(DeviceTiles &t, const DeviceAttention &attention, Value a, int64_t more) {
  if (attention.movingOffset)
    return t.add(t.add(a, attention.movingOffset), more);
  return t.add(a, std::clamp(*attention.causalOffset, -attention.queries, attention.keys) + more);
}

/// Whether a tile of queries may leave out the keys that it does not see: not where a query sees none, whose weights, of
/// every key, are NaN.
static bool mayLeaveOut(const DeviceAttention &attention) {
  return attention.causalOffset && (attention.movingOffset || *attention.causalOffset >= 0 || attention.guarded || attention.isPart);
}
/// `number` of an attention that mayLeaveOut(), else `otherwise` where that is known at run time alone: by `first`, the last
/// key of the query that sees the fewest.
static Value whereLeftOut(DeviceTiles &t, const DeviceAttention &attention, Value first, Value number, Value otherwise) {
  if (!attention.movingOffset || attention.guarded || attention.isPart)
    return number;
  return t.s.select(t.isLess(first, t.number(0)), otherwise, number);
}

Value DeviceScores::lastKeyOf(Value query) { return attention.lastKey(batch, t.least(query, t.number(attention.queries - 1))); }

DeviceTiles::States DeviceScores::masked(const DeviceTile &queries, const DeviceTile &keys) {
  DeviceTiles::States scores = t.dots(queries, keys, t.row());
  Value scale = s.constant(t.wide, attention.scale), hidden = s.constant(t.wide, -INFINITY);
  Value query = t.add(queries.first, t.row()), lastKey = t.number(attention.keys - 1), end = t.number(keys.matrices->rows);
  if (attention.causalOffset)
    end = t.least(end, attention.lastKey ? t.add(lastKeyOf(query), 1) : addOffset(t, attention, query, 1));
  for (auto [n, score] : llvm::enumerate(scores)) {
    Value key = t.add(t.add(keys.first, t.column()), int64_t(n) * DeviceTiles::threadsOfRow);
    score = s.mul(score, scale);
    Value within = attention.bias || attention.visible ? t.least(query, t.number(attention.queries - 1)) : Value();
    if (attention.visible)
      score = s.select(attention.visible(batch, head, within, t.least(key, lastKey)), score, s.constant(t.wide, attention.hidden));
    if (attention.bias)
      score = s.add(score, attention.bias(batch, head, within, t.least(key, lastKey)));
    if (attention.causalOffset || (keys.matrices->rows - keys.matrices->firstRow) % DeviceTiles::rows != 0)
      score = s.select(t.isLess(key, end), score, hidden);
  }
  return scores;
}

DeviceTiles::States DeviceScores::visible(const DeviceTile &queries, const DeviceTile &keys) {
  DeviceTiles::States visible;
  if (attention.visible)
    for (int64_t n = 0; n < DeviceTiles::columnsOfThread; ++n) {
      Value query = t.least(t.add(queries.first, t.row()), t.number(attention.queries - 1));
      Value key = t.least(t.add(t.add(keys.first, t.column()), n * DeviceTiles::threadsOfRow), t.number(attention.keys - 1));
      visible.push_back(attention.visible(batch, head, query, key));
    }
  return visible;
}

DeviceTiles::States DeviceScores::kept(const DeviceTile &queries, const DeviceTile &keys) {
  DeviceTiles::States kept;
  if (attention.keeps)
    for (int64_t n = 0; n < DeviceTiles::columnsOfThread; ++n) {
      Value key = t.add(t.add(keys.first, t.column()), n * DeviceTiles::threadsOfRow);
      kept.push_back(attention.keeps(batch, head, t.add(queries.first, t.row()), key));
    }
  return kept;
}

DeviceTiles::States DeviceScores::dropped(ArrayRef<Value> weights, ArrayRef<Value> kept) {
  DeviceTiles::States left(weights);
  for (auto [value, isKept] : llvm::zip(left, kept))
    value = attention.dropped(value, isKept);
  return left;
}

Value DeviceScores::keysEnd(Value firstQuery) {
  Value end = t.number(attention.keys);
  if (!mayLeaveOut(attention))
    return end;
  if (attention.lastKey) {
    DeviceTiles::States range = {end, t.number(-1)};
    range = t.loop(t.number(0), t.number(DeviceTiles::rows), 1, range, [&](Value row, ValueRange states) -> DeviceTiles::States {
      Value last = lastKeyOf(t.add(firstQuery, row));
      return {t.least(states[0], last), t.most(states[1], last)};
    });
    return whereLeftOut(t, attention, range[0], t.add(range[1], 1), end);
  }
  return whereLeftOut(t, attention, attention.movingOffset, t.least(end, addOffset(t, attention, firstQuery, DeviceTiles::rows)), end);
}

Value DeviceScores::queriesStart(Value firstKey) {
  if (!mayLeaveOut(attention) || attention.lastKey)
    return t.number(0);
  Value first = attention.movingOffset ? t.s.sub(firstKey, attention.movingOffset)
                                       : t.add(firstKey, -std::clamp(*attention.causalOffset, -attention.queries, attention.keys));
  first = t.mul(t.split(t.most(first, t.number(0)), DeviceTiles::rows).first, DeviceTiles::rows);
  return whereLeftOut(t, attention, attention.movingOffset, first, t.number(0));
}

} // namespace hpc::kernels
