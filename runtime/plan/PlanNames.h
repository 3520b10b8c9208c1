// How places in a plan are called in messages and print-outs. Every error of a check starts with one of these.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>

namespace hpc::plan {

const char *name(Lifetime lifetime); ///< "session", "step", "micro-batch", "program"
const char *name(ArenaKind arena);   ///< "session", "work", "host"
const char *name(ProgramKind kind);  ///< "forward", "receive gradient", ...
const char *name(EpilogueKind kind); ///< "bias", "bias and relu", "bias and gelu"
const char *name(AttentionKind kind);
const char *name(Int8Form form); ///< "codes", "scales", "values"
const char *name(CollectiveKind kind);
/// "gemm", "kernel", "all_reduce", "send", ...
const char *actionName(const Action &action);

/// "forward", and "forward 2" of chunk 2
std::string programText(const Program &program);
/// "coordinate 1 (dp=0, tp=1)"
std::string coordinateText(const Plan &plan, int64_t coordinate);
/// "rank 3 (stage 1, coordinate 1 (tp=1))"
std::string rankText(const Plan &plan, int64_t rank);
/// "stage 1, program forward, instruction 3 (gemm, node /h.0/mlp/c_fc)"
std::string instructionText(const Plan &plan, int64_t stage, int64_t program, int64_t instruction);
/// "schedule step 2 (forward, micro-batch 1)"
std::string stepText(const Stage &stage, int64_t step);
/// "buffer 4 'h0'"
std::string bufferText(const Stage &stage, int64_t buffer);
/// "[4, 33]"
std::string shapeText(const std::vector<int64_t> &sizes);

} // namespace hpc::plan
