// Follows one dim of a value back through the program, piece by piece, by the ops' sharding rules alone.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Dependence.h"

#include <unordered_map>

namespace hpc {

/// A part of a dim's index, as digits of a mixed radix: dim size = outer * size * inner.
struct Piece {
  int64_t inner = 1, size = 1;
  bool operator==(const Piece &other) const { return inner == other.inner && size == other.size; }
};

/// A product of activations with a weight, by the op's rule: k is the factor that is summed, n the one that weight and
/// result have. Leading dims of the weight stack matrices: experts, groups of channels. A dim of size 1 has no factor,
/// so k or n may be missing where nothing could be cut.
struct WeightMatmul {
  Operation *op = nullptr;
  unsigned weight = 1;                 ///< operand number of the weight
  unsigned activation = 0;             ///< and of the activations
  unsigned weightN = 1;                ///< dim of the weight that the result has
  unsigned weightK = 0;                ///< dim of the weight that is contracted
  std::optional<unsigned> activationK; ///< dim of the activations that is contracted
  std::optional<unsigned> resultN;     ///< dim of the result that comes from the weight
  SmallVector<std::pair<unsigned, unsigned>> stacked; ///< dims of weight and result that number the matrices

  /// The dim of the weight that a result's dim is.
  std::optional<unsigned> weightDimOf(unsigned resultDim) const;
  /// The same product, seen as one whose columns are result dim `resultDim`; it has to be one of the weight's.
  WeightMatmul withColumns(unsigned resultDim) const;
};
std::optional<WeightMatmul> matchWeightMatmul(Operation *op, const nn::Dependences &dependences);

/// A weight whose rows an op looks up by indices that are data: a rank that holds only some of them can look up those.
struct WeightLookup {
  Operation *op = nullptr;
  Value table;
  unsigned dim = 0; ///< of the table: its rows
};
std::optional<WeightLookup> matchWeightLookup(Operation *op, const nn::Dependences &dependences);

/// Facts about the ops of a program, each computed once: they depend on no layout, so many traces share them.
class OpFacts {
public:
  struct Facts {
    std::optional<ShardingRule> rule;
    std::optional<WeightMatmul> product; ///< matchWeightMatmul
  };
  explicit OpFacts(const nn::Dependences &dependences) : dependences(dependences) {}
  const Facts &of(Operation *op);

  const nn::Dependences &dependences;

private:
  llvm::DenseMap<Operation *, std::unique_ptr<Facts>> known;
};

/// Finds the sources of a piece of a dim. A trace succeeds when every source is the columns of a weight matmul, or a
/// value that any rank can slice without communication: weights, masks, sums over a cut dim, and values that all ranks
/// compute whole (a softmax's row).
///
/// One trace serves a whole program and is used in program order: each question is answered once, however many paths
/// and products lead to it, and without recursion, however long the paths are. The products that a walk passes are
/// already decided, since they stand before the one in question.
class DimTrace {
public:
  /// `sums`: the ops found so far that sum over a cut dim, as products by rows do. `crossesRows`: a composite's row (of
  /// a norm, of a softmax) may be cut on the path, for all-reduces of a few numbers.
  DimTrace(OpFacts &facts, const llvm::DenseSet<Operation *> &sums, bool crossesRows = false)
      : facts(facts), sums(sums), crossesRows(crossesRows) {}

  /// The pieces of dim `dim` of `value`, inside `piece`, that succeed, outermost first.
  SmallVector<Piece> back(Value value, unsigned dim, Piece piece);
  /// Whether the sources of such a piece include columns of a weight matmul.
  bool reachesColumns(Value value, unsigned dim, Piece piece);
  /// Whether an op on the way needs some of these columns whole (the same columns' norm scales them): cut, they would
  /// have to be gathered for it.
  bool tearsColumns(Value value, unsigned dim, Piece piece);
  /// The products whose columns such a piece comes from, in the order of the walk.
  llvm::SetVector<Operation *> columnsOf(Value value, unsigned dim, Piece piece) {
    return reach({value, dim, piece}).products;
  }
  /// Whether two pieces are factors of one dim wherever both occur: groups of heads and the heads of a group are, heads
  /// and the elements of a head are not.
  bool areDigitsOfOne(Value value, unsigned dim, Piece piece, Piece other);
  /// Whether ranks that hold parts of such a piece can compute everything from it in parts, up to sums over the piece
  /// and outputs. `sum` counts as one of the sums.
  bool staysInParts(Value value, unsigned dim, Piece piece, Operation *sum);
  /// The columns among the sources: the matmul and the piece of its result's dim; without those that were taken before.
  std::vector<std::pair<WeightMatmul, Piece>> takeColumns(Value value, unsigned dim, Piece piece);

private:
  struct Question {
    Value value;
    unsigned dim;
    Piece piece;
    bool operator==(const Question &other) const {
      return value == other.value && dim == other.dim && piece == other.piece;
    }
  };
  struct QuestionHash {
    size_t operator()(const Question &q) const {
      return llvm::hash_combine(q.value.getAsOpaquePointer(), q.dim, q.piece.inner, q.piece.size);
    }
  };
  struct Answer {
    SmallVector<Piece> pieces;
    SmallVector<std::pair<const Question, Answer> *, 2> asked; ///< the answers that it follows from
    SmallVector<Question, 0> whole;     ///< operands of an op that no rank can compute in parts
    const WeightMatmul *column = nullptr; ///< it is itself the columns of this product: withColumns of the question's dim
    bool reachesColumns = false;
    bool reachesWhole = false; ///< an answer with `whole`
    bool isTaken = false;
    unsigned lastWalk = 0; ///< the last walk of comeFrom that visited it
  };
  using Answered = std::pair<const Question, Answer>;
  Answered &find(const Question &question);
  Answer answer(const Question &question, SmallVectorImpl<Question> &open);
  bool isDivisible(const ShardingRule &rule, int factor) const;
  SmallVector<Question, 0> dimsReadWhole(Operation *op, const ShardingRule &rule) const;
  /// The products by columns among a question's sources, and the operands that the path reads whole.
  struct Reached {
    llvm::SetVector<Operation *> products;
    SmallVector<Question> whole;
    SmallVector<const Question *> questions; ///< each once
  };
  Reached reach(const Question &question);
  bool comeFrom(SmallVector<Question> pending, const llvm::SetVector<Operation *> &products);
  SmallVector<Piece> backThroughFactor(Operation *op, const ShardingRule &rule, int factor, Piece within,
                                       Answer &answer, SmallVectorImpl<Question> &open);

  std::unordered_map<Question, Answer, QuestionHash> answers; ///< entries never move: `asked` points to them
  unsigned walks = 0;
  OpFacts &facts;
  const llvm::DenseSet<Operation *> &sums;
  const bool crossesRows;
};

} // namespace hpc
