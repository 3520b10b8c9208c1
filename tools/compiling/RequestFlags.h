// The flags that shape a plan, as hpc-opt and hpc-train both have them, as a request of the driver.
#pragma once

#include "passes/Driver/Compilation.h"
#include "tools/flags/Arguments.h"

namespace hpc {

/// `trains`: the step of training too. Flags that a tool does not have are left as they are.
Status readRequest(const Arguments &arguments, bool trains, CompileRequest &request);

} // namespace hpc
