// The step of a rank as a CUDA graph: after two steps, in which objects are created at their first use, one is
// captured, and from then on the host only does loads, stores and one launch. A captured step has exactly the calls of
// an ordinary one, so everything that may differ between steps is in memory, not in arguments.
#pragma once

#include "runtime/backend/cuda/Gpu.h"

namespace hpc::cuda {

class StepGraph {
public:
  /// `stream` is the one that all others of the rank branch off from and come back to within a step.
  StepGraph(const Driver &driver, StreamHandle stream) : driver(driver), stream(stream) {}

  /// Whether this step is replayed. If not, it may be captured from here on.
  Expected<bool> begin();
  /// Launches the captured or replayed step.
  Status launch();
  /// Ends a capture that will not be finished. On the thread that began it.
  void abandon();
  /// The captured step is no longer valid, or can never be (`forEver`).
  void forget(bool forEver);

  bool isReplaying() const { return state == Replaying; }
  bool isCapturing() const { return state == Capturing; }

private:
  static constexpr int ordinarySteps = 2;
  enum { Idle, Capturing, Replaying } state = Idle;
  const Driver &driver;
  const StreamHandle stream;
  int steps = 0; ///< that were ordinary
  bool isOff = false;
  GraphRun captured;
};

} // namespace hpc::cuda
