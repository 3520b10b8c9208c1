// The output of hpc-run --backend=null --machine: what a step takes on a machine, and its timeline.
#pragma once

#include "runtime/core/Trace.h"
#include "runtime/cost/Predict.h"

#include <string>

namespace hpc {

/// Step, speed, MFU and bubble; seconds by rank, of the critical path and of transfers.
std::string describePrediction(const plan::Plan &plan, const cost::Machine &machine, const cost::Prediction &prediction);
/// The same for programs; docs/machines.md describes the keys.
std::string predictionJson(const plan::Plan &plan, const cost::Machine &machine, const cost::Prediction &prediction);

/// The timeline of the simulated ranks. Where it has more than `mostEvents`, each run of a program is one event.
Trace predictedTrace(const plan::Plan &plan, const std::vector<cost::ObservedRun> &runs, size_t mostEvents);

} // namespace hpc
