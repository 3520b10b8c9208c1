// The bytes that a run of the interpreter holds at its peak, by the order in which Run.cpp defines and frees values.
#include "compiler/Interpreter/Interpreter.h"

namespace hpc {

namespace {

/// An element is a double or an int64_t.
constexpr int64_t elementBytes = 8;

class PeakMemory {
public:
  explicit PeakMemory(const dist::Mesh *mesh) : mesh(mesh) {}

  int64_t of(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments())
      define(argument, bytesOf(argument));
    visit(function.getBody().front());
    return peak;
  }

private:
  /// All coordinates' tensors of a value that an op computes.
  int64_t bytesOf(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getNumElements() * elementBytes * (mesh ? mesh->numCoordinates() : 1);
  }
  /// Coordinates that hold the same part of a parameter share it.
  int64_t bytesOfParameter(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t parts = 1;
    if (dist::ShardingAttr sharding = dist::shardingAttrOf(value); mesh && sharding)
      for (const std::string &axis : dist::cutAxes(sharding.getValue()))
        parts *= mesh->size(axis);
    return type.getNumElements() * elementBytes * parts;
  }

  void define(Value value, int64_t bytes) {
    held += bytes;
    peak = std::max(peak, held);
    int64_t uses = std::distance(value.use_begin(), value.use_end());
    if (uses)
      live[value] = {bytes, uses};
    else
      held -= bytes;
  }

  void visit(Block &block) {
    for (Operation &op : block) {
      if (isa<nn::ParameterOp>(op))
        continue; // at its first use
      for (Value operand : op.getOperands())
        if (auto parameter = operand.getDefiningOp<nn::ParameterOp>(); parameter && !live.contains(operand)) {
          // The stored tensor is read as a whole, then cut.
          auto type = cast<RankedTensorType>(operand.getType());
          int64_t stored = mesh ? dist::globalType(type).getNumElements() * elementBytes : 0;
          held += stored;
          define(operand, bytesOfParameter(operand));
          held -= stored;
        }
      for (Region &region : op.getRegions()) {
        for (BlockArgument argument : region.getArguments())
          define(argument, 0); // shares its operand's tensors
        visit(region.front());
      }
      for (Value result : op.getResults())
        define(result, bytesOf(result));
      for (Value operand : op.getOperands())
        if (auto found = live.find(operand); found != live.end() && --found->second.usesLeft == 0) {
          held -= found->second.bytes;
          live.erase(found);
        }
    }
  }

  struct Live {
    int64_t bytes, usesLeft;
  };
  const dist::Mesh *mesh;
  DenseMap<Value, Live> live;
  int64_t held = 0, peak = 0;
};

} // namespace

int64_t peakBytesOfRun(func::FuncOp function, const dist::Mesh *mesh) { return PeakMemory(mesh).of(function); }

} // namespace hpc
