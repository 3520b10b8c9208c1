// ONNX's numbers of element types, from onnx.proto's TensorProto.DataType.
#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

std::optional<DType> dtypeOfCode(int64_t code) {
  static const std::map<int64_t, DType> types = {{1, DType::F32},  {2, DType::U8},   {3, DType::I8},   {4, DType::U16},
                                                 {5, DType::I16},  {6, DType::I32},  {7, DType::I64},  {9, DType::Bool},
                                                 {10, DType::F16}, {11, DType::F64}, {12, DType::U32}, {13, DType::U64},
                                                 {16, DType::BF16}};
  auto found = types.find(code);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

std::string typeNameOfCode(int64_t code) {
  if (auto dtype = dtypeOfCode(code))
    return name(*dtype);
  if (const NarrowType *narrow = narrowTypeOfCode(code))
    return narrow->name;
  static const std::map<int64_t, std::string> names = {{0, "no type"},     {8, "string"},        {14, "complex64"},
                                                       {15, "complex128"}};
  auto found = names.find(code);
  return found == names.end() ? "type number " + std::to_string(code) : found->second;
}

} // namespace hpc::onnx
