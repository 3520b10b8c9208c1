// Tensors of the interpreter. Floats of every type are held as double and integers as int64, so that an op has one
// definition; round() brings a result back to what its dtype can hold.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Array.h"
#include "runtime/base/DType.h"
#include "runtime/base/Status.h"

namespace hpc {

struct Tensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<double> floats; ///< row-major; used when isFloat(dtype)
  std::vector<int64_t> ints;  ///< used otherwise: bool is 0 or 1, u64 its bits

  Tensor() = default;
  /// Zeros.
  Tensor(DType dtype, ArrayRef<int64_t> shape);

  bool isFloat() const { return hpc::isFloat(dtype); }
  int64_t size() const { return isFloat() ? int64_t(floats.size()) : int64_t(ints.size()); }
  /// An element as a double, whatever the dtype.
  double number(int64_t index) const { return floats.empty() ? wholeNumber(index) : floats[size_t(index)]; }
  /// Sets an element from a double: integers as convertToInteger.
  void setNumber(int64_t index, double value);

private:
  double wholeNumber(int64_t index) const;
};

/// Product of the dims; INT64_MAX where it does not fit.
int64_t elementCount(ArrayRef<int64_t> shape);
/// Row-major strides.
SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape);

/// A double rounded to a float type (ties to even, overflow to infinity).
double roundTo(DType dtype, double value);
/// An integer wrapped to an integer type (two's complement); bool is value != 0.
int64_t wrapTo(DType dtype, int64_t value);
/// Float to integer: toward zero, saturating, NaN is 0; bool is value != 0 (NaN is true).
int64_t convertToInteger(DType dtype, double value);
/// Integer (read as `from`) to the double that roundTo(to, ...) rounds as it would the integer itself.
double convertToFloat(DType from, int64_t value, DType to);

/// Every element brought to what the dtype can hold.
void round(Tensor &tensor);

/// From compact row-major bytes of that type and shape.
Tensor tensorFromBytes(DType dtype, ArrayRef<int64_t> shape, const std::byte *bytes);
std::vector<std::byte> tensorToBytes(const Tensor &tensor);
Tensor tensorFromArray(const Array &array);
Array tensorToArray(const Tensor &tensor);

/// From a dense or resource attribute of numbers.
Expected<Tensor> tensorFromAttr(ElementsAttr attr);
/// A dense attribute with a plain tensor type; a splat where all elements are the same bits.
DenseElementsAttr tensorToAttr(const Tensor &tensor, MLIRContext *context);

} // namespace hpc
