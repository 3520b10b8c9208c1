// Gathers by affine indices as views.
#include "compiler/Import/GatherByIndex.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {

Expected<KnownTensor> normalizedIndices(const KnownTensor &indices, ArrayRef<int64_t> sizes) {
  KnownTensor result = indices;
  // Each of several sizes has its own index along the last dim: -1 names another element in each.
  if (sizes.size() > 1 && result.compact.size() > 0) {
    std::vector<int64_t> shape = result.compact.shape;
    shape.back() = int64_t(sizes.size());
    result.compact = broadcastTo(result.compact, shape);
  }
  for (size_t at = 0; at < result.compact.ints.size(); ++at) {
    int64_t &index = result.compact.ints[at];
    int64_t size = sizes[at % sizes.size()];
    if (index < -size || index >= size)
      return Status::error(ErrorKind::Model, "index " + std::to_string(index) + " is out of range for a dim of " +
                                                 countText(size, "element"));
    index += index < 0 ? size : 0;
  }
  return KnownTensor(result.shape, std::move(result.compact));
}

std::optional<SmallVector<std::optional<AffineIndex>>> affineComponents(const KnownTensor &indices, int64_t batchDims) {
  int64_t depth = indices.shape.back(), stored = indices.compact.shape.back();
  // Along batch dims data and result advance together, so the indices may not vary there.
  for (int64_t dim = 0; dim < batchDims; ++dim)
    if (indices.compact.shape[size_t(dim)] != 1)
      return std::nullopt;
  SmallVector<std::optional<AffineIndex>> components;
  for (int64_t c = 0; c < depth; ++c) {
    Tensor part(indices.dtype(), ArrayRef<int64_t>(indices.compact.shape).drop_back());
    for (size_t i = 0; i < part.ints.size(); ++i)
      part.ints[i] = indices.compact.ints[i * size_t(stored) + size_t(stored == 1 ? 0 : c)];
    SmallVector<int64_t> shape(indices.shape.begin(), indices.shape.end() - 1);
    std::optional<AffineIndex> affine = findAffine(KnownTensor(shape, std::move(part)));
    if (!affine)
      return std::nullopt;
    affine->dim -= affine->dim < 0 ? 0 : int(batchDims);
    components.push_back(affine);
  }
  return components;
}

std::optional<GatherPlan> planGather(int64_t first, ArrayRef<int64_t> indexShape,
                                     ArrayRef<std::optional<AffineIndex>> components, ArrayRef<int64_t> data) {
  GatherPlan plan;
  plan.starts.assign(data.size(), 0);
  plan.steps.assign(data.size(), 1);
  plan.sizes.assign(data.begin(), data.end());
  SmallVector<int64_t> byDim(indexShape.size(), -1); // the data dim that runs along an index dim
  SmallVector<int64_t> single;                       // data dims of one index
  for (auto [c, component] : llvm::enumerate(components)) {
    if (!component || llvm::is_contained(indexShape, 0))
      return std::nullopt;
    size_t dim = size_t(first) + c;
    plan.starts[dim] = component->start;
    plan.steps[dim] = component->dim < 0 ? 1 : component->step;
    plan.sizes[dim] = component->size;
    if (component->dim < 0) {
      single.push_back(int64_t(dim));
      continue;
    }
    if (byDim[size_t(component->dim)] >= 0)
      return std::nullopt;
    byDim[size_t(component->dim)] = int64_t(dim);
  }
  size_t rest = size_t(first) + components.size();
  for (int64_t dim = 0; dim < first; ++dim)
    plan.permutation.push_back(dim);
  llvm::append_range(plan.permutation, single);
  plan.shape.assign(data.begin(), data.begin() + first);
  plan.result = plan.shape;
  for (auto [dim, from] : llvm::enumerate(byDim)) {
    if (from >= 0)
      plan.permutation.push_back(from);
    plan.shape.push_back(from >= 0 ? plan.sizes[size_t(from)] : 1);
    plan.result.push_back(indexShape[dim]);
  }
  for (size_t dim = rest; dim < data.size(); ++dim) {
    plan.permutation.push_back(int64_t(dim));
    plan.shape.push_back(data[dim]);
    plan.result.push_back(data[dim]);
  }
  return plan;
}

Value gatherBySlice(GraphBuilder &builder, Value data, const GatherPlan &plan) {
  Value part = builder.slice(data, plan.starts, plan.steps, plan.sizes);
  return builder.broadcast(builder.reshape(builder.transpose(part, plan.permutation), plan.shape), plan.result);
}

std::optional<IndexDigits> findDigits(const KnownTensor &indices, int64_t size) {
  SmallVector<int> dims = indices.variedDims();
  std::optional<AffineForm> form =
      indices.compact.isFloat() || indices.elements() == 0 ? std::nullopt : findAffineForm(indices.compact);
  if (!form || llvm::any_of(dims, [&](int dim) { return form->steps[size_t(dim)] <= 0; }))
    return std::nullopt;
  llvm::sort(dims, [&](int a, int b) {
    return std::pair(-form->steps[size_t(a)], a) < std::pair(-form->steps[size_t(b)], b); // in their order where equal
  });
  IndexDigits digits;
  int64_t outer = size, start = form->start;
  for (int dim : dims) {
    int64_t step = form->steps[size_t(dim)], count = indices.compact.shape[size_t(dim)];
    if (outer % step != 0 || start / step + count > outer / step)
      return std::nullopt; // no factor, or one that carries into the next
    digits.sizes.push_back(outer / step);
    digits.components.push_back(AffineIndex{dim, start / step, 1, count});
    start %= step;
    outer = step;
  }
  digits.sizes.push_back(outer); // no index varies with it
  digits.components.push_back(AffineIndex{-1, start, 0, 1});
  return digits;
}

} // namespace hpc::onnx
