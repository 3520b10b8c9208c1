// `nn.int8_along = D` on a parameter of f32: its value is that of int8 numbers, code * scale, with a scale for every line along
// dim D of what is stored (runtime/base/Int8.h). What is cut or taken of it later is cut of that value.
//
//   %w = nn.parameter "fc" {bytes = 6144 : i64, nn.int8_along = 0 : i64, ...} : tensor<32x48xf32>
//
// hpc-quantize-weights makes such; hpc-bind-int8 makes of them the codes, and the scales: f32, without dim D, whose size in
// what is stored is `nn.int8_size`, and which `stored_shape` and `part_starts` lack too.
//
//   %c = nn.parameter "fc" {bytes = 6144 : i64, nn.int8_along = 0 : i64, stored_type = f32, ...} : tensor<32x48xi8>
//   %s = nn.parameter "fc" {bytes = 6144 : i64, nn.int8_along = 0 : i64, nn.int8_size = 32 : i64, ...} : tensor<48xf32>
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

constexpr const char *int8AlongAttrName = "nn.int8_along", *int8SizeAttrName = "nn.int8_size";

/// The numbers as floats, the whole numbers alone, or the scales of their lines.
enum class Int8Form { Values, Codes, Scales };

inline std::optional<int64_t> int8Number(ParameterOp parameter, StringRef name) {
  auto number = parameter->getAttrOfType<IntegerAttr>(name);
  return number ? std::optional(number.getInt()) : std::nullopt;
}
/// Nothing: the parameter is as it is stored.
inline std::optional<int64_t> int8Along(ParameterOp parameter) { return int8Number(parameter, int8AlongAttrName); }

/// Of one with int8Along().
inline Int8Form int8FormOf(ParameterOp parameter) {
  return int8Number(parameter, int8SizeAttrName)                     ? Int8Form::Scales
         : tensorType(parameter.getResult()).getElementType().isInteger(8) ? Int8Form::Codes
                                                                            : Int8Form::Values;
}

inline void setInt8Along(ParameterOp parameter, int64_t dim) {
  parameter->setAttr(int8AlongAttrName, Builder(parameter.getContext()).getI64IntegerAttr(dim));
}
inline void setInt8Size(ParameterOp parameter, int64_t size) {
  parameter->setAttr(int8SizeAttrName, Builder(parameter.getContext()).getI64IntegerAttr(size));
}

/// The shape of all that is stored, whatever part of it a parameter is and in whatever form.
inline SmallVector<int64_t> storedShapeOf(ParameterOp parameter) {
  // Its stored shape is the global one; a type without encoding is global itself.
  SmallVector<int64_t> shape(parameter.isPart() ? *parameter.getStoredShape()
                                                : dist::globalType(tensorType(parameter.getResult())).getShape());
  std::optional<int64_t> along = int8Along(parameter), size = int8Number(parameter, int8SizeAttrName);
  if (along && size && *along >= 0 && *along <= int64_t(shape.size()))
    shape.insert(shape.begin() + *along, *size);
  return shape;
}

} // namespace hpc::nn
