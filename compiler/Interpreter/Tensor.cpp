// Rounding and conversion of elements, and tensors from and to bytes, arrays and attributes.
// Every conversion is defined for every value: NaN, infinities and what is out of range included.
#include "compiler/Interpreter/Tensor.h"

#include "compiler/ElementType.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "runtime/base/HalfFloat.h"
#include "runtime/plan/CheckedMath.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace hpc {

int64_t elementCount(ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t count = 1;
  for (int64_t size : shape)
    count = plan::multiplySizes(count, size);
  return count;
}

SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = plan::multiplySizes(strides[dim + 1], shape[dim + 1]);
  return strides;
}

Tensor::Tensor(DType dtype, ArrayRef<int64_t> shape) : dtype(dtype), shape(shape.vec()) {
  if (hpc::isFloat(dtype))
    floats.assign(elementCount(shape), 0.0);
  else
    ints.assign(elementCount(shape), 0);
}

double Tensor::wholeNumber(int64_t index) const {
  return dtype == DType::U64 ? double(uint64_t(ints[index])) : double(ints[index]);
}

void Tensor::setNumber(int64_t index, double value) {
  if (isFloat())
    floats[index] = value;
  else
    ints[index] = convertToInteger(dtype, value);
}

/// Rounds to `precision` bits with a smallest quantum of 2^minExponent; above `largest` is infinity.
static double roundToPrecision(double value, int precision, int minExponent, double largest) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int exponent;
  std::frexp(value, &exponent);
  int quantum = std::max(exponent - precision, minExponent);
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  return std::fabs(rounded) > largest ? std::copysign(INFINITY, value) : rounded;
}

double roundTo(DType dtype, double value) {
  switch (dtype) {
  case DType::F32:
    return float(value);
  case DType::F16:
    return roundToPrecision(value, 11, -24, 65504.0);
  case DType::BF16:
    return roundToPrecision(value, 8, -133, 0x1.fep127);
  default:
    return value;
  }
}

int64_t wrapTo(DType dtype, int64_t value) {
  switch (dtype) {
  case DType::I32:
    return int32_t(value);
  case DType::I16:
    return int16_t(value);
  case DType::I8:
    return int8_t(value);
  case DType::U32:
    return uint32_t(value);
  case DType::U16:
    return uint16_t(value);
  case DType::U8:
    return uint8_t(value);
  case DType::Bool:
    return value != 0;
  default:
    return value;
  }
}

int64_t convertToInteger(DType dtype, double value) {
  if (dtype == DType::Bool)
    return value != 0; // also true for NaN
  if (std::isnan(value))
    return 0;
  if (dtype == DType::U64)
    return value <= 0 ? 0 : value >= 0x1p64 ? -1 : int64_t(uint64_t(value));
  bool isSigned = dtype == DType::I64 || dtype == DType::I32 || dtype == DType::I16 || dtype == DType::I8;
  int bits = int(8 * byteSize(dtype)) - isSigned;
  double end = std::ldexp(1.0, bits); // one past the largest
  if (value >= end)
    return bits == 63 ? std::numeric_limits<int64_t>::max() : int64_t(end) - 1;
  if (value <= (isSigned ? -end : 0.0))
    return isSigned ? int64_t(-end) : 0;
  return int64_t(value);
}

/// Above 2^53 the bits that a double drops are kept as one sticky bit, so that the second rounding is that of the
/// integer.
static double sticky(uint64_t magnitude) {
  if (magnitude < (uint64_t(1) << 53))
    return double(magnitude);
  return std::ldexp(double((magnitude >> 12) | ((magnitude & 4095) != 0)), 12);
}

double convertToFloat(DType from, int64_t value, DType to) {
  bool isNegative = from != DType::U64 && value < 0;
  if (to == DType::F64)
    return from == DType::U64 ? double(uint64_t(value)) : double(value);
  double magnitude = sticky(isNegative ? 0 - uint64_t(value) : uint64_t(value));
  return isNegative ? -magnitude : magnitude;
}

void round(Tensor &tensor) {
  if (tensor.dtype == DType::F32)
    for (double &value : tensor.floats)
      value = float(value);
  else if (tensor.isFloat() && tensor.dtype != DType::F64)
    for (double &value : tensor.floats)
      value = roundTo(tensor.dtype, value);
  else if (!tensor.isFloat() && byteSize(tensor.dtype) != 8)
    for (int64_t &value : tensor.ints)
      value = wrapTo(tensor.dtype, value);
}

// ---- bytes --------------------------------------------------------------------------------------

/// roundTo returns a number of the narrow type, and all of those are floats.
static uint16_t bfloatBits(double value) { return floatToBfloat(float(roundTo(DType::BF16, value))); }
static uint16_t halfBits(double value) { return floatToHalf(float(roundTo(DType::F16, value))); }

template <typename T, typename Target> static void copyFrom(const std::byte *bytes, std::vector<Target> &target) {
  for (size_t i = 0; i < target.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    target[i] = Target(value);
  }
}

template <typename T, typename Source> static void copyTo(const std::vector<Source> &source, std::byte *bytes) {
  for (size_t i = 0; i < source.size(); ++i) {
    T value = T(source[i]);
    std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
  }
}

Tensor tensorFromBytes(DType dtype, ArrayRef<int64_t> shape, const std::byte *bytes) {
  Tensor tensor(dtype, shape);
  auto narrow = [&](double (*decode)(uint16_t)) {
    for (size_t i = 0; i < tensor.floats.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, bytes + 2 * i, 2);
      tensor.floats[i] = decode(bits);
    }
  };
  switch (dtype) {
  case DType::F32:
    copyFrom<float>(bytes, tensor.floats);
    break;
  case DType::F64:
    copyFrom<double>(bytes, tensor.floats);
    break;
  case DType::F16:
    narrow([](uint16_t bits) { return double(halfToFloat(bits)); });
    break;
  case DType::BF16:
    narrow([](uint16_t bits) { return double(bfloatToFloat(bits)); });
    break;
  case DType::I64:
  case DType::U64:
    copyFrom<int64_t>(bytes, tensor.ints);
    break;
  case DType::I32:
    copyFrom<int32_t>(bytes, tensor.ints);
    break;
  case DType::I16:
    copyFrom<int16_t>(bytes, tensor.ints);
    break;
  case DType::I8:
    copyFrom<int8_t>(bytes, tensor.ints);
    break;
  case DType::U32:
    copyFrom<uint32_t>(bytes, tensor.ints);
    break;
  case DType::U16:
    copyFrom<uint16_t>(bytes, tensor.ints);
    break;
  case DType::U8:
    copyFrom<uint8_t>(bytes, tensor.ints);
    break;
  case DType::Bool:
    copyFrom<uint8_t>(bytes, tensor.ints);
    round(tensor);
    break;
  }
  return tensor;
}

std::vector<std::byte> tensorToBytes(const Tensor &tensor) {
  std::vector<std::byte> bytes(tensor.size() * byteSize(tensor.dtype));
  auto narrow = [&](uint16_t (*encode)(double)) {
    for (size_t i = 0; i < tensor.floats.size(); ++i) {
      uint16_t bits = encode(tensor.floats[i]);
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
  };
  switch (tensor.dtype) {
  case DType::F32:
    copyTo<float>(tensor.floats, bytes.data());
    break;
  case DType::F64:
    copyTo<double>(tensor.floats, bytes.data());
    break;
  case DType::F16:
    narrow(halfBits);
    break;
  case DType::BF16:
    narrow(bfloatBits);
    break;
  case DType::I64:
  case DType::U64:
    copyTo<int64_t>(tensor.ints, bytes.data());
    break;
  case DType::I32:
  case DType::U32:
    copyTo<uint32_t>(tensor.ints, bytes.data());
    break;
  case DType::I16:
  case DType::U16:
    copyTo<uint16_t>(tensor.ints, bytes.data());
    break;
  case DType::I8:
  case DType::U8:
  case DType::Bool:
    copyTo<uint8_t>(tensor.ints, bytes.data());
    break;
  }
  return bytes;
}

Tensor tensorFromArray(const Array &array) { return tensorFromBytes(array.dtype, array.shape, array.data.data()); }
Array tensorToArray(const Tensor &tensor) { return {tensor.dtype, tensor.shape, tensorToBytes(tensor)}; }

// ---- attributes ---------------------------------------------------------------------------------

Expected<Tensor> tensorFromAttr(ElementsAttr attr) {
  std::optional<DType> dtype = findDType(attr.getElementType());
  if (!dtype) {
    std::string text;
    llvm::raw_string_ostream(text) << attr.getShapedType();
    return Status::error(ErrorKind::Unsupported,
                         "a constant of type " + text + " has no element type that can be computed with");
  }
  ArrayRef<int64_t> shape = attr.getShapedType().getShape();
  Tensor tensor(*dtype, shape);
  auto bytesOf = [](ArrayRef<char> data) { return reinterpret_cast<const std::byte *>(data.data()); };
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    if (*dtype == DType::Bool) {
      for (auto [target, value] : llvm::zip(tensor.ints, dense.getValues<bool>()))
        target = value;
      return tensor;
    }
    if (!dense.isSplat())
      return tensorFromBytes(*dtype, shape, bytesOf(dense.getRawData()));
    Tensor one = tensorFromBytes(*dtype, {}, bytesOf(dense.getRawData()));
    if (tensor.isFloat())
      std::fill(tensor.floats.begin(), tensor.floats.end(), one.floats[0]);
    else
      std::fill(tensor.ints.begin(), tensor.ints.end(), one.ints[0]);
    return tensor;
  }
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || int64_t(blob->getData().size()) != tensor.size() * byteSize(*dtype))
      return Status::error(ErrorKind::Model, "the resource of a constant is missing or has another size than its type");
    return tensorFromBytes(*dtype, shape, bytesOf(blob->getData()));
  }
  return Status::error(ErrorKind::Unsupported, "a constant must be a dense or resource attribute");
}

DenseElementsAttr tensorToAttr(const Tensor &tensor, MLIRContext *context) {
  auto type = RankedTensorType::get(tensor.shape, typeOf(tensor.dtype, context));
  if (tensor.dtype == DType::Bool) {
    SmallVector<bool> values(tensor.ints.begin(), tensor.ints.end());
    return DenseElementsAttr::get(type, values);
  }
  std::vector<std::byte> bytes = tensorToBytes(tensor);
  size_t width = byteSize(tensor.dtype), length = bytes.size();
  // All elements equal their successors: a splat, which holds one.
  if (length > width && !std::memcmp(bytes.data(), bytes.data() + width, length - width))
    length = width;
  return DenseElementsAttr::getFromRawBuffer(type, {reinterpret_cast<const char *>(bytes.data()), length});
}

} // namespace hpc
