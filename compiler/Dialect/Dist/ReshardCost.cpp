// Bytes that a reshard moves, by the textbook ring algorithms.
// Counted are boxes with their padding, since those are what collectives move.
#include "compiler/Dialect/Dist/Sharding.h"

#include "runtime/base/IntegerMath.h"

namespace hpc::dist {

static int64_t elements(const Sharding &sharding, const Mesh &mesh) {
  int64_t number = 1;
  for (int64_t size : boxShape(sharding, mesh))
    number *= size;
  return number;
}

static int64_t elementsReceived(const ReshardStep &step, const Mesh &mesh) {
  int64_t before = elements(step.before, mesh), after = elements(step.after, mesh);
  int64_t k = 1;
  for (const std::string &axis : step.axes)
    k *= mesh.size(axis);
  switch (step.kind) {
  case ReshardStep::Slice:
  case ReshardStep::Accumulate:
    return 0;
  case ReshardStep::Permute:
    return after;
  case ReshardStep::AllToAll: {
    // From each other rank its part of `fromSub`, cut down to what is kept of `toSub`.
    Sharding chunk = step.before;
    chunk.dims[step.toDim][step.toSub] = step.after.dims[step.toDim][step.toSub];
    return (k - 1) * elements(chunk, mesh);
  }
  case ReshardStep::AllGather:
    return (k - 1) * before;
  case ReshardStep::ReduceScatter:
    return (k - 1) * after;
  case ReshardStep::AllReduce:
    return 2 * (k - 1) * ceilDiv(before, k);
  }
  return 0;
}

int64_t bytesMoved(const std::vector<ReshardStep> &steps, const Mesh &mesh, int64_t elementBytes) {
  int64_t bytes = 0;
  for (const ReshardStep &step : steps)
    bytes += elementsReceived(step, mesh) * elementBytes;
  return bytes;
}

} // namespace hpc::dist
