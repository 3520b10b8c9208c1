// --explain: a plan beside those of other layouts of as many ranks of tensor parallelism, each by its own counts.
#pragma once

#include "passes/Driver/Trial.h"
#include "runtime/plan/PlanSummary.h"

namespace hpc {

/// Most ops of a program for which --explain compares layouts unasked: each layout is a compilation without code.
constexpr int64_t comparedUnasked = 2500;

/// The table. `program` has been through phase precision and stays as it is; `own`: of the plan with `options`. "" where
/// there is no tensor parallelism.
std::string compareLayouts(ModuleOp program, const Options &options, const plan::PlanSummary &own);

} // namespace hpc
