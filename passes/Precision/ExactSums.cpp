// Sums over what a layout may cut become exact, so that no layout changes a bit: products of weights, reductions, rows added into
// tables, norms and losses. Elementwise ops and attention have the same bits everywhere by themselves; attention's gradient has them
// where nothing is cut that it adds up.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/AttentionParts.h"
#include "compiler/Dialect/NN/BatchDims.h"
#include "compiler/Dialect/NN/BatchFlow.h"
#include "compiler/Location.h"
#include "compiler/StepPart.h"
#include "passes/Precision/FixedPoint.h"
#include "passes/Precision/Passes.h"

#include <cmath>

namespace hpc {

#define GEN_PASS_DEF_EXACTSUMS
#include "passes/Precision/Passes.h.inc"

using namespace precision;

/// Bits of a factor's largest element that one number has with 512 terms.
static constexpr int64_t enoughBitsOfFactors = 22;

static bool isReal(Value value) { return isa<FloatType>(nn::tensorType(value).getElementType()); }

namespace {
class ExactSumsOf {
public:
  ExactSumsOf(func::FuncOp function, nn::BatchFlow batch) : function(function), batch(std::move(batch)) {}

  void run() {
    decomposeRows();
    // Attention stays: its keys are never cut, and its kernel is made of nothing else. Its gradient stays where its sums are whole.
    function.walk([](nn::AttentionGradOp op) { op.setWholeSums(true); });
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front().without_terminator())
      ops.push_back(&op);
    for (Operation *op : ops) {
      batch.visit(op);
      if (Value next = exact(op))
        replace(op, next);
    }
    for (Operation *op : llvm::reverse(replaced))
      op->erase();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op)) // terms of a total that is added up otherwise now
        op.erase();
  }

private:
  /// Losses, norms and softmax become their definitions, whose reductions are exact then: a layout that cuts their rows adds up
  /// parts of them.
  void decomposeRows() {
    SmallVector<CompositeOpInterface> composites;
    do {
      composites.clear();
      function.walk([&](CompositeOpInterface op) {
        ShardingRule rule = cast<ShardingRuleOpInterface>(op.getOperation()).getShardingRule();
        if (llvm::any_of(rule.factors, [](const ShardingFactor &factor) { return factor.isInternal; }))
          composites.push_back(op);
      });
      for (CompositeOpInterface op : composites) {
        OpBuilder builder(op);
        op->replaceAllUsesWith(op.decompose(builder));
        op->erase();
      }
    } while (!composites.empty());
  }

  /// Null where the op adds nothing up.
  Value exact(Operation *op) {
    if (op->getNumResults() != 1 || !isReal(op->getResult(0)) ||
        llvm::any_of(op->getOperands(), [](Value operand) { return nn::tensorType(operand).getNumElements() == 0; }))
      return {};
    GradientBuilder b = at(op);
    if (auto matmul = dyn_cast<nn::MatmulOp>(op))
      return exactProduct(b, matmul);
    if (auto reduce = dyn_cast<nn::ReduceOp>(op); reduce && reduce.getKind() == ReduceKind::Sum)
      return exactReduction(b, reduce);
    if (auto rows = dyn_cast<nn::EmbeddingGradOp>(op))
      return exactRows(b, rows);
    if (auto add = dyn_cast<nn::AddOp>(op); add && isTotalOfNumbers(add) && !isTermOfTotal(add))
      return exactTotal(b, add);
    return {};
  }

  GradientBuilder at(Operation *op) {
    builder.setInsertionPoint(op);
    return GradientBuilder(builder, op->getLoc());
  }

  void replace(Operation *op, Value next) {
    Value old = op->getResult(0);
    GradientBuilder b = at(op);
    next = b.cast(next, nn::tensorType(old).getElementType());
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      next.getDefiningOp()->setAttr(attribute.getName(), attribute.getValue());
    batch.replace(old, next);
    old.replaceAllUsesWith(next);
    replaced.push_back(op);
  }

  // ---- products ----

  Value exactProduct(GradientBuilder &b, nn::MatmulOp op) {
    Value lhs = op.getLhs(), rhs = op.getRhs();
    int64_t dimOfLhs = nn::tensorType(lhs).getRank() - (op.getTransposeLhs() ? 2 : 1);
    int64_t dimOfRhs = nn::tensorType(rhs).getRank() - (op.getTransposeRhs() ? 1 : 2);
    if (int64_t rows = batch.size(lhs, dimOfLhs)) {
      Value terms = productOfFactors(b, parted(b, lhs, dimOfLhs, rows), parted(b, rhs, dimOfRhs, rows), op);
      return sumOverBatch(b, terms, rows, nn::shapeOf(lhs)[size_t(dimOfLhs)]);
    }
    return productOfFactors(b, lhs, rhs, op);
  }

  /// [.., rows * s, ..] as [.., rows, then the last two dims with s for rows * s]: a product for each row of the batch.
  static Value parted(GradientBuilder &b, Value value, int64_t dim, int64_t rows) {
    SmallVector<int64_t> shape(nn::shapeOf(value));
    shape[size_t(dim)] /= rows;
    shape.insert(shape.begin() + dim, rows);
    value = b.reshape(value, shape);
    size_t rank = shape.size();
    if (size_t(dim) + 3 == rank)
      return value;
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(rank)));
    std::swap(order[rank - 3], order[rank - 2]); // [.., m, rows, s]
    return b.transpose(value, order);
  }

  /// Exact in f64: factors are whole numbers of so few bits that all terms fit, then their units. Where that leaves too few, as a
  /// row of probabilities with one near 1 shows, each factor is two such numbers; the product of both rests is left out.
  static Value productOfFactors(GradientBuilder &b, Value lhs, Value rhs, nn::MatmulOp op) {
    int64_t rankOfLhs = nn::tensorType(lhs).getRank(), rankOfRhs = nn::tensorType(rhs).getRank();
    int64_t dimOfLhs = rankOfLhs - (op.getTransposeLhs() ? 2 : 1), dimOfRhs = rankOfRhs - (op.getTransposeRhs() ? 1 : 2);
    int64_t bits = bitsOfFactors(nn::shapeOf(lhs)[size_t(dimOfLhs)]);
    bool isLong = bits < enoughBitsOfFactors;
    Scaled left = scaleByLargest(b, lhs, {dimOfLhs}, bits, isLong), right = scaleByLargest(b, rhs, {dimOfRhs}, bits, isLong);
    auto product = [&](Value x, Value y) {
      return b.matmul(x, y, op.getTransposeLhs(), op.getTransposeRhs(), b.builder.getF64Type());
    };
    Value sum = product(left.numbers, right.numbers);
    if (isLong) {
      // Both sums are whole, so rounding them changes nothing but that they are complete: a sum over ranks stands before it.
      Value small = nn::AddOp::create(b.builder, b.loc, product(left.numbers, right.rest), product(left.rest, right.numbers));
      sum = b.add(b.unary<nn::RoundOp>(sum), b.scaled(b.unary<nn::RoundOp>(small), std::ldexp(1.0, -int(bits))));
    }
    // Units along the result's rows and columns, wherever they lie in the operands.
    SmallVector<int64_t> rows(nn::shapeOf(left.unit)), columns(nn::shapeOf(right.unit));
    if (op.getTransposeLhs())
      std::swap(rows[size_t(rankOfLhs - 1)], rows[size_t(rankOfLhs - 2)]);
    if (op.getTransposeRhs())
      std::swap(columns[size_t(rankOfRhs - 1)], columns[size_t(rankOfRhs - 2)]);
    return b.mul(b.mul(sum, b.reshape(left.unit, rows)), b.reshape(right.unit, columns));
  }

  /// Terms [.., rows, m, n] of a sum that micro-batches may cut: nobody knows the largest before all are there.
  static Value sumOverBatch(GradientBuilder &b, Value terms, int64_t rows, int64_t elements) {
    int64_t dim = nn::tensorType(terms).getRank() - 3;
    SmallVector<int64_t> shape(nn::shapeOf(terms));
    shape.erase(shape.begin() + dim);
    SmallVector<Value> sums;
    for (Value word : splitIntoWords(b, terms, rows, double(llvm::PowerOf2Ceil(uint64_t(elements))), 2))
      sums.push_back(b.reshape(b.sum(word, {dim}), shape));
    return joinWords(b, sums);
  }

  // ---- reductions ----

  Value exactReduction(GradientBuilder &b, nn::ReduceOp op) {
    Value operand = op.getOperand();
    int64_t terms = 1;
    bool isOverBatch = false;
    for (int64_t axis : op.getAxes()) {
      terms *= nn::shapeOf(operand)[size_t(axis)];
      isOverBatch |= batch.size(operand, axis) > 0;
    }
    if (terms == 1)
      return {};
    if (!isOverBatch) {
      Scaled scaled = scaleByLargest(b, operand, op.getAxes(), bitsOfTerms(terms));
      return b.mul(b.sum(scaled.numbers, op.getAxes()), scaled.unit);
    }
    SmallVector<Value> sums;
    // A single number, as a loss, costs little: three words, for whatever its terms are as large as.
    int words = nn::tensorType(op.getResult()).getNumElements() == 1 ? 3 : 2;
    for (Value word : splitIntoWords(b, operand, terms, double(llvm::PowerOf2Ceil(uint64_t(terms))), words))
      sums.push_back(b.sum(word, op.getAxes()));
    return joinWords(b, sums);
  }

  static Value exactRows(GradientBuilder &b, nn::EmbeddingGradOp op) {
    int64_t terms = nn::tensorType(op.getIds()).getNumElements();
    auto type = RankedTensorType::get(nn::shapeOf(op.getResult()), b.builder.getF64Type());
    SmallVector<Value> sums;
    for (Value word : splitIntoWords(b, op.getRows(), terms, double(llvm::PowerOf2Ceil(uint64_t(terms))), 2))
      sums.push_back(nn::EmbeddingGradOp::create(b.builder, b.loc, type, word, op.getIds(), Value(), op.getVocabulary()));
    return joinWords(b, sums);
  }

  // ---- numbers of all stages ----

  /// One number of the whole update, of no parameter alone, as a sum of others: the norm, whose terms stages add up.
  static bool isTotalOfNumbers(nn::AddOp add) {
    return add && isReal(add.getResult()) && nn::shapeOf(add.getResult()).empty() &&
           stepPartOf(add.getLoc()) == StepPart::Update && nodeName(add.getLoc()).empty();
  }
  static bool isTermOfTotal(nn::AddOp add) {
    return add->hasOneUse() && isTotalOfNumbers(dyn_cast<nn::AddOp>(*add->user_begin()));
  }
  static Value exactTotal(GradientBuilder &b, nn::AddOp root) {
    SmallVector<Value> terms, open{root.getResult()};
    while (!open.empty()) {
      Value value = open.pop_back_val();
      auto add = value.getDefiningOp<nn::AddOp>();
      if (value != root.getResult() && !(isTotalOfNumbers(add) && value.hasOneUse())) {
        terms.push_back(value);
        continue;
      }
      open.push_back(add.getRhs());
      open.push_back(add.getLhs());
    }
    SmallVector<Value> sums;
    for (Value term : terms)
      for (auto [index, word] : llvm::enumerate(splitIntoWords(b, term, int64_t(terms.size()), 1, 3)))
        if (index < sums.size())
          sums[index] = nn::AddOp::create(b.builder, b.loc, sums[index], word);
        else
          sums.push_back(word);
    return joinWords(b, sums);
  }

  func::FuncOp function;
  nn::BatchFlow batch;
  OpBuilder builder{function.getContext()};
  SmallVector<Operation *> replaced;
};

struct ExactSums : impl::ExactSumsBase<ExactSums> {
  using ExactSumsBase::ExactSumsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    // 1. What could not be exact.
    WalkResult wide = function.walk([&](Operation *op) {
      if (llvm::none_of(op->getResultTypes(), [](Type type) { return getElementTypeOrSelf(type).isF64(); }) ||
          !isa<nn::MatmulOp, nn::ReduceOp, nn::EmbeddingGradOp>(op))
        return WalkResult::advance();
      userError(op, ErrorKind::Unsupported) << describeOp(op) << " adds up f64, and --deterministic does its exact sums in f64: they hold f32 and "
                                               "narrower; leave the flag out, or export the model in f32";
      return WalkResult::interrupt();
    });
    if (wide.wasInterrupted())
      return signalPassFailure();
    // 2. What may be cut over time.
    auto dims = nn::findBatchDims(function, batchDim);
    if (failed(dims))
      return signalPassFailure();
    // 3. Sums.
    ExactSumsOf(function, nn::BatchFlow(function, *dims)).run();
  }
};
} // namespace

} // namespace hpc
