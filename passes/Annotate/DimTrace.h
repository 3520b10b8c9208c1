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

/// What the ops of a program say of themselves, each asked once: it follows from no layout, so many traces share it.
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

/// Where a piece of a dim comes from. A trace succeeds when every source is the columns of a weight matmul, or
/// something that any rank can slice without communication: weights, masks, sums over what is cut, and what no rank can
/// compute a part of (a softmax's row), which all hold whole.
///
/// One trace serves a whole program, asked in program order: each question is answered once, however many ways and
/// products lead to it, and without recursion, however long they are. A product that was passed by is decided: it
/// stands before the one that is asked about.
class DimTrace {
public:
  /// `sums`: the ops that sum over what is cut, so far; products by rows are such. `crossesRows`: a composite's row (of a
  /// norm, of a softmax) may be cut on the way, for all-reduces of a few numbers.
  DimTrace(OpFacts &facts, const llvm::DenseSet<Operation *> &sums, bool crossesRows = false)
      : facts(facts), sums(sums), crossesRows(crossesRows) {}

  /// The pieces of dim `dim` of `value`, inside `piece`, that succeed, outermost first.
  SmallVector<Piece> back(Value value, unsigned dim, Piece piece);
  /// Whether columns of a weight matmul are among what such a piece comes from.
  bool reachesColumns(Value value, unsigned dim, Piece piece);
  /// Whether an op on the way needs some of these columns whole (the same columns' norm scales them): cut, they would
  /// have to be gathered for it.
  bool tearsColumns(Value value, unsigned dim, Piece piece);
  /// The products whose columns such a piece comes from, in the order of the walk.
  llvm::SetVector<Operation *> columnsOf(Value value, unsigned dim, Piece piece) {
    return reach({value, dim, piece}).products;
  }
  /// Whether two pieces are digits of one dim wherever both come by: groups of heads and the heads of a group are, heads and
  /// the elements of a head are not.
  bool areDigitsOfOne(Value value, unsigned dim, Piece piece, Piece other);
  /// Whether ranks that hold parts of such a piece can go on with them, up to sums over them and outputs. `sum` is to
  /// be one of the sums.
  bool staysInParts(Value value, unsigned dim, Piece piece, Operation *sum);
  /// These columns: the matmul and the piece of its result's dim; without those that were taken before.
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
    SmallVector<std::pair<const Question, Answer> *, 2> asked; ///< what it follows from
    SmallVector<Question, 0> whole;     ///< what an op that no rank can compute a part of reads in its place
    const WeightMatmul *column = nullptr; ///< it is itself the columns of this product: withColumns of the question's dim
    bool reachesColumns = false;
    bool reachesWhole = false; ///< an answer with `whole`
    bool isTaken = false;
    unsigned lastWalk = 0; ///< that came by
  };
  using Answered = std::pair<const Question, Answer>;
  Answered &find(const Question &question);
  Answer answer(const Question &question, SmallVectorImpl<Question> &open);
  bool isDivisible(const ShardingRule &rule, int factor) const;
  SmallVector<Question, 0> dimsReadWhole(Operation *op, const ShardingRule &rule) const;
  /// Products by columns behind a question, and what is read whole on the way.
  struct Reached {
    llvm::SetVector<Operation *> products;
    SmallVector<Question> whole;
    SmallVector<const Question *> questions; ///< each once
  };
  Reached reach(const Question &question);
  bool comeFrom(SmallVector<Question> pending, const llvm::SetVector<Operation *> &products);
  SmallVector<Piece> backThroughFactor(Operation *op, const ShardingRule &rule, int factor, Piece within,
                                       Answer &answer, SmallVectorImpl<Question> &open);

  std::unordered_map<Question, Answer, QuestionHash> answers; ///< whose entries stay where they are
  unsigned walks = 0;
  OpFacts &facts;
  const llvm::DenseSet<Operation *> &sums;
  const bool crossesRows;
};

} // namespace hpc
