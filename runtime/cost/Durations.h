// How long each instruction of a plan takes on a machine: the clock of its simulation (Predict.h).
#pragma once

#include "runtime/cost/Machine.h"
#include "runtime/plan/InstructionRun.h"

namespace hpc::cost {

/// An instruction that computes takes its launch, and beside that the longer of its operations and its bytes. Products have the efficiency of their
/// smallest extent, kernels the speed of elements. All else on a rank takes its bytes; collectives and messages what CollectiveTime.h
/// gives; Recv and Wait nothing. Seconds are those of a rank that has its processors for itself: the simulation shares them (Predict.h).
/// `machine` is copied. Not for several threads at a time.
plan::Durations durationsOf(const Machine &machine);

} // namespace hpc::cost
