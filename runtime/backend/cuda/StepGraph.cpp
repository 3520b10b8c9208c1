// Capture concerns this thread alone: other ranks' threads may meanwhile make calls that a capture forbids.
#include "runtime/backend/cuda/StepGraph.h"

namespace hpc::cuda {

namespace {

Status explained(const Status &status) {
  return status.ok() ? status
                     : Status::error(status.kind(), status.message() + "; --no-cuda-graph does without a graph");
}

} // namespace

Expected<bool> StepGraph::begin() {
  if (isOff)
    return false;
  if (captured) {
    state = Replaying;
    return true;
  }
  if (steps < ordinarySteps) {
    ++steps;
    return false;
  }
  HPC_RETURN_IF_ERROR(
      explained(check(driver, driver.beginCapture(stream, captureThreadLocal), "capturing the step as a CUDA graph")));
  state = Capturing;
  return false;
}

Status StepGraph::launch() {
  if (state == Idle)
    return Status::success();
  if (state == Capturing) {
    state = Idle;
    GraphHandle graph = nullptr;
    HPC_RETURN_IF_ERROR(
        explained(check(driver, driver.endCapture(stream, &graph), "capturing the step as a CUDA graph")));
    Graph owned(driver, graph);
    GraphRunHandle run = nullptr;
    HPC_RETURN_IF_ERROR(
        explained(check(driver, driver.instantiateGraph(&run, graph, 0), "preparing the step's CUDA graph")));
    captured = GraphRun(driver, run);
  }
  state = Idle;
  return check(driver, driver.launchGraph(captured.get(), stream), "starting the step's CUDA graph");
}

void StepGraph::abandon() {
  if (state == Capturing) {
    GraphHandle graph = nullptr;
    driver.endCapture(stream, &graph); // returns an error for the incomplete capture, which does not matter
    Graph owned(driver, graph);
  }
  state = Idle;
}

void StepGraph::forget(bool forEver) {
  captured = GraphRun();
  steps = 0;
  isOff |= forEver;
}

} // namespace hpc::cuda
