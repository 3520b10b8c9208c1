// Parameters and constants.
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// (C4)
static LogicalResult verifyPart(ParameterOp op, ArrayRef<int64_t> shape) {
  std::optional<ArrayRef<int64_t>> stored = op.getStoredShape(), starts = op.getPartStarts();
  bool fits = stored.has_value() == starts.has_value();
  if (fits && stored) {
    fits = stored->size() == shape.size() && starts->size() == shape.size();
    for (size_t dim = 0; fits && dim < shape.size(); ++dim)
      fits = (*starts)[dim] >= 0 && (*starts)[dim] <= (*stored)[dim] - shape[dim];
  }
  return fits ? success()
              : op.emitOpError("(C4) part_starts and stored_shape must come together, with one entry for each of ")
                    << shape.size() << " dims, and the part must lie within what is stored";
}

Type ParameterOp::storedElementType() {
  return getStoredType().value_or(tensorType(getResult()).getElementType());
}

/// (C5)
static LogicalResult verifyStoredType(ParameterOp op) {
  Type own = tensorType(op.getResult()).getElementType();
  if (!op.getStoredType() || (op.getStoredType()->isF32() && (own.isF16() || own.isBF16())))
    return success();
  return op.emitOpError("(C5) only f32 is rounded when it is bound, and only to f16 or bf16; this is stored as ")
         << *op.getStoredType() << " and bound as " << own;
}

LogicalResult ParameterOp::verify() {
  if (failed(verifyStoredType(*this)))
    return failure();
  // Its stored shape is the global one; a type without encoding is global itself.
  RankedTensorType stored = dist::globalType(tensorType(getResult()));
  if (failed(verifyPart(*this, stored.getShape())))
    return failure();
  stored = RankedTensorType::get(isPart() ? *getStoredShape() : stored.getShape(), storedElementType());
  if (getValue()) {
    if (!getFile().empty())
      return emitOpError("(C3) has both a file and a value");
    return success();
  }
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
