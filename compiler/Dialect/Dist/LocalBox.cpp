// The part of a dim that a coordinate holds, and where it lies in its local box.
// Every axis of a sub-dim cuts the *block* of the one before, not what is left of it, so boxes are the same on all
// ranks.
#include "compiler/Dialect/Dist/Sharding.h"

#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::dist {

int64_t boxSize(const SubDim &sub, const Mesh &mesh) {
  int64_t block = sub.size;
  for (const std::string &axis : sub.axes)
    block = ceilDiv(block, mesh.size(axis));
  return block;
}

int64_t boxSize(const DimSharding &dim, const Mesh &mesh) {
  int64_t box = 1;
  for (const SubDim &sub : dim)
    box *= boxSize(sub, mesh);
  return box;
}

std::vector<int64_t> boxShape(const Sharding &sharding, const Mesh &mesh) {
  std::vector<int64_t> shape;
  for (const DimSharding &dim : sharding.dims)
    shape.push_back(boxSize(dim, mesh));
  return shape;
}

Range heldDigits(const SubDim &sub, const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  Range held = {0, sub.size};
  int64_t block = sub.size;
  for (const std::string &axis : sub.axes) {
    int index = mesh.index(axis);
    int64_t c = index < 0 ? 0 : coordinate[index];
    block = ceilDiv(block, mesh.size(axis));
    held.start += c * block;
    held.extent = std::clamp<int64_t>(held.extent - c * block, 0, block);
  }
  return held;
}

bool hasPadding(const DimSharding &dim, const Mesh &mesh) {
  // ceil(ceil(size/k1)/k2)... * k1 * k2... = size exactly when every block divides.
  return globalSize(dim) != 0 && std::any_of(dim.begin(), dim.end(), [&](const SubDim &sub) {
           int64_t covered = boxSize(sub, mesh);
           for (const std::string &axis : sub.axes)
             covered *= mesh.size(axis);
           return covered != sub.size;
         });
}

int64_t localIndex(const DimSharding &dim, const Mesh &mesh, const std::vector<int64_t> &coordinate, int64_t index) {
  int64_t local = 0, stride = 1;
  for (size_t i = dim.size(); i-- > 0;) {
    Range held = heldDigits(dim[i], mesh, coordinate);
    int64_t digit = index % dim[i].size - held.start;
    if (digit < 0 || digit >= held.extent)
      return -1;
    local += digit * stride;
    stride *= boxSize(dim[i], mesh);
    index /= dim[i].size;
  }
  return local;
}

int64_t globalIndex(const DimSharding &dim, const Mesh &mesh, const std::vector<int64_t> &coordinate, int64_t local) {
  int64_t index = 0, stride = 1;
  for (size_t i = dim.size(); i-- > 0;) {
    Range held = heldDigits(dim[i], mesh, coordinate);
    int64_t box = boxSize(dim[i], mesh);
    int64_t digit = local % box;
    if (digit >= held.extent)
      return -1;
    index += (held.start + digit) * stride;
    stride *= dim[i].size;
    local /= box;
  }
  return index;
}

} // namespace hpc::dist
