// The words of --dtype, and which operands they are about.
#include "passes/Precision/ProductType.h"

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

Expected<Type> productType(StringRef dtype, MLIRContext *context) {
  if (dtype == "model")
    return Type();
  if (dtype == "bf16")
    return Type(BFloat16Type::get(context));
  if (dtype == "fp16")
    return Type(Float16Type::get(context));
  return Status::error(ErrorKind::Usage, "dtype '" + dtype.str() +
                                             "' is unknown; use bf16 or fp16 for products of 16-bit operands that are "
                                             "added in f32, or model for the types that the model has");
}

SmallVector<unsigned> wideFactors(Operation *op) {
  SmallVector<unsigned> wide;
  if (auto mixed = dyn_cast<MixedPrecisionOpInterface>(op))
    for (unsigned operand : mixed.getNarrowOperands())
      if (nn::tensorType(op->getOperand(operand)).getElementType().isF32())
        wide.push_back(operand);
  return wide;
}

} // namespace hpc
