// The computation of a region that is one nn.attention or nn.attention_grad, and the elements of its buffers that it
// reads: the input of every target's code. Transposes, reshapes and slices around the op are strides, so no heads move.
#pragma once

#include "compiler/Dialect/NN/DropoutDraw.h"

namespace hpc::kernels {

/// Whether an attention's keys are some of all, and the rest of them is known by log_sum alone.
bool isPartOfKeys(Operation *attention);

/// A tensor of four dims inside a buffer: element (a, b, c, d) lies at offset + the sum of index * stride, in elements.
struct AttentionTensor {
  unsigned buffer; ///< of an operand: the region's argument; of a result: the region's result
  int64_t offset;
  std::array<int64_t, 4> strides; ///< of batch, head or group, position, channel; 0 if the dim has one element
  Type elementType;                ///< in the buffer
  SmallVector<Type, 2> casts = {}; ///< float types, applied to an element in a register in this order
};

/// Keys first..end-1 and their values, where each of the two lies in one buffer. A key's position in the tensors is its
/// number among all keys.
struct AttentionKeys {
  int64_t first, end;
  AttentionTensor key, value;
};

/// With h = groups * repeat heads: query [batch, h, queries, depth], key [batch, groups, keys, depth], value
/// [batch, groups, keys, width], result and gradient [batch, h, queries, width]; head i reads group i / repeat.
struct AttentionRegion {
  Operation *op; ///< nn.attention or nn.attention_grad, in the region
  int64_t batch, groups, repeat, queries, keys, depth, width;
  AttentionTensor query;
  /// In the order of the keys, none empty unless there are no keys. A gradient has one, read without casts.
  SmallVector<AttentionKeys, 2> parts;
  /// For a part of the keys (else none): the result of the others and its log_sum; of a gradient log_sum and sums of
  /// rows of all. A log_sum has two channels, a sum one.
  SmallVector<AttentionTensor, 2> elsewhere;
  std::optional<AttentionTensor> gradient; ///< of the attention's result: nn.attention_grad alone
  SmallVector<AttentionTensor, 3> results; ///< in the order of the op's results
  double scale, hidden;                ///< hidden: the scaled score where `visible` does not hold
  std::optional<int64_t> causalOffset; ///< query i sees keys j <= i + causalOffset
  /// Numbers of rank 0 in the region, known at run time alone: the first are added to the causal offset, the others subtracted.
  SmallVector<Value, 2> queryStart, keyStart;
  /// Positions of queries, [queries] or [batch, queries], before queryStart is added. A value in the region; null: consecutive.
  Value queryPositions;
  bool guarded;
  /// Added to the scaled scores, [1 or batch, 1 or h, 1 or queries, 1 or keys], or null. A value in the region: an
  /// argument, or computed from arguments an element at a time (ElementEmitter, PulledWork).
  Value bias;
  /// As the bias, of bools: where q and k count. Null: everywhere.
  Value visible;
  /// The bias if it is in a buffer unchanged; strides of broadcast dims are 0.
  std::optional<AttentionTensor> biasTensor;
  /// Of the weights; its values are the region's. Dims are [batch, groups, repeat, queries, keys].
  std::optional<nn::DropoutDraw> dropout;

  bool isGradient() const { return gradient.has_value(); }
  int64_t heads() const { return groups * repeat; }
  /// Whether a query may see nothing, as far as is known here. Then its weights are 0 in a gradient, and NaN else unless
  /// the attention is guarded.
  bool mayBeBlind() const { return bias || visible || moves() || isPart() || (causalOffset && *causalOffset < 0); }
  /// Whether other keys count, too: those that a query does not see may be left out even where it sees none.
  bool isPart() const { return isPartOfKeys(op); }
  /// Whether the causal offset is known at run time alone (CausalOffset.h).
  bool moves() const { return !queryStart.empty() || !keyStart.empty() || isPlaced(); }
  /// Whether a causal mask reads the position of each query: what moves() then is added to it.
  bool isPlaced() const { return queryPositions && causalOffset; }
};

/// Whether the op is one of the two.
bool isAttention(Operation *op);
/// Whether so few queries read a key that loading it costs more than multiplying it: a step of decoding. Their keys and
/// values are read in place, also if they are concatenated (KeyConcat.h). Not for a gradient.
bool hasFewQueries(Operation *attention);
/// Its bias and its mask of visible elements: tensors that broadcast to the scores.
SmallVector<Value, 2> masksOf(Operation *attention);
/// Whether generated code computes it: a tile has to fit into a thread's stack. Other attentions are
/// decomposed.
bool fitsAttentionKernel(Operation *attention);

/// The parsed region; nullopt for another region.
std::optional<AttentionRegion> findAttentionRegion(nn::FusedOp region);

} // namespace hpc::kernels
