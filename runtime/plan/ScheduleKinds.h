// The schedules that have a name. Each builder writes the order of the computing programs alone; addTransfers adds the
// receives and drains, the checker decides.
//
//   inference    F only
//   gpipe        all F, then all B (Huang et al. 2019). In flight: m
//   1f1b         at most p - s in flight in stage s (Narayanan et al. 2019, PipeDream-flush)
//   interleaved  the same with v > 1 chunks a stage: the bubble is v times smaller (Narayanan et al. 2021, section 2.2)
//   zb-h1        1f1b whose weight gradients W fill the end of the pipeline, at 1f1b's memory (Qi et al. 2023,
//   section 2.2)
// (p stages, m micro-batches.) Bubbles: (p-1)/(m+p-1) for gpipe and 1f1b, (p-1)/(vm+p-1) where p divides m for
// interleaved, (p-1)/(3m+p-1) for zb-h1 where m >= p and F, B, W cost the same.
#pragma once

#include "runtime/plan/Pipeline.h"

namespace hpc::plan {

enum class ScheduleKind : uint8_t { Inference, GPipe, OneForwardOneBackward, Interleaved, ZeroBubbleH1 };

std::string name(ScheduleKind kind);
/// Errors list the names.
Expected<ScheduleKind> parseScheduleKind(const std::string &name);

/// What the schedule runs: inferencePipeline, or trainingPipeline with or without programs W.
Pipeline pipelineOf(ScheduleKind kind, int64_t stages, int64_t chunks, int64_t microBatches);

/// The order of the computing programs. 1f1b and zb-h1 take one chunk a stage, interleaved more than one.
Expected<PipelineSchedule> makeSchedule(ScheduleKind kind, int64_t stages, int64_t chunks, int64_t microBatches);

/// Puts receives and drains into lists of computing programs, by one rule: a receive is posted one computation before
/// the one that waits for it, so that data arrives while that one runs; a drain stands before the computation that
/// comes 1 + d runs of the same program later, d being the number of parts that the data goes on by, and at the latest
/// before U. Receives from one stage are posted in the order in which it sends, the early ones earlier where that needs
/// it.
void addTransfers(const Pipeline &pipeline, PipelineSchedule &schedule);

} // namespace hpc::plan
