// Keys that an attention gathers from ranks which share a sequence: whose they are, and at which positions.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// The dim of attention's queries, keys and values that has positions.
constexpr unsigned positionsDim = 2;

/// An attention's keys or values: gathered, and then perhaps brought from the order of the ranks' rows into that of positions.
struct SharedKeys {
  dist::AllGatherOp gather; ///< null: they are no such keys
  nn::GatherOp order;       ///< null: rows are in the order of positions

  static SharedKeys of(Value operand, const dist::Mesh &mesh);
  explicit operator bool() const { return gather != nullptr; }
  bool isLike(const SharedKeys &other) const;
  /// The position of each row, in the order in which ranks have them.
  std::vector<int64_t> positions() const;
};

/// Rows of a block of keys whose positions follow one another on each rank.
struct KeyPiece {
  int64_t begin, end;          ///< rows of the block
  std::vector<int64_t> starts; ///< by rank: the position of row `begin`, or, if all rows are padding, one after the last
  bool isBroken = false;       ///< some rank has rows of it, and padding behind them
};
/// Blocks of `rows` of such positions, cut where a rank's positions do not follow one another.
SmallVector<KeyPiece> keyPieces(ArrayRef<int64_t> positions, int64_t rows, int64_t ranks);

} // namespace hpc
