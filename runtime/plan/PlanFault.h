// The error of a plan that cannot run.
#pragma once

#include "runtime/base/Status.h"

namespace hpc::plan {

inline Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

} // namespace hpc::plan
