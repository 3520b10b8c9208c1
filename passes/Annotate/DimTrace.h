// Follows one dim of a value back through the program, piece by piece, by the ops' sharding rules alone.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Origin.h"

#include <set>

namespace hpc {

/// A part of a dim's index, as digits of a mixed radix: dim size = outer * size * inner.
struct Piece {
  int64_t inner = 1, size = 1;
  bool operator==(const Piece &other) const { return inner == other.inner && size == other.size; }
};

/// A matmul of activations with a weight.
struct WeightMatmul {
  nn::MatmulOp op;
  unsigned weight = 1;  ///< operand number of the weight
  unsigned weightN = 1; ///< dim of the weight that the result has
  unsigned weightK = 0; ///< dim of the weight that is contracted
  unsigned activation() const { return 1 - weight; }
};

/// Whether `op` is one; its weight has rank 2.
std::optional<WeightMatmul> matchWeightMatmul(Operation *op, const nn::Origins &origins);

/// Where a piece of a dim comes from. A trace succeeds when every source is the columns of a weight matmul, or
/// something that any rank can slice without communication (weights, masks, the result of a matmul that is cut by
/// rows).
class DimTrace {
public:
  DimTrace(const nn::Origins &origins, const llvm::DenseSet<Operation *> &rowMatmuls)
      : origins(origins), rowMatmuls(rowMatmuls) {}

  /// The pieces of dim `dim` of `value`, inside `piece`, that succeed, outermost first. Each question is answered once,
  /// however many ways lead to it, and without recursion, however long they are.
  SmallVector<Piece> back(Value value, unsigned dim, Piece piece);

  /// Columns of weight matmuls that were reached: the matmul and the piece of its result's last dim.
  std::vector<std::pair<WeightMatmul, Piece>> columns;

private:
  struct Question {
    Value value;
    unsigned dim;
    Piece piece;
    bool operator<(const Question &other) const {
      auto key = [](const Question &q) {
        return std::make_tuple(q.value.getAsOpaquePointer(), q.dim, q.piece.inner, q.piece.size);
      };
      return key(*this) < key(other);
    }
  };
  using Questions = SmallVector<Question>;
  SmallVector<Piece> answer(const Question &question, Questions &open);
  SmallVector<Piece> backThroughFactor(Operation *op, const ShardingRule &rule, int factor, Piece within,
                                       Questions &open);

  std::map<Question, SmallVector<Piece>> answers;
  const nn::Origins &origins;
  const llvm::DenseSet<Operation *> &rowMatmuls;
};

} // namespace hpc
