// Cutting global tensors into boxes, putting boxes together, and poison in what lies between.
#include "compiler/Interpreter/Boxes.h"

#include "runtime/plan/Groups.h"

#include <cmath>

namespace hpc::interpreter {

using dist::Mesh;
using dist::Sharding;

SmallVector<Positions> sharedPositions(const Sharding &before, ArrayRef<int64_t> source, const Sharding &after,
                                       ArrayRef<int64_t> target, const Mesh &mesh) {
  SmallVector<Positions> dims;
  for (size_t dim = 0; dim < after.dims.size(); ++dim) {
    Positions &positions = dims.emplace_back();
    for (int64_t to = 0, box = dist::boxSize(after.dims[dim], mesh); to < box; ++to) {
      int64_t global = dist::globalIndex(after.dims[dim], mesh, target.vec(), to);
      int64_t from = global < 0 ? -1 : dist::localIndex(before.dims[dim], mesh, source.vec(), global);
      if (from >= 0) {
        positions.from.push_back(from);
        positions.to.push_back(to);
      }
    }
  }
  return dims;
}

void fillPadding(Tensor &tensor, const Sharding &sharding, const Mesh &mesh, ArrayRef<int64_t> coordinate,
                 ArrayRef<int64_t> dims, double real, int64_t whole) {
  ArrayRef<int64_t> shape = tensor.shape;
  for (int64_t dim : dims) {
    if (!dist::hasPadding(sharding.dims[dim], mesh))
      continue;
    int64_t outer = elementCount(shape.take_front(dim)), inner = elementCount(shape.drop_front(dim + 1));
    for (int64_t local = 0; local < shape[dim]; ++local) {
      if (dist::globalIndex(sharding.dims[dim], mesh, coordinate.vec(), local) >= 0)
        continue;
      for (int64_t i = 0; i < outer; ++i) {
        int64_t first = (i * shape[dim] + local) * inner;
        if (tensor.isFloat())
          std::fill_n(tensor.floats.begin() + first, inner, real);
        else
          std::fill_n(tensor.ints.begin() + first, inner, whole);
      }
    }
  }
}

bool hasPadding(const Sharding &sharding, const Mesh &mesh) {
  return llvm::any_of(sharding.dims, [&](const dist::DimSharding &dim) { return dist::hasPadding(dim, mesh); });
}

void poison(Tensor &tensor, const Sharding &sharding, const Mesh &mesh, ArrayRef<int64_t> coordinate) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(tensor.shape.size())));
  fillPadding(tensor, sharding, mesh, coordinate, dims, NAN, wrapTo(tensor.dtype, 0x7eadbeefdeadbeef));
}

MeshGroups::MeshGroups(const Mesh &mesh, ArrayRef<std::string> axes) {
  std::vector<plan::Axis> all;
  for (const Mesh::Axis &axis : mesh.axes)
    all.push_back({axis.name, axis.size});
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    plan::GroupSeat seat = plan::seatOf(all, c, axes.vec());
    numbers.push_back(seat.group);
    members.resize(std::max(members.size(), size_t(seat.group) + 1));
    members[seat.group].resize(seat.size);
    members[seat.group][seat.position] = c;
  }
}

} // namespace hpc::interpreter

namespace hpc {

using namespace interpreter;

Tensor cutLocal(const Tensor &global, const dist::Sharding &sharding, const dist::Mesh &mesh,
                ArrayRef<int64_t> coordinate) {
  Tensor local(global.dtype, dist::boxShape(sharding, mesh));
  dist::Sharding whole = dist::replicated(global.shape);
  SmallVector<Positions> dims = sharedPositions(whole, coordinate, sharding, coordinate, mesh);
  forEachPosition(dims, stridesOf(global.shape), stridesOf(local.shape), [&](int64_t from, int64_t to) {
    if (global.isFloat())
      local.floats[to] = global.floats[from];
    else
      local.ints[to] = global.ints[from];
  });
  return local;
}

LocalTensors cutAll(const std::shared_ptr<const Tensor> &global, const Sharding &sharding, const Mesh &mesh) {
  std::vector<std::string> axes = dist::cutAxes(sharding);
  LocalTensors locals(mesh.numCoordinates());
  std::map<std::vector<int64_t>, std::shared_ptr<const Tensor>> boxes; // by the coordinates along the axes that cut
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    std::vector<int64_t> coordinate = mesh.coordinate(c), key;
    for (const std::string &axis : axes)
      key.push_back(mesh.index(axis) < 0 ? 0 : coordinate[mesh.index(axis)]);
    std::shared_ptr<const Tensor> &box = boxes[key];
    if (!box)
      box = axes.empty() ? global : std::make_shared<Tensor>(cutLocal(*global, sharding, mesh, coordinate));
    locals[c] = box;
  }
  return locals;
}

GlobalTensor gatherGlobal(const LocalTensors &locals, const dist::Sharding &sharding, const dist::Mesh &mesh) {
  GlobalTensor result;
  if (locals.size() == 1 && locals.front()->shape == dist::globalShape(sharding)) { // nobody else holds a part
    result.tensor = *locals.front();
    return result;
  }
  dist::Sharding whole = dist::replicated(dist::globalShape(sharding));
  Tensor &global = result.tensor = Tensor(locals.front()->dtype, dist::globalShape(sharding));
  std::vector<int32_t> owner(global.size(), -1);
  MeshGroups groups(mesh, sharding.partial);
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    ArrayRef<int64_t> terms = groups.of(c);
    if (terms.front() != c)
      continue; // summed with the first of its group
    Tensor sum;
    const Tensor *local = locals[c].get();
    if (terms.size() > 1) {
      sum = *local;
      for (int64_t term : llvm::drop_begin(terms)) {
        for (size_t i = 0; i < sum.floats.size(); ++i)
          sum.floats[i] += locals[term]->floats[i];
        for (size_t i = 0; i < sum.ints.size(); ++i)
          sum.ints[i] = int64_t(uint64_t(sum.ints[i]) + uint64_t(locals[term]->ints[i]));
      }
      local = &sum;
    }
    std::vector<int64_t> coordinate = mesh.coordinate(c);
    SmallVector<Positions> dims = sharedPositions(sharding, coordinate, whole, coordinate, mesh);
    forEachPosition(dims, stridesOf(local->shape), stridesOf(global.shape), [&](int64_t from, int64_t to) {
      if (owner[to] >= 0) {
        bool isSame = global.isFloat() ? global.floats[to] == local->floats[from] ||
                                             (std::isnan(global.floats[to]) && std::isnan(local->floats[from]))
                                       : global.ints[to] == local->ints[from];
        bool isFirst = !result.disagreement || to < result.disagreement->index;
        if (!isSame && isFirst)
          result.disagreement = {to, owner[to], c, global.number(to), local->number(from)};
        return;
      }
      owner[to] = int32_t(c);
      if (global.isFloat())
        global.floats[to] = local->floats[from];
      else
        global.ints[to] = local->ints[from];
    });
  }
  return result;
}

std::string coordinateText(const dist::Mesh &mesh, int64_t coordinate) {
  std::vector<int64_t> digits = mesh.coordinate(coordinate);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i)
    if (mesh.axes[i].size > 1)
      text += (text.empty() ? "" : ", ") + mesh.axes[i].name + "=" + std::to_string(digits[i]);
  return text.empty() ? "the only rank" : text;
}

} // namespace hpc
