// Code that attention and its gradient share on a device: the scores of a tile of queries with a tile of keys, and the
// tiles that see each other.
#pragma once

#include "passes/Kernels/Device/DeviceAttention.h"

namespace hpc::kernels {

struct DeviceScores {
  DeviceTiles &t;
  const DeviceAttention &attention;
  ScalarBuilder &s;
  Value batch, head;

  DeviceScores(DeviceTiles &tiles, const DeviceAttention &attention, Value batch, Value head)
      : t(tiles), attention(attention), s(tiles.s), batch(batch), head(head) {}

  /// For this thread's row of `queries` and its columns of `keys`: scaled, biased, -inf if unseen or after the end.
  DeviceTiles::States masked(const DeviceTile &queries, const DeviceTile &keys);
  /// Whether query and key count, for the same; empty if they always do.
  DeviceTiles::States visible(const DeviceTile &queries, const DeviceTile &keys);
  /// Whether dropout keeps the weight, for the same; empty without dropout.
  DeviceTiles::States kept(const DeviceTile &queries, const DeviceTile &keys);
  /// Weights or their gradients as dropout leaves them, given `kept`.
  DeviceTiles::States dropped(ArrayRef<Value> weights, ArrayRef<Value> kept);
  /// One after the last key that any query of the tile from `firstQuery` on sees.
  Value keysEnd(Value firstQuery);
  /// The first tile of queries that sees a key of the tile from `firstKey` on.
  Value queriesStart(Value firstKey);

private:
  Value lastKeyOf(Value query); ///< where positions are given
};

/// The number to subtract from scores: the largest score, or a finite number in place of -inf.
Value finiteBase(ScalarBuilder &s, Value maximum);

/// One more tile of keys for this thread's row: `seen` and `before` become `maximum` and `sum`.
struct OnlineSoftmax {
  Value maximum, base, sum;
  Value shrink; ///< the factor for the sums so far
  DeviceTiles::States weights;
  OnlineSoftmax(DeviceTiles &t, ArrayRef<Value> scores, Value seen, Value before);
};

} // namespace hpc::kernels
