// Code that attention on a host and its gradient share: a block of queries is in the lanes of vectors, keys come a
// block at a time. So scores [keys, queries] are products of broadcast keys with the transposed block, and a softmax
// runs down them, lane by lane, without a sum across lanes; keys and values may have any strides.
#pragma once

#include "passes/Kernels/Elements/CausalOffset.h"
#include "passes/Kernels/Elements/Dropout.h"
#include "passes/Kernels/Host/HostVectors.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::kernels {

/// Queries of an item, if there are as many: of one head, or of all heads that share a group of keys, position by
/// position.
constexpr int64_t queriesOfBlock = 32;
/// Keys at a time.
constexpr int64_t keysOfBlock = 96;

/// How many blocks the queries make that share a group.
inline int64_t countQueryBlocks(const AttentionRegion &region) {
  return (region.queries * region.repeat + queriesOfBlock - 1) / queriesOfBlock;
}

/// The keys or the values of an AttentionKeys.
using KeysOrValues = AttentionTensor AttentionKeys::*;

/// Among `count` keys from `first` on those of `part`: i with begin <= i < end for key first + i; may be empty.
std::pair<Value, Value> keysOfPart(ElementEmitter &emitter, const AttentionRegion &region, const AttentionKeys &part,
                                   const IndexExpr &first, Value count);

/// The bias at [batch, head, query, key] as far as it has these dims, in the type that scores have.
Value biasElement(ElementEmitter &emitter, const AttentionRegion &region, Index at);
/// Likewise 1 where the score is visible, else 0.
Value visibleElement(ElementEmitter &emitter, const AttentionRegion &region, Index at);
/// Whether a bias or mask is equal for all queries of a group.
bool isPerKey(const AttentionRegion &region, Value mask);

class AttentionTile {
public:
  /// `buffers`: of the region's arguments.
  AttentionTile(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers, VectorUnit unit);

  HostVectors &vectors() { return lanes; }
  int64_t columns() const { return numColumns; }
  int64_t width() const { return numColumns * lanes.lanes(); } ///< lanes of a block
  /// Channels per step of a sum over channels, or keys per step of one over keys: two if all operands and the result
  /// are bf16, whose rounding is large beside that of the weights.
  int64_t depthOfStep() const { return stepOfSums == Step::Number ? 1 : 2; }
  int64_t numQueries() const { return region.queries * region.repeat; }

  // ---- the place of the tile, which the functions below use ----

  void enterGroup(const IndexExpr &batchIndex, const IndexExpr &groupIndex);
  /// Enters the block of queries from `first` on, of all that share the group. Lanes without one repeat the last query.
  void enterBlock(const IndexExpr &first);
  /// Lanes that have a query.
  Value queryCount() const { return count; }
  /// None of the block's queries sees this key or a later one.
  Value keyEnd();
  /// The number of keys, before `end`, of the block that begins at `first`.
  Value keysFrom(const IndexExpr &first, Value end) {
    return s.make<arith::MinSIOp>(indices.constant(keysOfBlock), s.sub(end, indices.value(first)));
  }
  /// The first block whose queries may see keys from `key` on.
  Value firstBlockThatSees(const IndexExpr &key);

  // ---- queries ----

  /// Where the lane's query has its first channel.
  IndexExpr positionOf(const AttentionTensor &tensor, const IndexExpr &lane);
  /// Memory for a row of queries for each channel, with the rows that complete the last square of a transpose.
  VectorRows channelRows(int64_t channels) {
    return lanes.scratchRows(int64_t(llvm::alignTo(channels, lanes.lanes())), numColumns);
  }
  /// A tensor of queries: [steps of channels, queries].
  void loadTransposed(const AttentionTensor &tensor, int64_t channels, const VectorRows &to);
  void storeTransposed(const VectorRows &from, int64_t channels, const AttentionTensor &tensor, Value buffer);
  /// A row of channels for each query, padded to whole vectors: where the buffer has them, else in `memory`.
  VectorRows rowsOf(const AttentionTensor &tensor, int64_t channels, const VectorRows &memory);
  /// Memory for such rows; without a pointer if rowsOf needs none.
  VectorRows rowsMemory(const AttentionTensor &tensor, int64_t channels, int64_t rows);

  // ---- keys ----

  /// Keys or values as scalars (key, step of channels), key 0 being `first`: where they lie, or widened and put together
  /// in `memory`.
  ScalarMatrix scalarsOf(KeysOrValues which, int64_t channels, const IndexExpr &first, Value keyCount, Value memory);
  /// Memory for that; null where it needs none.
  Value scalarsMemory(KeysOrValues which, int64_t channels);
  /// The same of values, as scalars (step of keys, channel), for sumKeys; the memory of valuesMemory().
  ScalarMatrix valuesOf(const IndexExpr &first, Value keyCount, Value memory);
  Value valuesMemory() {
    return stepOfSums == Step::Number ? scalarsMemory(&AttentionKeys::value, region.width)
                                      : lanes.scratch(keysOfBlock / 2 * region.width);
  }
  /// The number of steps of so many keys.
  Value keySteps(Value keyCount);
  /// A step of keys' weights, in one vector.
  Value joinWeights(ArrayRef<Value> weights) {
    return weights.size() == 1 ? weights[0] : lanes.pairs(weights[0], weights[1]);
  }
  /// Memory for a number for each key of a block and each query, as rows of keys. Rows beside them may be overwritten.
  VectorRows keyRows();
  /// to[key] = the sum over channels of scalars(key, step of channels) * transposed[step of channels].
  void sumChannels(const VectorRows &to, const ScalarMatrix &scalars, int64_t channels, const VectorRows &transposed,
                   const IndexExpr &firstKey, Value keyCount);
  /// to[channel] += the sum over keys of scalars(step of keys, channel) * from[step of keys]; `start` returns the
  /// initial value from the old one.
  void sumKeys(const VectorRows &to, const ScalarMatrix &scalars, int64_t channels, const VectorRows &from,
               Value keyCount, function_ref<Value(const IndexExpr &channel, int64_t column)> start);
  /// Rows of keys firstKey.. to a result.
  void storeKeys(const VectorRows &from, int64_t channels, const IndexExpr &firstKey, Value keyCount,
                 const AttentionTensor &tensor, Value buffer);

  // ---- softmax ----

  /// Down the keys of a block, given q k^T: `body` gets a key's scores, scaled, with bias and mask, by column.
  SmallVector<Value>
  overScores(const VectorRows &products, const IndexExpr &firstKey, Value keyCount, ValueRange states,
             function_ref<SmallVector<Value>(const IndexExpr &key, ArrayRef<Value> scores, ValueRange states)> body);
  /// In that body: `number` where the product of query and key counts, else `otherwise`.
  Value whereVisible(Value number, Value otherwise, int64_t column) {
    return visibleNow.empty() ? number : s.select(visibleNow[size_t(column)], number, otherwise);
  }
  /// The larger one; a NaN score is left to the exponential.
  Value larger(Value score, Value top);
  /// The number to subtract from scores: 0 where no key was seen, whose exponentials then are 0.
  Value shiftOf(Value top);
  Value exponential(Value score, Value shift);

  // ---- dropout ----

  /// Whether dropout keeps the weights of a key, by lane; null without dropout.
  Value keeps(const IndexExpr &key, int64_t column);
  /// Weights, or gradients of weights, as dropout leaves them.
  Value dropped(Value weights, Value isKept) { return isKept ? dropout->apply(weights, isKept) : weights; }

private:
  Value queriesOf(int64_t column, Value first);
  /// The number of a query among those of a head, and which of the heads that share the group it is of.
  std::pair<IndexExpr, IndexExpr> queryOf(const IndexExpr &lane);
  void placeQueries();
  Type limitType() const;
  int64_t stepsOf(int64_t channels) const { return llvm::divideCeil(channels, depthOfStep()); }
  VectorRows turnedRows(int64_t steps) const;
  void copyChannels(int64_t channels, const AttentionTensor &tensor, const IndexExpr &from, Value memory,
                    const IndexExpr &to);
  bool isReadInPlace(const AttentionTensor &tensor, int64_t channels) const;
  void findFirstWeights();
  IndexExpr positionOfKey(const AttentionTensor &tensor, const IndexExpr &key);
  /// Causal, with keys that some query does not see, as far as is known here.
  bool isMasked() const { return region.moves() || offset < region.keys - 1; }
  /// Whether keys that a block does not see may be left out: not where a query sees none, whose weights are NaN then.
  bool mayLeaveOut() const { return isMasked() && (region.moves() || offset >= 0 || region.guarded || region.isPart()); }
  /// `number` of an attention that mayLeaveOut(), else `otherwise` where that is known at run time alone.
  Value whereLeftOut(Value number, Value otherwise);
  Index positionOfScore(const IndexExpr &key, const IndexExpr &lane);
  using MaskElement = Value (*)(ElementEmitter &, const AttentionRegion &, Index);
  void fillRows(const VectorRows &rows, MaskElement element, const IndexExpr &firstKey, Value keyCount);

  ElementEmitter &emitter;
  ScalarBuilder &s;
  IndexBuilder &indices;
  const AttentionRegion &region;
  SmallVector<Value> buffers;
  int64_t offset;     ///< the causal one, clamped to the range that matters
  Value movingOffset; ///< the same for a region that moves()
  Value lastKeys, weightPositions; ///< memory of a block's lanes: the last key that each sees, the position of its weights
  Value fewestSeen, mostSeen;      ///< of a region that isPlaced(): last keys of the block's queries
  HostVectors lanes;
  Step stepOfSums;
  int64_t numColumns;
  Value turned; ///< memory for a row of channels for each lane
  std::optional<VectorRows> biasRows, visibleRows; ///< of a block of keys, where queries differ
  SmallVector<Value> visibleNow; ///< by column, of the key that overScores is at
  IndexExpr batch, group, firstQuery;
  Value count;
  SmallVector<Value> limits;     ///< by column: the last key that each lane sees
  std::optional<DropoutMask> dropout;
  SmallVector<Value> firstWeights; ///< by column: where each lane's query has its weight of key 0 among all weights
};

} // namespace hpc::kernels
