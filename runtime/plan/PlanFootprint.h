// What a plan's messages weigh in memory.
#pragma once

#include "runtime/base/Footprint.h"

namespace hpc::plan {

/// Of a proto::Plan.
extern const FootprintMessage planFootprint;

} // namespace hpc::plan
