// Compaction of known tensors and the way back.
// Elements are compared by their bits: NaN equals NaN, and -0 is not 0.
#include "compiler/Import/KnownTensor.h"
#include "runtime/base/CountText.h"

#include <cstring>

namespace hpc::onnx {
namespace {

/// Keeps index 0 of every dim along which all elements are equal. `data` has `shape` before and after.
template <typename Element> void compactElements(std::vector<Element> &data, std::vector<int64_t> &shape) {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t count = shape[dim];
    if (count <= 1 || data.empty())
      continue;
    int64_t outer = elementCount(ArrayRef<int64_t>(shape).take_front(dim));
    int64_t inner = elementCount(ArrayRef<int64_t>(shape).drop_front(dim + 1));
    bool equal = true;
    for (int64_t o = 0; o < outer && equal; ++o) {
      const Element *first = data.data() + o * count * inner;
      for (int64_t i = 1; i < count && equal; ++i)
        equal = std::memcmp(first, first + i * inner, size_t(inner) * sizeof(Element)) == 0;
    }
    if (!equal)
      continue;
    for (int64_t o = 1; o < outer; ++o)
      std::memmove(data.data() + o * inner, data.data() + o * count * inner, size_t(inner) * sizeof(Element));
    data.resize(size_t(outer * inner));
    shape[dim] = 1;
  }
  data.shrink_to_fit();
}

void compact(Tensor &tensor) {
  if (tensor.isFloat())
    compactElements(tensor.floats, tensor.shape);
  else
    compactElements(tensor.ints, tensor.shape);
}

template <typename Element>
void broadcastElements(const std::vector<Element> &from, ArrayRef<int64_t> strides, ArrayRef<int64_t> shape,
                       std::vector<Element> &to) {
  SmallVector<int64_t> digits(shape.size(), 0);
  int64_t source = 0;
  for (Element &element : to) {
    element = from[size_t(source)];
    for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
      source += strides[dim];
      if (++digits[dim] < shape[dim])
        break;
      source -= strides[dim] * shape[dim];
      digits[dim] = 0;
    }
  }
}

} // namespace

KnownTensor::KnownTensor(Tensor tensor) : shape(tensor.shape.begin(), tensor.shape.end()), compact(std::move(tensor)) {
  onnx::compact(compact);
}

KnownTensor::KnownTensor(SmallVector<int64_t> shape, Tensor tensor)
    : shape(std::move(shape)), compact(std::move(tensor)) {
  onnx::compact(compact);
}

SmallVector<int> KnownTensor::variedDims() const {
  SmallVector<int> dims;
  for (size_t dim = 0; dim < compact.shape.size(); ++dim)
    if (compact.shape[dim] != 1)
      dims.push_back(int(dim));
  return dims;
}

Tensor broadcastTo(const Tensor &tensor, ArrayRef<int64_t> shape) {
  if (ArrayRef<int64_t>(tensor.shape) == shape)
    return tensor;
  SmallVector<int64_t> own = stridesOf(tensor.shape), strides(shape.size(), 0);
  size_t missing = shape.size() - tensor.shape.size();
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
    strides[missing + dim] = tensor.shape[dim] == 1 ? 0 : own[dim];
  Tensor result(tensor.dtype, shape);
  if (result.isFloat())
    broadcastElements(tensor.floats, strides, shape, result.floats);
  else
    broadcastElements(tensor.ints, strides, shape, result.ints);
  return result;
}

Status checkFolded(int64_t elements) {
  if (elements <= maxFoldedElements)
    return Status::success();
  return Status::error(ErrorKind::Unsupported, "a constant of " + countText(elements, "element") +
                                                   " has to be written out; use smaller --dim sizes");
}

Expected<Tensor> expanded(const KnownTensor &known) {
  HPC_RETURN_IF_ERROR(checkFolded(known.elements()));
  return broadcastTo(known.compact, known.shape);
}

} // namespace hpc::onnx
