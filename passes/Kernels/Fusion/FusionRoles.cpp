// Roles follow from an op, its operands' roles and its users; program order suffices, since operands come first.
#include "passes/Kernels/Fusion/FusionRoles.h"

#include "compiler/Accumulations.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/Scaling.h"
#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Regions/KernelScalars.h"

namespace hpc::kernels {

bool isExpensive(Operation *op) {
  std::optional<Effort> effort = effortOf(op);
  return effort && *effort >= Effort::Expensive;
}
bool isMove(Operation *op) { return accessOf(op) == Access::Move; }
bool isAlias(Operation *op) { return accessOf(op) == Access::Alias; }

bool keepsRows(Operation *alias) {
  ArrayRef<int64_t> from = nn::shapeOf(alias->getOperand(0)), to = nn::shapeOf(alias->getResult(0));
  int64_t fromRow = from.empty() ? 1 : from.back(), toRow = to.empty() ? 1 : to.back();
  return toRow == 0 || fromRow % toRow == 0;
}

static bool isZero(TypedAttr value) { return value == Builder(value.getContext()).getZeroAttr(value.getType()); }

bool isExactExtent(dist::FillTailOp op) {
  SmallVector<PaddedDigit> digits = paddedDigits(op);
  // One padded factor, the major one of its dim, so that the padding is a tail of the dim.
  if (digits.size() > 1 || op.getDims().size() != 1 || !isZero(op.getValue()) || op->use_empty())
    return false;
  int64_t dim = op.getDims()[0], rank = nn::tensorType(op.getOperand()).getRank();
  if (!digits.empty() && digits[0].stride * digits[0].box != nn::shapeOf(op.getOperand())[dim])
    return false;
  return llvm::all_of(op->getUses(), [&](OpOperand &use) {
    auto matmul = dyn_cast<nn::MatmulOp>(use.getOwner());
    if (!matmul)
      return false;
    bool isLhs = use.getOperandNumber() == 0;
    bool contractsLast = isLhs ? !matmul.getTransposeLhs() : matmul.getTransposeRhs();
    return dim == (contractsLast ? rank - 1 : rank - 2);
  });
}

namespace {
/// Limit on the ops that are cloned with an op, itself included: a chain of views as long as the program is not cloned
/// into every region, and a value that is repeatedly added to itself is not computed once for each path.
constexpr int64_t maxClonedOps = 64;

struct Classifier {
  FusionRoles &result;
  DenseSet<Operation *> free;               ///< Cloned, and reads no data at all
  DenseMap<Operation *, int64_t> clonedOps; ///< of Cloned ops; one that is read twice counts twice

  explicit Classifier(FusionRoles &result) : result(result) {}

  FusionRole role(Value value) const {
    return value.getDefiningOp() ? result.of(value.getDefiningOp()) : FusionRole::Fixed;
  }
  /// Whether the value is in memory before any region of this block runs, as far as fusion decides.
  bool isBuffer(Value value) const {
    while (role(value) == FusionRole::Alias)
      value = value.getDefiningOp()->getOperand(0);
    return role(value) == FusionRole::Fixed;
  }
  bool isClonable(Value value) const { return isBuffer(value) || role(value) == FusionRole::Cloned; }

  /// A scaling (compiler/Scaling.h) of a buffer by numbers: as cheap to compute where it is read as to read, as a gradient
  /// times the factor of the loss, which its norm and its update both read.
  bool isReadScaled(Operation *op) const {
    if (op->getNumOperands() < 2 || !hasScalarEmitter(op->getName()) || !scaledBy(op))
      return false;
    int64_t readers = 0;
    for (Operation *user : op->getUsers()) {
      if (!user->hasTrait<OpTrait::IsTerminator>() && (!hasElementEmitter(user->getName()) || isAlias(user)))
        return false;
      readers += !user->hasTrait<OpTrait::IsTerminator>();
    }
    for (Value operand : op->getOperands()) {
      bool isNumber = nn::tensorType(operand).getNumElements() == 1;
      if (!isBuffer(operand) && !(isNumber && role(operand) == FusionRole::Grouped))
        return false;
    }
    return readers > 1;
  }

  int64_t countClonedOps(Operation *op) const {
    int64_t count = 1;
    for (Value operand : op->getOperands())
      count += clonedOps.lookup(operand.getDefiningOp());
    return count;
  }

  FusionRole classify(Operation *op) {
    FusionRole role = choose(op, countClonedOps(op) <= maxClonedOps);
    if (role == FusionRole::Cloned)
      clonedOps[op] = countClonedOps(op);
    return role;
  }

  FusionRole choose(Operation *op, bool mayClone) {
    if (!hasElementEmitter(op->getName()) || isImplicit(op) || addsInProduct(op))
      return FusionRole::Fixed;
    if (auto fill = dyn_cast<dist::FillTailOp>(op); fill && isExactExtent(fill))
      return FusionRole::Fixed;
    if (mayClone && !isExpensive(op) && llvm::all_of(op->getOperands(), [&](Value v) {
          return v.getDefiningOp() && free.contains(v.getDefiningOp());
        })) {
      free.insert(op);
      return FusionRole::Cloned;
    }
    if (isAlias(op)) {
      bool ofView = role(op->getOperand(0)) == FusionRole::Cloned;
      return mayClone && ofView && keepsRows(op) ? FusionRole::Cloned : FusionRole::Alias;
    }
    if (mayClone && isView(op) && isClonable(op->getOperand(0)))
      return FusionRole::Cloned;
    if (isReadScaled(op)) // reads no clones
      return FusionRole::Cloned;
    // Cheap and read only in parts, as the bias of a fused q, k, v: each part computes its own.
    auto isPart = [&](Operation *user) {
      return isMove(user) &&
             nn::tensorType(user->getResult(0)).getNumElements() < nn::tensorType(op->getResult(0)).getNumElements();
    };
    bool readInParts = !op->use_empty() && llvm::all_of(op->getUsers(), isPart);
    if (mayClone && readInParts && hasScalarEmitter(op->getName()) && !isExpensive(op) &&
        llvm::all_of(op->getOperands(), [&](Value v) { return isClonable(v); }))
      return FusionRole::Cloned;
    return FusionRole::Grouped;
  }
};
} // namespace

FusionRoles::FusionRoles(Block &block) {
  Classifier classifier(*this);
  for (Operation &op : block)
    roles[&op] = classifier.classify(&op);
  for (Operation &op : block) {
    auto isOutside = [&](Operation *user) { return of(user) == FusionRole::Fixed || of(user) == FusionRole::Alias; };
    if (of(&op) == FusionRole::Cloned && !isa<dist::OffsetOp>(op) && llvm::any_of(op.getUsers(), isOutside))
      materialized.insert(&op);
  }
}

} // namespace hpc::kernels
