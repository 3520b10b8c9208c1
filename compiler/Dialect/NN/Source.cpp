// Parameters and constants.
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Parameter.h"

namespace hpc::nn {

LogicalResult StorageAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringAttr, int64_t offset, int64_t bytes, DenseI64ArrayAttr hashes,
                                  Type, DenseI64ArrayAttr shape, DenseI64ArrayAttr starts, std::optional<int64_t> int8Along, std::optional<int64_t> int8Size) {
  if (offset < 0 || bytes < 0 || int8Along.value_or(0) < 0 || int8Size.value_or(0) < 0)
    return emitError() << "(C1) offset, bytes, int8_along and int8_size of a storage must not be negative";
  int64_t chunks = (bytes + (int64_t(1) << 20) - 1) >> 20;
  if (hashes && !hashes.empty() && hashes.size() != chunks)
    return emitError() << "(C2) needs " << chunks << " hashes (one per MiB) or none, has " << hashes.size();
  bool fits = !shape == !starts && (!shape || shape.size() == starts.size());
  for (int64_t dim = 0; fits && shape && dim < shape.size(); ++dim)
    fits = starts[dim] >= 0 && starts[dim] <= shape[dim];
  if (!fits)
    return emitError() << "(C3) starts and shape must come together, with one entry for each dim, and no start beyond its dim";
  if (int8Size && !int8Along)
    return emitError() << "(C4) int8_size must stand beside int8_along";
  return success();
}

/// (C3)
static LogicalResult verifyPart(ParameterOp op, ArrayRef<int64_t> shape) {
  if (!op.isPart())
    return success();
  ArrayRef<int64_t> stored = *op.getStoredShape(), starts = *op.getPartStarts();
  bool fits = stored.size() == shape.size();
  for (size_t dim = 0; fits && dim < shape.size(); ++dim)
    fits = starts[dim] <= stored[dim] - shape[dim];
  return fits ? success()
              : op.emitOpError("(C3) starts and shape of what is stored must have one entry for each of ")
                    << shape.size() << " dims, and the part must lie within what is stored";
}

/// (C4)
static LogicalResult verifyStoredType(ParameterOp op) {
  Type own = tensorType(op.getResult()).getElementType();
  bool isCodes = own.isSignlessInteger(8) && op.getInt8Along();
  auto isHalf = [](Type type) { return type.isF16() || type.isBF16(); };
  std::optional<Type> stored = op.getStoredType();
  if (!stored || (stored->isF32() && (isHalf(own) || isCodes)) || (isHalf(*stored) && own.isF32()) || (stored->isInteger(8) && isHalf(own)))
    return success();
  return op.emitOpError("(C4) only f32 is rounded when it is bound, and only to f16 or bf16, or i8 along a dim, only these are widened, to f32, and bytes to f16 or "
                        "bf16; this is stored as ")
         << *stored << " and bound as " << own;
}

/// (C5)
static LogicalResult verifyInt8(ParameterOp op) {
  if (!op.getInt8Along())
    return success();
  int64_t dims = int64_t(shapeOf(op.getResult()).size()) + (op.getInt8Size() ? 1 : 0);
  if (*op.getInt8Along() < dims && op.storedElementType().isF32() && !(op.getInt8Size() && op.getStoredType()))
    return success();
  return op.emitOpError("(C5) int8_along must be one of the ") << dims << " dims of what is stored, which must be f32, and int8_size is of its scales alone, f32 too";
}

LogicalResult ParameterOp::verify() {
  if (failed(verifyStoredType(*this)) || failed(verifyInt8(*this)) ||
      failed(verifyPart(*this, dist::globalType(tensorType(getResult())).getShape())))
    return failure();
  if (getValue()) {
    if (!getFile().empty() || getOffset() || getBytes() || !getHashes().empty())
      return emitOpError("(C2) has both a value and a place in a file");
    return success();
  }
  RankedTensorType stored = RankedTensorType::get(storedShapeOf(*this), storedElementType());
  int64_t elementBytes = (stored.getElementTypeBitWidth() + 7) / 8;
  if (stored.getNumElements() * elementBytes != getBytes())
    return emitOpError("(C1) ") << stored << " has " << stored.getNumElements() * elementBytes
                                << " bytes, the source has " << getBytes();
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
