// Elements of local boxes by their global index: what a coordinate holds, where it lies, what is padding.
// Private to compiler/Interpreter; all layouts come from the algebra of Sharding.h.
#pragma once

#include "compiler/Interpreter/Interpreter.h"

namespace hpc::interpreter {

/// For one dim, positions in a source and where they go.
struct Positions {
  std::vector<int64_t> from, to;
};

/// Calls visit(from, to) with row-major indices for every combination of the dims' positions.
template <typename Visit>
void forEachPosition(ArrayRef<Positions> dims, ArrayRef<int64_t> fromStrides, ArrayRef<int64_t> toStrides, Visit visit,
                     int64_t from = 0, int64_t to = 0) {
  if (dims.empty())
    return visit(from, to);
  const Positions &dim = dims.front();
  for (size_t i = 0; i < dim.from.size(); ++i) {
    int64_t nextFrom = from + dim.from[i] * fromStrides.front(), nextTo = to + dim.to[i] * toStrides.front();
    if (dims.size() == 1)
      visit(nextFrom, nextTo);
    else
      forEachPosition(dims.drop_front(), fromStrides.drop_front(), toStrides.drop_front(), visit, nextFrom, nextTo);
  }
}

/// From the box of `source` under `before` to the box of `target` under `after`: the elements that both hold.
SmallVector<Positions> sharedPositions(const dist::Sharding &before, ArrayRef<int64_t> source,
                                       const dist::Sharding &after, ArrayRef<int64_t> target, const dist::Mesh &mesh);

/// Overwrites the padding of the listed dims.
void fillPadding(Tensor &tensor, const dist::Sharding &sharding, const dist::Mesh &mesh, ArrayRef<int64_t> coordinate,
                 ArrayRef<int64_t> dims, double real, int64_t whole);
/// Overwrites all padding with what no op may depend on: NaN, or a large odd number.
void poison(Tensor &tensor, const dist::Sharding &sharding, const dist::Mesh &mesh, ArrayRef<int64_t> coordinate);
bool hasPadding(const dist::Sharding &sharding, const dist::Mesh &mesh);

/// Who exchanges data with whom over some axes of a mesh, as runtime/plan/Groups says it of ranks.
class MeshGroups {
public:
  MeshGroups(const dist::Mesh &mesh, ArrayRef<std::string> axes);
  /// The coordinates that differ from `coordinate` along the axes alone, itself included, by their positions.
  ArrayRef<int64_t> of(int64_t coordinate) const { return members[numbers[coordinate]]; }

private:
  std::vector<int64_t> numbers; ///< coordinate -> group
  std::vector<SmallVector<int64_t>> members;
};

/// One of the collectives, fill_tail or offset on all coordinates; padding of the result is not touched.
Expected<std::vector<std::shared_ptr<Tensor>>> runCollective(Operation *op, const LocalTensors &operand,
                                                             const dist::Mesh &mesh);

} // namespace hpc::interpreter
