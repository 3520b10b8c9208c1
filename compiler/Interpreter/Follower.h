// A run that goes beside another one: what the other one has is compared with what the run makes of the other's operands, and then
// taken over. So each value is judged by the few ops between what was compared before and itself, never by how errors grow over a program.
#pragma once

#include "compiler/Interpreter/LocalBounds.h"

namespace hpc {

class Follower {
public:
  /// Compares the tensors of a value, by coordinate, within their bounds (null: exactly) and puts the other run's tensors in the
  /// place of those that it has. Bounds are null from then on where tensors were replaced.
  using Judge = std::function<Status(Value value, LocalTensors &tensors, const LocalTensors &bounds)>;

  /// `doublePrecision`: of both runs.
  Follower(const dist::Mesh &mesh, bool doublePrecision, Judge judge)
      : mesh(mesh), doublePrecision(doublePrecision), judge(std::move(judge)) {}

  /// RunOptions::follow.
  Status follow(Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results);

  /// By coordinate, or empty: of what was not compared.
  LocalTensors boundsOf(Value value) const;
  /// The largest bound of all elements at all coordinates.
  double largestBound(Value value) const;

private:
  Expected<std::vector<LocalTensors>> boundsAfter(Operation *op, ArrayRef<LocalTensors> operands, ArrayRef<LocalTensors> results);
  Expected<LocalTensors> boundsOfCollective(Operation *op, const LocalTensors &operand, const LocalTensors &result);

  const dist::Mesh mesh;
  const bool doublePrecision;
  const Judge judge;
  struct Kept {
    LocalTensors bounds;
    int64_t usesLeft = 0;
  };
  DenseMap<Value, Kept> kept; ///< of values that were not compared, until their last use
};

} // namespace hpc
