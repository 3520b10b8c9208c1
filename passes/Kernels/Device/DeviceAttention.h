// Attention and its gradient on a device, blocked: nothing of the size of the scores is ever in memory. FlashAttention
// (Dao et al. 2022): a running maximum and sum of each row, and probabilities computed again on the way back.
#pragma once

#include "passes/Kernels/Device/DeviceTiles.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

#include <functional>
#include <optional>

namespace hpc::kernels {

/// Some of an attention's keys and their values, all in one buffer each; a row is a key's number among all keys.
struct DeviceKeys {
  DeviceMatrices key, value;
};

/// An attention whose tensors are buffers of the kernel.
struct DeviceAttention {
  int64_t batch, heads, groups, queries, keys;
  DeviceMatrices query, gradient;
  SmallVector<DeviceKeys, 2> parts; ///< in the order of the keys; one alone of a gradient
  SmallVector<DeviceMatrices, 3> results; ///< in the order of the op's
  SmallVector<DeviceMatrices, 2> elsewhere = {}; ///< as AttentionRegion has them
  bool isPart = false;
  /// In `wide`, of a batch, head, query and key; null: none.
  std::function<Value(Value, Value, Value, Value)> bias;
  /// Whether the score counts, likewise; null: everywhere. Elsewhere the score is `hidden`.
  std::function<Value(Value, Value, Value, Value)> visible;
  /// Whether dropout keeps the weight, likewise; null: no dropout. Indices after the last may be passed.
  std::function<Value(Value, Value, Value, Value)> keeps;
  std::function<Value(Value, Value)> dropped; ///< a weight or its gradient, and whether it is kept
  double scale, hidden;
  std::optional<int64_t> causalOffset; ///< query i sees keys up to i + offset
  Value movingOffset;                  ///< the same of a region that moves(); else null
  bool guarded, mayBeBlind;            ///< as AttentionRegion has them
  Type wide; ///< of scores and sums
  /// The last key that a query sees, given its batch and number: of a region that isPlaced(); else null.
  std::function<Value(Value, Value)> lastKey = {};

  /// Columns whose sums the threads of a row keep in registers, a fourth each: of a result, and of two gradients.
  static constexpr int64_t maxColumns = 256, maxGradientColumns = 128;
};

/// The number of blocks that compute a region together: for nn.attention one has a tile of queries of a head and up to
/// maxColumns of the result; for nn.attention_grad a group of heads, so that it alone sums over its queries.
int64_t attentionItems(const AttentionRegion &region);

/// Item `item`, by a block of DeviceTiles::threads threads.
void emitAttention(DeviceTiles &tiles, const DeviceAttention &attention, Value item);
void emitAttentionGrad(DeviceTiles &tiles, const DeviceAttention &attention, Value item);

} // namespace hpc::kernels
