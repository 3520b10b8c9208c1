// Parameters and constants.
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Int8Parameter.h"
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
  bool isCodes = own.isSignlessInteger(8) && int8Along(op);
  auto isHalf = [](Type type) { return type.isF16() || type.isBF16(); };
  std::optional<Type> stored = op.getStoredType();
  if (!stored || (stored->isF32() && (isHalf(own) || isCodes)) || (isHalf(*stored) && own.isF32()) || (stored->isInteger(8) && isHalf(own)))
    return success();
  return op.emitOpError("(C5) only f32 is rounded when it is bound, and only to f16 or bf16, or i8 along a dim, only these are widened, to f32, and bytes to f16 or "
                        "bf16; this is stored as ")
         << *op.getStoredType() << " and bound as " << own;
}

/// What Int8Parameter.h says of its attributes.
static LogicalResult verifyInt8(ParameterOp op) {
  if (!op->hasAttr(int8AlongAttrName) && !op->hasAttr(int8SizeAttrName))
    return success();
  std::optional<int64_t> along = int8Along(op), size = int8Number(op, int8SizeAttrName);
  int64_t dims = int64_t(shapeOf(op.getResult()).size()) + (size ? 1 : 0);
  bool isScales = size && *size >= 0 && !op.getStoredType();
  if (along && *along >= 0 && *along < dims && op.storedElementType().isF32() &&
      (isScales || !op->hasAttr(int8SizeAttrName)))
    return success();
  return op.emitOpError() << int8AlongAttrName << " must be one of the " << dims << " dims of what is stored, which must be f32, and "
                          << int8SizeAttrName << " is of its scales alone, f32 too";
}

LogicalResult ParameterOp::verify() {
  if (failed(verifyStoredType(*this)) || failed(verifyInt8(*this)) ||
      failed(verifyPart(*this, dist::globalType(tensorType(getResult())).getShape())))
    return failure();
  RankedTensorType stored = RankedTensorType::get(storedShapeOf(*this), storedElementType());
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
