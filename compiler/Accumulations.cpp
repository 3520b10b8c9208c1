// Sums over micro-batches that end where their terms are made.
#include "compiler/Accumulations.h"

#include "compiler/Providers.h"

namespace hpc {

Value summandOf(nn::MatmulOp product) {
  if (!product->hasOneUse())
    return {};
  OpOperand &use = *product->use_begin();
  return addsInProduct(use.getOwner()) && use.getOperandNumber() == 1 ? use.getOwner()->getOperand(0) : Value();
}

dist::AccumulateOp accumulationOf(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (auto sum = dyn_cast<dist::AccumulateOp>(user))
      return sum;
    if (!isBufferAlias(user))
      break;
    value = user->getResult(0);
  }
  return {};
}

} // namespace hpc
