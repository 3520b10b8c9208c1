// The way of the sequence through a program: dims whose elements are its positions, found from the ops that mix positions
// (factors that a rule marks as a sequence), forward and backward through all ops that take each position by itself.
#pragma once

#include "passes/Annotate/FactorTrace.h"

#include "llvm/ADT/MapVector.h"

namespace hpc {

class SequenceDims {
public:
  struct Place {
    unsigned dim = 0;
    Piece piece; ///< the positions, as digits of the dim's index: all of it, unless the dim holds other dims too
  };

  explicit SequenceDims(func::FuncOp function);

  /// The place of one of a dim's factors, of which the last is the fastest.
  static Place placeOf(const ShardingRule &rule, ArrayRef<int> factors, int factor, unsigned dim);

  /// The first dim of a value that has the positions; nullopt for a value without any, a weight too.
  std::optional<Place> of(Value value) const {
    auto found = places.find(value);
    return found == places.end() ? std::nullopt : std::optional(found->second);
  }
  /// The second dim of a value that has positions: scores of attention, and masks of such, have queries and keys.
  std::optional<Place> keysOf(Value value) const {
    auto found = keys.find(value);
    return found == keys.end() ? std::nullopt : std::optional(found->second);
  }
  /// Whether attention reads a value's positions as keys alone: it needs all of them, on any layout.
  bool isOfKeysAlone(Value value) const { return ofKeys.contains(value); }
  /// All values with positions, as they were found.
  const llvm::MapVector<Value, Place> &all() const { return places; }
  /// Whether a value has a dim of queries and one of keys: scores, masks of such, their gradients.
  bool isSquare(Value value) const { return squares.contains(value); }
  /// Whether a dim of a product's result is keys of a square operand: gradients of keys and values, which add up queries.
  bool isOfKeys(Value product, unsigned dim) const;
  /// A product of queries and keys that no rule marks: its softmax and masks are ops of their own. Null: there is none.
  Operation *spelledOut() const { return scores.empty() ? nullptr : scores.front().op; }
  /// Ops beside those marked that read and give positions, and need all of them at once: scans and windows over time.
  ArrayRef<Operation *> mixers() const { return found; }

private:
  void start(Value value, unsigned dim, Piece piece);
  /// A product of queries and keys, by operands and their dims, and the dims of its result.
  struct Scores {
    Operation *op;
    unsigned ofQueries, ofKeys, queryDim, keyDim, rows, columns;
  };
  std::optional<Scores> matchScores(const DimPlace &columns) const;
  void markSquares(Value value, unsigned rows, unsigned columns);
  void follow(Operation *op, bool fromOperand, unsigned number, Place place);
  void flow();

  llvm::MapVector<Value, Place> places;
  llvm::DenseMap<Value, Place> keys;
  llvm::DenseSet<Value> ofKeys;
  bool startsFromKeys = false;
  SmallVector<std::pair<Value, Place>> open;
  SmallVector<Operation *> found;
  SmallVector<Scores> scores;
  llvm::DenseMap<Value, std::pair<unsigned, unsigned>> squares; ///< dims of queries and of keys
  nn::Dependences dependences;
};

} // namespace hpc
