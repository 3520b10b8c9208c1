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

/// A product of activations with a weight of rank 2, by the op's rule: k is the factor that is summed, n the one that
/// weight and result have. A dim of size 1 has no factor, so k or n may be missing where nothing could be cut.
struct WeightMatmul {
  Operation *op = nullptr;
  unsigned weight = 1;                 ///< operand number of the weight
  unsigned activation = 0;             ///< and of the activations
  unsigned weightN = 1;                ///< dim of the weight that the result has
  unsigned weightK = 0;                ///< dim of the weight that is contracted
  std::optional<unsigned> activationK; ///< dim of the activations that is contracted
  std::optional<unsigned> resultN;     ///< dim of the result that comes from the weight
};
std::optional<WeightMatmul> matchWeightMatmul(Operation *op, const nn::Origins &origins);

/// A weight whose rows an op looks up by indices that are data: a rank that holds only some of them can look up those.
struct WeightLookup {
  Operation *op = nullptr;
  Value table;
  unsigned dim = 0; ///< of the table: its rows
};
std::optional<WeightLookup> matchWeightLookup(Operation *op, const nn::Origins &origins);

/// Where a piece of a dim comes from. A trace succeeds when every source is the columns of a weight matmul, or
/// something that any rank can slice without communication (weights, masks, the result of a matmul that is cut by
/// rows).
///
/// One trace serves a whole program, asked in program order: each question is answered once, however many ways and
/// products lead to it, and without recursion, however long they are. A product that was passed by is decided: it
/// stands before the one that is asked about.
class DimTrace {
public:
  /// `rowMatmuls`: the products that are cut by rows so far.
  DimTrace(const nn::Origins &origins, const llvm::DenseSet<Operation *> &rowMatmuls)
      : origins(origins), rowMatmuls(rowMatmuls) {}

  /// The pieces of dim `dim` of `value`, inside `piece`, that succeed, outermost first.
  SmallVector<Piece> back(Value value, unsigned dim, Piece piece);
  /// Whether columns of a weight matmul are among what such a piece comes from.
  bool reachesColumns(Value value, unsigned dim, Piece piece);
  /// These columns: the matmul and the piece of its result's dim; without those that were taken before.
  std::vector<std::pair<WeightMatmul, Piece>> takeColumns(Value value, unsigned dim, Piece piece);

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
  struct Answer {
    SmallVector<Piece> pieces;
    SmallVector<Question> asked;        ///< what it follows from
    std::optional<WeightMatmul> column; ///< itself the columns of a product
    bool reachesColumns = false;
    bool isTaken = false;
  };
  Answer &find(const Question &question);
  Answer answer(const Question &question, SmallVectorImpl<Question> &open);
  SmallVector<Piece> backThroughFactor(Operation *op, const ShardingRule &rule, int factor, Piece within,
                                       Answer &answer, SmallVectorImpl<Question> &open);

  std::map<Question, Answer> answers;
  const nn::Origins &origins;
  const llvm::DenseSet<Operation *> &rowMatmuls;
};

} // namespace hpc
