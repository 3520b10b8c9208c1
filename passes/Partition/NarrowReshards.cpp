// Pass hpc-narrow-reshards: a value read only in 16 bits moves in 16 bits, and sums of 16-bit products over ranks of
// tensor parallelism have terms of 16 bits. The first changes no number; docs/numerics.md describes the second.
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Dialect/NN/RoundedTerms.h"
#include "passes/Partition/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_NARROWRESHARDS
#include "passes/Partition/Passes.h.inc"

using namespace dist;

static RankedTensorType withElement(Value value, Type element) {
  RankedTensorType type = nn::tensorType(value);
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

/// The 16-bit float type in which alone a value is read; null where it is read otherwise.
static Type typeOfReaders(Value value) {
  Type narrow;
  for (Operation *user : value.getUsers()) {
    auto cast = dyn_cast<nn::CastOp>(user);
    Type to = cast ? nn::tensorType(cast.getResult()).getElementType() : Type();
    if (!to || !(to.isBF16() || to.isF16()) || (narrow && narrow != to))
      return {};
    narrow = to;
  }
  return narrow;
}

/// Whether a value, or a view of it, is read in f64: a product of whole numbers, whose sum is exact.
static bool isReadInF64(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<nn::CastOp>(user) ? nn::tensorType(user->getResult(0)).getElementType().isF64()
                                 : isView(user) && isReadInF64(user->getResult(0));
  });
}

namespace {
class Narrower {
public:
  Narrower(func::FuncOp function) : mesh(meshOf(function)), dependences(nn::findDependences(function)) {}

  void narrow(ReshardOp reshard) {
    Sharding from = shardingOf(reshard.getOperand()), to = shardingOf(reshard.getResult());
    if (!nn::tensorType(reshard.getResult()).getElementType().isF32())
      return;
    Type read = typeOfReaders(reshard.getResult());
    if (from.partial.empty() && read && moves(from, to))
      roundBefore(reshard, copyOf(reshard.getOperand(), read), read);
    else if (to.partial.empty() && !from.partial.empty() && hasRoundedTerms(reshard.getOperand()) &&
             !isReadInF64(reshard.getResult()))
      roundBefore(reshard, termsOf(reshard.getOperand()), read);
  }

private:
  /// Whether bytes go to other ranks: a slice is rounded afterwards.
  bool moves(const Sharding &from, const Sharding &to) const {
    Expected<std::vector<ReshardStep>> steps = planReshard(from, to, mesh);
    return steps.ok() && llvm::any_of(*steps, [](const ReshardStep &step) { return step.kind != ReshardStep::Slice; });
  }

  /// Whether a sum is over tensor axes alone and every term comes from products whose terms may be rounded.
  bool hasRoundedTerms(Value sum) const {
    const AxisNames axes = shardingOf(sum).partial;
    if (llvm::any_of(axes, [&](const std::string &axis) { return !mesh.hasRole(axis, AxisRole::Tensor); }))
      return false;
    llvm::SetVector<Value> pending;
    pending.insert(sum);
    for (size_t i = 0; i < pending.size(); ++i) {
      Operation *op = pending[i].getDefiningOp();
      if (!op || isa<ReshardOp>(op))
        return false;
      bool passesOn = false;
      for (Value operand : op->getOperands())
        if (!shardingOf(operand).partial.empty()) {
          passesOn = true;
          pending.insert(operand);
        }
      if (!passesOn && !nn::mayRoundTerms(op, dependences))
        return false;
    }
    return true;
  }

  /// The rounded copy of a value, made once for all reshards that move it.
  Value copyOf(Value value, Type narrow) {
    Value &copy = copies[{value, narrow}];
    if (!copy) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      copy = nn::CastOp::create(builder, value.getLoc(), withElement(value, narrow), value);
    }
    return copy;
  }

  /// Terms in bf16. A cast rounds them: libraries take longer for products with 16-bit results than a cast does.
  Value termsOf(Value sum) {
    Value terms = copyOf(sum, BFloat16Type::get(sum.getContext()));
    nn::setRoundsTerms(terms.getDefiningOp<nn::CastOp>());
    return terms;
  }

  /// Makes the reshard move `narrow`. Readers that read it in the type `read` take the arriving value.
  void roundBefore(ReshardOp reshard, Value narrow, Type read) {
    Type type = nn::tensorType(narrow).getElementType();
    SmallVector<nn::CastOp> readers;
    if (read == type)
      for (Operation *user : reshard.getResult().getUsers())
        readers.push_back(cast<nn::CastOp>(user));
    reshard->setOperand(0, narrow);
    reshard.getResult().setType(cast<RankedTensorType>(withElement(reshard.getResult(), type)));
    if (readers.empty()) {
      OpBuilder builder(reshard->getContext());
      builder.setInsertionPointAfter(reshard);
      auto wide = nn::CastOp::create(builder, reshard.getLoc(),
                                     withElement(reshard.getResult(), Float32Type::get(reshard.getContext())),
                                     reshard.getResult());
      reshard.getResult().replaceAllUsesExcept(wide.getResult(), wide);
      return;
    }
    // The rounded value that moves has the id of the one that its first reader made.
    if (std::optional<int64_t> made = valueIdsOf(readers.front()).made; made && shardingOf(narrow).partial.empty()) {
      if (ValueIds ids = valueIdsOf(narrow.getDefiningOp()); !ids.made)
        setValueIds(narrow.getDefiningOp(), {made, ids.moved});
      setValueIds(reshard, {{}, made});
    }
    for (nn::CastOp reader : readers) {
      reader.getResult().replaceAllUsesWith(reshard.getResult());
      reader.erase();
    }
  }

  Mesh mesh;
  nn::Dependences dependences;
  DenseMap<std::pair<Value, Type>, Value> copies;
};

struct NarrowReshards : impl::NarrowReshardsBase<NarrowReshards> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    Narrower narrower(function);
    // Last to first, so that a reshard of another reshard's result is rounded before both.
    SmallVector<ReshardOp> reshards(function.front().getOps<ReshardOp>());
    for (ReshardOp reshard : llvm::reverse(reshards))
      narrower.narrow(reshard);
  }
};
} // namespace
} // namespace hpc
