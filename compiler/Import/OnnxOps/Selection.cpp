// Ops whose results are as long as the data makes them. A plan has static shapes, so they are computed here, of values
// that are known, or refused.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

/// All elements of a known input; nothing, with the reason, where it depends on data.
std::optional<Tensor> knownInput(NodeImport &n, size_t index) {
  std::shared_ptr<const KnownTensor> known = n.b.find(n.in(index));
  if (!n.b.status().ok())
    return std::nullopt;
  if (!known) {
    n.unsupported("how many elements it gives" + n.b.unknownText(n.in(index)) + "; a plan has static shapes");
    return std::nullopt;
  }
  Expected<Tensor> full = expanded(*known);
  if (full.ok())
    return std::move(*full);
  n.unsupported(full.status().message());
  return std::nullopt;
}

Results nonZero(NodeImport &n) {
  std::optional<Tensor> x = knownInput(n, 0);
  if (!x)
    return {n.in(0)};
  // A scalar counts as one element of one dim.
  SmallVector<int64_t> shape(x->shape.begin(), x->shape.end()), found;
  for (int64_t i = 0; i < x->size(); ++i)
    if (x->number(i) != 0)
      found.push_back(i);
  int64_t rank = int64_t(shape.size()), count = int64_t(found.size());
  Tensor result(DType::I64, {rank, count});
  SmallVector<int64_t> strides = stridesOf(shape);
  for (int64_t dim = 0; dim < rank; ++dim)
    for (int64_t i = 0; i < count; ++i)
      result.ints[size_t(dim * count + i)] = found[size_t(i)] / strides[size_t(dim)] % shape[size_t(dim)];
  return {n.b.known(std::move(result))};
}

/// The slices along the axis (or, without one, the elements) where a known condition is true.
Results compress(NodeImport &n) {
  Value data = n.in(0);
  std::optional<Tensor> condition = knownInput(n, 1);
  if (!condition)
    return {data};
  int64_t axis = 0;
  if (n.hasAttribute("axis"))
    axis = n.axis(n.integer("axis", 0), n.b.rank(data));
  else
    data = n.b.reshape(data, {elementCount(n.b.shape(data))});
  if (!n.b.status().ok())
    return {data};
  SmallVector<int64_t> chosen;
  for (int64_t i = 0; i < condition->size(); ++i)
    if (condition->number(i) != 0)
      chosen.push_back(i);
  if (condition->dtype != DType::Bool || condition->shape.size() != 1 ||
      (!chosen.empty() && chosen.back() >= n.b.shape(data)[size_t(axis)]))
    return {n.b.fail("its condition must be a list of bools, true within the " +
                     countText(n.b.shape(data)[size_t(axis)], "element") + " along the axis")};
  return {n.b.gather(data, n.b.indices(chosen), axis)};
}

const OnnxOp selectionTable[] = {{"NonZero", 9, nonZero}, {"Compress", 9, compress}};

} // namespace

ArrayRef<OnnxOp> selectionOps() { return selectionTable; }

} // namespace hpc::onnx
