// Ops that give the same elements another shape or repeat them.
#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/CheckedMath.h"

namespace hpc::onnx {
namespace {

int64_t product(ArrayRef<int64_t> sizes) { return elementCount(sizes); }

Results reshape(NodeImport &n) {
  SmallVector<int64_t> from = n.b.shape(n.in(0)), to = n.b.integers(n.in(1), "shape");
  bool allowZero = n.integer("allowzero", 0);
  int64_t open = -1, others = 1;
  for (size_t dim = 0; dim < to.size(); ++dim) {
    if (to[dim] == 0 && !allowZero) {
      if (dim >= from.size())
        return {n.b.fail("size 0 at dim " + std::to_string(dim) + " copies a dim that its input does not have")};
      to[dim] = from[dim];
    }
    if (to[dim] < -1 || (to[dim] == -1 && open >= 0))
      return {n.b.fail("its shape may hold one -1 and no other negative size")};
    if (to[dim] == -1)
      open = int64_t(dim);
    else if (__builtin_mul_overflow(others, to[dim], &others))
      return {n.b.fail("its shape has too many elements")};
  }
  if (open >= 0) {
    if (others == 0 || product(from) % others)
      return {n.b.fail("its " + countText(product(from), "element") + " cannot be divided by the " +
                       std::to_string(others) + " of its other sizes")};
    to[size_t(open)] = product(from) / others;
  }
  return {n.b.reshape(n.in(0), to)};
}

Results flatten(NodeImport &n) {
  SmallVector<int64_t> from = n.b.shape(n.in(0));
  int64_t axis = n.integer("axis", 1), rank = int64_t(from.size());
  if (axis < -rank || axis > rank)
    return {n.b.fail("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank))};
  axis += axis < 0 ? rank : 0;
  ArrayRef<int64_t> dims(from);
  return {n.b.reshape(n.in(0), {product(dims.take_front(size_t(axis))), product(dims.drop_front(size_t(axis)))})};
}

Results transpose(NodeImport &n) {
  SmallVector<int64_t> permutation;
  for (int64_t dim = n.b.rank(n.in(0)) - 1; dim >= 0; --dim)
    permutation.push_back(dim);
  if (auto given = n.integers("perm"))
    permutation = *given;
  return {n.b.transpose(n.in(0), permutation)};
}

/// Without axes all dims of size 1 are dropped.
Results squeeze(NodeImport &n) {
  SmallVector<int64_t> from = n.b.shape(n.in(0)), to;
  auto given = n.attributeOrInput("axes", 1);
  SmallVector<int64_t> axes = given ? n.axes(*given, int64_t(from.size())) : SmallVector<int64_t>();
  for (size_t dim = 0; dim < from.size(); ++dim) {
    bool goes = given ? llvm::is_contained(axes, int64_t(dim)) : from[dim] == 1;
    if (goes && from[dim] != 1)
      return {n.b.fail("dim " + std::to_string(dim) + " has size " + std::to_string(from[dim]) +
                       " and cannot be squeezed")};
    if (!goes)
      to.push_back(from[dim]);
  }
  return {n.b.reshape(n.in(0), to)};
}

Results unsqueeze(NodeImport &n) {
  auto given = n.attributeOrInput("axes", 1);
  if (!given)
    return {n.b.fail("it has no axes")};
  SmallVector<int64_t> from = n.b.shape(n.in(0)), to;
  int64_t rank = int64_t(from.size() + given->size());
  SmallVector<int64_t> axes = n.axes(*given, rank);
  if (!n.b.status().ok())
    return {n.in(0)};
  auto next = from.begin();
  for (int64_t dim = 0; dim < rank; ++dim)
    to.push_back(llvm::is_contained(axes, dim) ? 1 : *next++);
  return {n.b.reshape(n.in(0), to)};
}

/// Broadcast both ways: sizes of 1 in the given shape leave the input's.
Results expand(NodeImport &n) {
  SmallVector<int64_t> from = n.b.shape(n.in(0)), to = n.b.integers(n.in(1), "shape");
  if (to.size() < from.size())
    to.insert(to.begin(), from.size() - to.size(), 1);
  size_t missing = to.size() - from.size();
  for (size_t dim = 0; dim < from.size(); ++dim) {
    int64_t &size = to[missing + dim];
    if (size != 1 && from[dim] != 1 && size != from[dim])
      return {n.b.fail("size " + std::to_string(from[dim]) + " does not broadcast to " + std::to_string(size))};
    size = size == 1 ? from[dim] : size;
  }
  if (llvm::any_of(to, [](int64_t size) { return size < 0; }))
    return {n.b.fail("its shape has a negative size")};
  return {n.b.broadcast(n.in(0), to)};
}

/// [d0, d1] repeated (r0, 1) times: [1, d0, d1] broadcast to [r0, d0, d1].
Results tile(NodeImport &n) {
  SmallVector<int64_t> from = n.b.shape(n.in(0)), repeats = n.b.integers(n.in(1), "repeats");
  if (repeats.size() != from.size())
    return {n.b.fail("it needs one repeat for each of " + countText(from.size(), "dim"))};
  SmallVector<int64_t> split, repeated, merged;
  for (auto [size, count] : llvm::zip_equal(from, repeats)) {
    if (count < 0)
      return {n.b.fail("a negative repeat")};
    if (count != 1) {
      split.push_back(1);
      repeated.push_back(count);
    }
    split.push_back(size);
    repeated.push_back(size);
    merged.push_back(plan::multiplySizes(count, size));
  }
  return {n.b.reshape(n.b.broadcast(n.b.reshape(n.in(0), split), repeated), merged)};
}

const OnnxOp shapeTable[] = {
    {"Reshape", 5, reshape},     {"Flatten", 1, flatten}, {"Transpose", 1, transpose}, {"Squeeze", 1, squeeze},
    {"Unsqueeze", 1, unsqueeze}, {"Expand", 8, expand},   {"Tile", 6, tile},
};

} // namespace

ArrayRef<OnnxOp> shapeOps() { return shapeTable; }

} // namespace hpc::onnx
