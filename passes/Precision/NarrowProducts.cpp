// Casts go on the operands of products, nowhere else. They stand before views, so that two readers of one value share a
// cast, and so that between a weight and its cast there is nothing.
#include "compiler/Diagnostics.h"
#include "passes/Precision/Passes.h"
#include "passes/Precision/ProductType.h"

namespace hpc {

#define GEN_PASS_DEF_NARROWPRODUCTS
#include "passes/Precision/Passes.h.inc"

static RankedTensorType withElement(Value value, Type element) {
  RankedTensorType type = nn::tensorType(value);
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

namespace {
/// f32 values and their copies in 16 bits, each made once.
class NarrowCopies {
public:
  explicit NarrowCopies(Type narrow) : narrow(narrow) {}

  Value of(Value value) {
    SmallVector<Operation *> views; // from the value back to what computes its numbers
    while (!copies.contains(value) && isView(value.getDefiningOp())) {
      views.push_back(value.getDefiningOp());
      wideViews.insert(views.back());
      value = views.back()->getOperand(0);
    }
    Value copy = copies.contains(value) ? copies.lookup(value) : round(value);
    for (Operation *view : llvm::reverse(views)) {
      OpBuilder builder(view->getContext());
      builder.setInsertionPointAfter(view);
      Operation *narrowView = builder.clone(*view);
      narrowView->setOperand(0, copy);
      narrowView->getResult(0).setType(withElement(view->getResult(0), narrow));
      copy = copies[view->getResult(0)] = narrowView->getResult(0);
    }
    return copy;
  }

  const SmallVector<nn::CastOp> &casts() const { return made; }

  void eraseUnreadViews() {
    for (Operation *last : llvm::to_vector(wideViews))
      for (Operation *view = last; wideViews.contains(view) && view->use_empty();) {
        Operation *before = view->getOperand(0).getDefiningOp();
        wideViews.remove(view);
        view->erase();
        view = before;
      }
  }

private:
  Value round(Value value) {
    // A value that was widened to f32 need not be rounded back.
    if (auto widened = value.getDefiningOp<nn::CastOp>();
        widened && nn::tensorType(widened.getOperand()).getElementType() == narrow)
      return copies[value] = widened.getOperand();
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    made.push_back(nn::CastOp::create(builder, value.getLoc(), withElement(value, narrow), value));
    return copies[value] = made.back();
  }

  Type narrow;
  DenseMap<Value, Value> copies;
  llvm::SmallSetVector<Operation *, 32> wideViews; ///< that have a copy
  SmallVector<nn::CastOp> made;
};
} // namespace

/// Whether a rank always has the op's result complete: nothing that the op adds up can be cut. What may be a partial sum
/// is rounded behind the sum over ranks, not before.
static bool completesItsSums(Operation *op) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  return llvm::none_of(rule.factors, [](const ShardingFactor &factor) { return factor.reduction && factor.canCut; });
}

/// Lets products round their own result where that is all that is read of it.
static void joinWithProduct(nn::CastOp cast) {
  auto product = cast.getOperand().getDefiningOp<MixedPrecisionOpInterface>();
  if (!product || !cast.getOperand().hasOneUse() || !completesItsSums(product))
    return;
  product->getResult(0).setType(nn::tensorType(cast.getResult()));
  cast.replaceAllUsesWith(product->getResult(0));
  cast.erase();
}

namespace {
struct NarrowProducts : impl::NarrowProductsBase<NarrowProducts> {
  using NarrowProductsBase::NarrowProductsBase;

  void runOnOperation() override {
    Expected<Type> type = productType(dtype, &getContext());
    if (!type.ok()) {
      userError(getOperation(), type.status().kind()) << type.status().message();
      return signalPassFailure();
    }
    if (!*type)
      return;
    // 1. 16-bit copies of what is multiplied; the ops before the copies are made, which are none of theirs.
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (!wideFactors(op).empty())
        products.push_back(op);
    });
    NarrowCopies copies(*type);
    for (Operation *product : products)
      for (unsigned operand : wideFactors(product))
        product->setOperand(operand, copies.of(product->getOperand(operand)));
    // 2. Views that only products read are read by nobody now.
    copies.eraseUnreadViews();
    // 3. Of what is left each product rounds its own.
    for (nn::CastOp cast : copies.casts())
      joinWithProduct(cast);
  }
};
} // namespace

} // namespace hpc
