// Recognition of affine integers, by reading the steps off the first elements and then checking every element.
#include "compiler/Import/KnownTensor.h"

#include <cmath>

namespace hpc::onnx {

static std::optional<int64_t> wholeNumber(const Tensor &tensor, int64_t index) {
  if (!tensor.isFloat())
    return tensor.ints[size_t(index)];
  double value = tensor.floats[size_t(index)];
  if (std::fabs(value) >= 0x1p53 || value != std::floor(value) || (value == 0 && std::signbit(value)))
    return std::nullopt;
  return int64_t(value);
}

std::optional<AffineForm> findAffineForm(const Tensor &compact) {
  if (compact.size() == 0 || compact.dtype == DType::Bool || compact.dtype == DType::U64)
    return std::nullopt;
  AffineForm form;
  SmallVector<int64_t> strides = stridesOf(compact.shape);
  std::optional<int64_t> first = wholeNumber(compact, 0);
  if (!first)
    return std::nullopt;
  form.start = *first;
  for (size_t dim = 0; dim < compact.shape.size(); ++dim) {
    form.steps.push_back(0);
    if (compact.shape[dim] == 1)
      continue;
    std::optional<int64_t> next = wholeNumber(compact, strides[dim]);
    if (!next || __builtin_sub_overflow(*next, form.start, &form.steps.back()))
      return std::nullopt;
  }
  SmallVector<int64_t> digits(compact.shape.size(), 0);
  for (int64_t index = 0; index < compact.size(); ++index) {
    uint64_t expected = uint64_t(form.start);
    for (size_t dim = 0; dim < digits.size(); ++dim)
      expected += uint64_t(form.steps[dim]) * uint64_t(digits[dim]);
    if (wholeNumber(compact, index) != int64_t(expected))
      return std::nullopt;
    for (int64_t dim = int64_t(digits.size()) - 1; dim >= 0 && ++digits[dim] == compact.shape[dim]; --dim)
      digits[dim] = 0;
  }
  return form;
}

std::optional<AffineIndex> findAffine(const KnownTensor &known) {
  SmallVector<int> varied = known.variedDims();
  if (varied.size() > 1 || known.compact.isFloat())
    return std::nullopt;
  std::optional<AffineForm> form = findAffineForm(known.compact);
  if (!form)
    return std::nullopt;
  AffineIndex index;
  index.start = form->start;
  if (!varied.empty()) {
    index.dim = varied[0];
    index.step = form->steps[varied[0]];
    index.size = known.compact.shape[varied[0]];
  }
  return index;
}

} // namespace hpc::onnx
