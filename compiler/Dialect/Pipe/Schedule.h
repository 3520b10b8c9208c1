// The schedule of a staged function: the attribute `pipe.schedule` of @main, one string a stage in the text form of
// runtime/plan/Schedule.h, and what such a schedule must run, read off the programs and transfers.
#pragma once

#include "compiler/Dialect/Pipe/Pipe.h"
#include "runtime/plan/Pipeline.h"

namespace hpc::pipe {

constexpr const char *scheduleAttrName = "pipe.schedule";

inline plan::ProgramKind planKind(ProgramKind kind) { return plan::ProgramKind(kind); }

/// The programs of a staged function and what each reads of another. Updates follow all else of their stage; the rounds
/// of one are one program.
plan::Pipeline pipelineOf(func::FuncOp function, int64_t microBatches);

void writeSchedule(func::FuncOp function, const plan::PipelineSchedule &schedule);
/// Errors: the attribute is missing or does not parse. What it says is for plan::checkSchedule to judge.
Expected<plan::PipelineSchedule> readSchedule(func::FuncOp function);

} // namespace hpc::pipe
