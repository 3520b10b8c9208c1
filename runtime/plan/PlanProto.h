// Between the plan's structs and the messages of plan.proto, field by field. Decoding refuses only what the structs
// cannot say (unknown enum values, an empty instruction); whether a number makes sense is for PlanStructure.h.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc::plan {

namespace proto {
class Plan;
}

void encode(const Plan &plan, proto::Plan &message);
/// Takes the inline tensors and the machine code out of the message.
Expected<Plan> decode(proto::Plan &message);

} // namespace hpc::plan
