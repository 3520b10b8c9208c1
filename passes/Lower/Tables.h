// What differs between ranks and micro-batches, as the plan's tables. The mesh axis of role time is the micro-batch; all
// others, in the mesh's order, are the coordinate within a stage.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "runtime/plan/Plan.h"

#include <functional>

namespace hpc {

class Tables {
public:
  explicit Tables(dist::Mesh mesh);

  const dist::Mesh &mesh() const { return fullMesh; }
  /// The plan's axes: all but mb.
  const std::vector<plan::Axis> &axes() const { return rankAxes; }
  int64_t ranksPerStage() const { return ranks; }
  int64_t microBatches() const { return batches; }

  using Function = std::function<int64_t(const std::vector<int64_t> &at)>;
  /// Tabulates a function of the full mesh coordinate, in as few entries as hold it. It depends on the axes `along` alone:
  /// it is asked once for each of their coordinates, with 0 for all other axes.
  plan::ByCoord table(const std::vector<std::string> &along, const Function &function) const;
  /// The part of a global tensor that each coordinate holds.
  plan::Slice slice(const dist::Sharding &sharding) const;
  /// 1 where the coordinate is the one that speaks for its replicas: 0 along every axis that does not cut the value.
  /// With `atEnd` it is the last micro-batch that speaks, as a sum over them is whole there only.
  plan::ByCoord owner(const dist::Sharding &sharding, bool atEnd = false) const;
  /// The position in the group of the rank that a permute takes a box from (dist::permuteSource).
  plan::ByCoord permuteSource(const dist::ReshardStep &step) const;
  plan::ByCoord permuteSource(dist::RawPermuteOp op) const;

private:
  std::vector<std::string> allAxes() const;

  dist::Mesh fullMesh, rankMesh;
  std::vector<plan::Axis> rankAxes;
  int64_t ranks = 1, batches = 1;
};

} // namespace hpc
