// Plans for people and for FileCheck: every line stands for one thing of the plan, in the plan's order, but for the
// tables of memory and communication (PlanTables.h); the same plan prints the same text.
#pragma once

#include "runtime/plan/PlanFacts.h"

#include <string>

namespace hpc::plan {

/// All of it: header, memory, stages with buffers, weights and programs, traffic, the schedule as a picture; programs, traffic
/// and schedule by entry where there are several. Needs a
/// plan that passed checkStructure; the picture is left out where the facts have no timeline.
std::string printPlan(const Plan &plan, const PlanFacts &facts);

/// The same facts as JSON, pretty-printed.
std::string printPlanJson(const Plan &plan, const PlanFacts &facts);

// Pieces.

/// "gemm b3[66, 40] = b1 * b2, m 66, n 40, k 24 | 16, ..."
std::string instructionLine(const Plan &plan, const Stage &stage, const Instruction &instruction);
/// What a slice holds, by coordinate: "rows 0..251 | 252..502 of 503 (box 252)", "whole", "dim 1 ... of view [40, 3, 5,
/// 8]".
std::string sliceText(const Plan &plan, const Slice &slice, const std::vector<int64_t> &shape);
/// "24 | 16": one value where all are equal, else by coordinate, shortened in the middle; micro-batches joined by " /
/// "; "24 | 16 + 8 * position" where it varies by step.
std::string tableText(const Plan &plan, const ByCoord &table);
/// One line a stage, one column a unit of time:
///   stage 0: F0 F1 .
///   stage 1: .  F0 F1
std::string timelinePicture(const Plan &plan, const Timeline &timeline);
/// "10560 bytes (10.3 KiB)"
std::string bytesText(int64_t bytes);

} // namespace hpc::plan
