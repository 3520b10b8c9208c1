// The policy, by types and dependences, and one attribute.
#include "compiler/Dialect/NN/RoundedTerms.h"

#include "compiler/Interfaces/MixedPrecision.h"

namespace hpc::nn {

bool mayRoundTerms(Operation *op, const Dependences &dependences) {
  auto product = dyn_cast<MixedPrecisionOpInterface>(op);
  if (!product || op->getNumResults() != 1 || !tensorType(op->getResult(0)).getElementType().isF32() ||
      !dependences.lookup(op->getResult(0)).fromInputs)
    return false;
  SmallVector<unsigned> factors = product.getNarrowOperands();
  auto isNarrow = [&](unsigned factor) { return tensorType(op->getOperand(factor)).getElementType().isBF16(); };
  auto isWeight = [&](unsigned factor) { return dependences.lookup(op->getOperand(factor)).isWeight(); };
  return llvm::all_of(factors, isNarrow) && llvm::any_of(factors, isWeight);
}

void setRoundsTerms(CastOp cast) { cast->setAttr(roundsTermsAttrName, UnitAttr::get(cast.getContext())); }
bool roundsTerms(CastOp cast) { return cast->hasAttr(roundsTermsAttrName); }

} // namespace hpc::nn
