// How much code pulling a region's results makes: every value once per index at which it is read. Views that meet again
// (y + shift(y), layer upon layer) double the indices while the number of ops only grows, so ops alone bound nothing.
#pragma once

#include "compiler/Dialect/NN/NN.h"

#include <map>

namespace hpc::kernels {

class PulledWork {
public:
  /// `isInside`: the ops to pull through; all other values are read from memory.
  explicit PulledWork(std::function<bool(Operation *)> isInside) : isInside(std::move(isInside)) {}

  /// Adds the code that pulling every element of `result` needs, in a loop nest over `root`. False if it is too much:
  /// more elements of code than `maxElements`, or an expensive op computed at two indices of one loop.
  bool pull(Value result, ArrayRef<int64_t> root);

  /// Bounds the time to compile one kernel.
  static constexpr size_t maxElements = 384;

private:
  /// An index, as the way from the root's: through which op and operand, or by broadcasting from which shape.
  struct Step {
    int from;
    Operation *through;
    unsigned operand;
    std::vector<int64_t> broadcastTo;
    bool operator<(const Step &other) const {
      return std::tie(from, through, operand, broadcastTo) <
             std::tie(other.from, other.through, other.operand, other.broadcastTo);
    }
  };
  struct Read {
    Value value;
    int index;
  };
  int indexOf(const Step &step, bool isLoop);
  int indexOf(OpOperand &operand, int index);

  std::function<bool(Operation *)> isInside;
  std::map<Step, int> indices;
  std::vector<int> loopOfIndex = {0}; ///< the reduction whose loop an index runs in; the root's index is 0
  int numLoops = 1;
  DenseSet<std::pair<Value, int>> seen;
  DenseMap<std::pair<Operation *, int>, int> expensive; ///< (op, loop) to the index that it is computed at
};

} // namespace hpc::kernels
