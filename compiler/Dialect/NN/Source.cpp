// Parameters and constants.
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

LogicalResult ParameterOp::verify() {
  if (getValue()) {
    if (!getFile().empty())
      return emitOpError("(C3) has both a file and a value");
    return success();
  }
  // Its stored shape is the global one; a type without encoding is global itself.
  RankedTensorType stored = dist::globalType(tensorType(getResult()));
  int64_t elementBytes = (stored.getElementTypeBitWidth() + 7) / 8;
  if (stored.getNumElements() * elementBytes != int64_t(getBytes()))
    return emitOpError("(C1) ") << stored << " has " << stored.getNumElements() * elementBytes
                                << " bytes, the source has " << getBytes();
  int64_t chunks = (getBytes() + (int64_t(1) << 20) - 1) >> 20;
  if (!getHashes().empty() && int64_t(getHashes().size()) != chunks)
    return emitOpError("(C2) needs ") << chunks << " hashes (one per MiB) or none, has " << getHashes().size();
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  auto type = tensorType(getResult());
  auto valueType = dyn_cast<ShapedType>(getValue().getType());
  if (!valueType || valueType.getShape() != type.getShape() || valueType.getElementType() != type.getElementType())
    return emitOpError("(C1) value ") << getValue().getType() << " and result " << type << " differ";
  return success();
}

} // namespace hpc::nn
