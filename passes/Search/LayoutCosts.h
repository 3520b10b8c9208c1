// Seconds of what layouts differ in: computing the local part of an op, and the collectives of a reshard. Reshards are those that
// hpc-insert-reshards makes: the same steps, shared by readers, and slices of one another where that is free.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/MLIR.h"
#include "runtime/cost/CollectiveTime.h"
#include "runtime/cost/Machine.h"

#include <map>

namespace hpc::search {

/// Collectives that a layout makes, for reports and tests.
struct LayoutCollective {
  dist::ReshardStep::Kind kind;
  dist::AxisNames axes;
  int64_t bytes = 0; ///< of the whole that one rank has before or after it (plan::payloadBytes)
  int64_t times = 1; ///< in a step
  bool operator==(const LayoutCollective &other) const {
    return kind == other.kind && axes == other.axes && bytes == other.bytes && times == other.times;
  }
};

class LayoutCosts {
public:
  /// Both are copied.
  LayoutCosts(dist::Mesh mesh, cost::Machine machine);

  const dist::Mesh &mesh() const { return axes; }

  /// Equal shardings have the same number.
  using Number = int;
  Number number(const dist::Sharding &sharding);
  const dist::Sharding &sharding(Number number) const { return shardings[size_t(number)]; }

  struct Move {
    double seconds = 0; ///< `impossible` where no steps lead there
    bool isFree = true; ///< nothing is sent
    std::vector<LayoutCollective> collectives;
  };
  const Move &move(Number from, Number to, int64_t elementBytes);
  /// The moves by which a value becomes all of `forms`, of which each may be a slice of another one; in order.
  std::vector<const Move *> movesOf(Number has, const std::vector<Number> &forms, int64_t elementBytes);

  /// Seconds in which the device's memory takes or gives so many bytes.
  double touching(double bytes) const { return bytes / machine.bytesPerSecond; }
  /// Seconds of the op's local part, in all its runs of a step.
  double compute(Operation *op, const dist::OpSharding &sharding);
  /// The all-reduce by which an op combines a maximum and the like over a cut factor, in all its runs of a step.
  Move atOnce(Operation *op, const dist::OpSharding &sharding);
  /// The collectives inside of a composite that is cut along a row which it reduces, and those of `atOnce`.
  Move inside(Operation *op, const dist::OpSharding &sharding);

private:
  const Move &ofDefinition(Operation *op, const dist::OpSharding &sharding);
  int64_t timesOf(const dist::Sharding &sharding) const;
  double collectiveSeconds(const LayoutCollective &collective);
  int64_t payload(const dist::ReshardStep &step) const;
  int64_t localElements(const dist::Sharding &sharding) const;

  dist::Mesh axes;
  cost::Machine machine;
  std::vector<plan::Axis> ranks; ///< the axes of ranks
  std::map<std::string, Number> numbers;
  std::vector<dist::Sharding> shardings;
  std::map<std::tuple<Number, Number, int64_t>, Move> moves;
  std::map<std::vector<std::string>, cost::GroupShape> shapes;
  std::map<std::string, Move> insides;
};

} // namespace hpc::search
