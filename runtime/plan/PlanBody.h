// A plan and the bytes of plan.proto's message Plan, by the list of PlanFields.h. Reading refuses only what the structs
// cannot hold or memory should not; whether a number makes sense is for PlanStructure.h.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <string_view>

namespace hpc::plan {

/// One plan has one encoding: protobuf's own, with fields by number and absent where they are 0.
std::string encodePlan(const Plan &plan);

/// Errors of kind Plan name the field: "stages[0].programs[1].instructions[7].gemm.a.dtype: ...". Structs for more bytes than
/// `memory` are refused before they are made.
Expected<Plan> decodePlan(std::string_view bytes, int64_t memory);

} // namespace hpc::plan
