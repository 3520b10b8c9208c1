// Element types of MLIR tensors as the DType that runtime, plan and interpreter speak, and back.
// Signed integers are signless in MLIR (i64, i32, i16, i8), unsigned ones carry their sign (ui8 ... ui64), bool is i1.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/DType.h"

namespace hpc {

/// The DType of an element type, or of the element type of a shaped type; nothing for types that no tensor here has.
inline std::optional<DType> findDType(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.isSigned())
    return std::nullopt;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 64:
    return isUnsigned ? DType::U64 : DType::I64;
  case 32:
    return isUnsigned ? DType::U32 : DType::I32;
  case 16:
    return isUnsigned ? DType::U16 : DType::I16;
  case 8:
    return isUnsigned ? DType::U8 : DType::I8;
  case 1:
    return isUnsigned ? std::nullopt : std::optional(DType::Bool);
  }
  return std::nullopt;
}

/// The same for a type that is known to have one.
inline DType dtypeOf(Type type) {
  std::optional<DType> dtype = findDType(type);
  assert(dtype && "not an element type of the project");
  return *dtype;
}

/// Bytes of one element in memory.
inline int64_t elementBytes(Type type) { return byteSize(dtypeOf(type)); }

inline Type typeOf(DType dtype, MLIRContext *context) {
  switch (dtype) {
  case DType::F32:
    return Float32Type::get(context);
  case DType::F64:
    return Float64Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::I64:
  case DType::I32:
  case DType::I16:
  case DType::I8:
    return IntegerType::get(context, unsigned(8 * byteSize(dtype)));
  case DType::U64:
  case DType::U32:
  case DType::U16:
  case DType::U8:
    return IntegerType::get(context, unsigned(8 * byteSize(dtype)), IntegerType::Unsigned);
  case DType::Bool:
    return IntegerType::get(context, 1);
  }
  llvm_unreachable("a DType without an MLIR type");
}

} // namespace hpc
