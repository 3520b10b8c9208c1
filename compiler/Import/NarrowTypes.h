// Element types that are only stored: floats of 8 and 4 bits, integers of 4 and 2. A program holds them one to a byte,
// as u8 (the bits of a float) or as i8 and u8 (integers), moves them, and casts them; no op computes with them.
#pragma once

#include "runtime/base/DType.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpc::onnx {

struct NarrowType {
  int64_t code = 0; ///< ONNX's number of it
  const char *name = "";
  DType storage = DType::U8;
  int bits = 8;        ///< in a file; fewer than 8 are packed there, the first element lowest
  int mantissa = -1;   ///< bits of a float's mantissa; -1: an integer
  int bias = 0;        ///< of a float's exponent; E8M0 has no mantissa and no sign
  int largest = 0;     ///< the code of the largest number
  int infinity = -1;   ///< its code, or -1
  int nan = -1;        ///< its code, or -1
  bool hasSign = true; ///< a float's; -0 is another code than 0 unless `hasMinusZero` is not set
  bool hasMinusZero = true;

  bool isFloat() const { return mantissa >= 0; }
  bool isSigned() const { return storage == DType::I8; }
};

/// Null for every other type.
const NarrowType *narrowTypeOfCode(int64_t code);

/// The number that a code of a float type encodes.
double decoded(const NarrowType &type, int code);

/// Bytes of that many elements in a file.
int64_t packedBytes(const NarrowType &type, int64_t elements);
/// One byte an element, integers with their sign.
std::vector<std::byte> unpacked(const NarrowType &type, const std::byte *packed, int64_t elements);

/// Whether an op only moves elements of its first operand (or, as Concat, of all), so that any type may pass.
bool movesElements(const std::string &op);
/// Whether an op handles these types itself, or needs the shape alone.
bool takesNarrowTypes(const std::string &op);

} // namespace hpc::onnx
