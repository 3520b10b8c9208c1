// Gathers and running sums.
#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "runtime/plan/CheckedMath.h"

namespace hpc::onnx {
namespace {

/// Indices are i64 in the program.
Value indexInput(NodeImport &n, size_t index) {
  Value value = n.in(index);
  if (isFloat(n.b.dtype(value)) || n.b.dtype(value) == DType::Bool)
    return n.b.fail("its indices are " + std::string(name(n.b.dtype(value))) + ", not integers");
  return n.b.cast(value, DType::I64);
}

Results gather(NodeImport &n) {
  Value data = n.in(0), indices = indexInput(n, 1);
  int64_t axis = n.axis(n.integer("axis", 0), n.b.rank(data));
  return {n.b.status().ok() ? n.b.gather(data, indices, axis) : data};
}

Results gatherNd(NodeImport &n) {
  Value data = n.in(0), indices = indexInput(n, 1);
  return {n.b.gatherNd(data, indices, n.integer("batch_dims", 0))};
}

/// result[i, j, ...] = data[i, indices[i, j, ...], ...]: GatherND with the position along every other dim.
Results gatherElements(NodeImport &n) {
  Value data = n.in(0), indices = indexInput(n, 1);
  SmallVector<int64_t> shape = n.b.shape(indices);
  int64_t rank = int64_t(shape.size()), axis = n.axis(n.integer("axis", 0), rank);
  if (rank == 0 || rank != n.b.rank(data))
    return {n.b.fail("data and indices differ in rank")};
  if (Status size = checkFolded(plan::multiplySizes(elementCount(shape), rank)); !size.ok())
    return {n.unsupported(size.message())};
  SmallVector<int64_t> single = shape;
  single.push_back(1);
  SmallVector<Value> coordinates;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim == axis) {
      coordinates.push_back(n.b.reshape(indices, single));
      continue;
    }
    SmallVector<int64_t> along(size_t(rank) + 1, 1);
    along[size_t(dim)] = shape[size_t(dim)];
    Tensor position(DType::I64, along);
    for (size_t i = 0; i < position.ints.size(); ++i)
      position.ints[i] = int64_t(i);
    coordinates.push_back(n.b.broadcast(n.b.known(std::move(position)), single));
  }
  return {n.b.gatherNd(data, n.b.concat(coordinates, rank), 0)};
}

Results cumsum(NodeImport &n) {
  SmallVector<int64_t> axis = n.b.integers(n.in(1), "axis");
  if (axis.size() != 1)
    return {n.b.fail("its axis must be one number")};
  int64_t dim = n.axis(axis[0], n.b.rank(n.in(0)));
  return {n.b.cumsum(n.in(0), dim, n.integer("exclusive", 0), n.integer("reverse", 0))};
}

const OnnxOp table[] = {
    {"Gather", 1, gather},
    {"GatherND", 11, gatherNd},
    {"GatherElements", 11, gatherElements},
    {"CumSum", 11, cumsum},
};

} // namespace

ArrayRef<OnnxOp> indexOps() { return table; }

} // namespace hpc::onnx
