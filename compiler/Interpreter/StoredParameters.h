// Parameters as they are stored, whatever a program makes of them: what weights in int8 do to results is told beside it.
#pragma once

#include "compiler/Interpreter/Interpreter.h"

namespace hpc {

/// As parametersFromFiles(); not for a program in which weights have become codes and scales.
ParameterLoader storedParametersFromFiles(const std::string &folder);

} // namespace hpc
