// The table of types that are only stored, and their codes (ONNX: docs/docsgen/source/technical/float8.md; OCP 8-bit
// and microscaling formats, 2023).
#include "compiler/Import/NarrowTypes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hpc::onnx {

const NarrowType *narrowTypeOfCode(int64_t code) {
  //                                 code  name              storage    bits mantissa bias largest infinity nan  sign -0
  static const NarrowType types[] = {{17, "float8e4m3fn", DType::U8, 8, 3, 7, 0x7e, -1, 0x7f, true, true},
                                     {18, "float8e4m3fnuz", DType::U8, 8, 3, 8, 0x7f, -1, 0x80, true, false},
                                     {19, "float8e5m2", DType::U8, 8, 2, 15, 0x7b, 0x7c, 0x7f, true, true},
                                     {20, "float8e5m2fnuz", DType::U8, 8, 2, 16, 0x7f, -1, 0x80, true, false},
                                     {21, "uint4", DType::U8, 4},
                                     {22, "int4", DType::I8, 4},
                                     {23, "float4e2m1", DType::U8, 4, 1, 1, 0x7, -1, -1, true, true},
                                     {24, "float8e8m0", DType::U8, 8, 0, 127, 0xfe, -1, 0xff, false, false},
                                     {25, "uint2", DType::U8, 2},
                                     {26, "int2", DType::I8, 2}};
  for (const NarrowType &type : types)
    if (type.code == code)
      return &type;
  return nullptr;
}

double decoded(const NarrowType &type, int code) {
  if (code == type.nan || (type.hasMinusZero && type.nan >= 0 && (code & 0x7f) > std::max(type.largest, type.infinity)))
    return std::numeric_limits<double>::quiet_NaN();
  if (!type.hasSign) // E8M0: a power of two
    return std::ldexp(1.0, code - type.bias);
  int signBit = 1 << (type.bits - 1), magnitude = code & (signBit - 1);
  double sign = code & signBit ? -1 : 1;
  if (magnitude == type.infinity)
    return sign * std::numeric_limits<double>::infinity();
  int exponent = magnitude >> type.mantissa, fraction = magnitude & ((1 << type.mantissa) - 1);
  if (exponent == 0)
    return sign * std::ldexp(double(fraction), 1 - type.bias - type.mantissa);
  return sign * std::ldexp(double(fraction + (1 << type.mantissa)), exponent - type.bias - type.mantissa);
}

int64_t packedBytes(const NarrowType &type, int64_t elements) {
  int64_t perByte = 8 / type.bits;
  return elements / perByte + (elements % perByte != 0);
}

std::vector<std::byte> unpacked(const NarrowType &type, const std::byte *packed, int64_t elements) {
  std::vector<std::byte> bytes(static_cast<size_t>(elements));
  int perByte = 8 / type.bits, mask = (1 << type.bits) - 1, sign = 1 << (type.bits - 1);
  for (int64_t i = 0; i < elements; ++i) {
    int value = (int(packed[i / perByte]) >> (i % perByte * type.bits)) & mask;
    if (type.isSigned() && (value & sign))
      value -= 2 * sign;
    bytes[size_t(i)] = std::byte(value & 0xff);
  }
  return bytes;
}

static bool isOneOf(const std::string &op, std::initializer_list<const char *> names) {
  return std::any_of(names.begin(), names.end(), [&](const char *name) { return op == name; });
}

bool movesElements(const std::string &op) {
  return isOneOf(op, {"Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity",
                      "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"});
}

bool takesNarrowTypes(const std::string &op) {
  return isOneOf(op, {"Cast", "CastLike", "DequantizeLinear", "QuantizeLinear", "Shape", "Size"});
}

} // namespace hpc::onnx
