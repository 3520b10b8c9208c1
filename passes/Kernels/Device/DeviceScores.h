// What attention and its gradient share on a device: the scores of a tile of queries with a tile of keys, and which tiles
// see each other.
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

  /// Of this thread's row of `queries` with its columns of `keys`: scaled, biased, -inf where unseen or behind the last key.
  DeviceTiles::States masked(const DeviceTile &queries, const DeviceTile &keys);
  /// Where query and key count, of the same; no values where they always do.
  DeviceTiles::States visible(const DeviceTile &queries, const DeviceTile &keys);
  /// Which weights of the same dropout keeps; no values where there is none.
  DeviceTiles::States kept(const DeviceTile &queries, const DeviceTile &keys);
  /// Weights or their gradients as dropout leaves them, given `kept`.
  DeviceTiles::States dropped(ArrayRef<Value> weights, ArrayRef<Value> kept);
  /// One behind the last key that any query of the tile from `firstQuery` on sees.
  Value keysEnd(Value firstQuery);
  /// The first tile of queries that sees a key of the tile from `firstKey` on.
  Value queriesStart(Value firstKey);
};

/// What the largest score is replaced by where it is subtracted: a finite number in place of -inf.
Value finiteBase(ScalarBuilder &s, Value maximum);

/// One more tile of keys: what `seen` and `before` were becomes `maximum` and `sum`. Of this thread's row.
struct OnlineSoftmax {
  Value maximum, base, sum;
  Value shrink; ///< what sums so far have to be multiplied by
  DeviceTiles::States weights;
  OnlineSoftmax(DeviceTiles &t, ArrayRef<Value> scores, Value seen, Value before);
};

} // namespace hpc::kernels
