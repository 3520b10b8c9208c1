// The plan's own check: a plan that passes can run to its end on every rank, with no access outside a buffer, no two
// live buffers in one place, no deadlock, and every element of every output stored once. It executes nothing and needs
// no weights; what it cannot see is whether the arithmetic is right (hpc-opt --verify).
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/PlanFacts.h"

namespace hpc::plan {

/// All of the checks below, in this order, after checkStructure; of a plan with entries each of them, and checkSharedMemory.
/// Errors are of kind Plan and name entry, stage, coordinate, program, instruction, ONNX node, the value and what it should be.
Status checkPlan(const Plan &plan);

/// checkPlan, and what it found out on the way.
Expected<PlanFacts> analysePlan(const Plan &plan);

/// Every access of every instruction stays inside its buffer, at every coordinate; what an instruction writes overlaps
/// nothing else of it, but for a result in place (README.md, "Aliasing").
Status checkRanges(const Plan &plan);

/// No two buffers that live at once share memory. A Program buffer is written before it is read and lives from its
/// first to its last use in a program, one that is in flight until the Wait. Session buffers are bound once; a weight
/// that is not saved is never written; one that is packed is neither, and read by products alone, in one form.
Status checkMemory(const Plan &plan);

/// What checkMemory shows of Session buffers, over the programs of all entries: one that an entry packs, or shares with an
/// equal weight, is written by no other entry.
Status checkSharedMemory(const Plan &plan);

/// Over the coordinates of a stage, the slices of each stored or saved value cover it, and ranges of a view dim are
/// equal or disjoint.
Status checkWeights(const Plan &plan);

/// Each element of each output is stored by exactly one owner, over stages, coordinates and micro-batches.
Status checkOutputs(const Plan &plan);

/// Runs all ranks' streams of collectives, sends, receives and waits side by side, as rendezvous with no buffering:
/// kinds, groups, counts, bytes and order match, nobody waits for ever, each program meets the data of its own
/// micro-batch in its slot, what lives for a step is written before it is read, and nothing touches a buffer in flight.
/// A posted collective is taken to meet its group where it is posted (a backend may do it there), and to be in flight
/// until the Wait. Fills `timeline` where it is not null.
Status simulatePlan(const Plan &plan, Timeline *timeline);

} // namespace hpc::plan
