// Definitions generated for the interface of differentiable ops.
#include "compiler/Interfaces/Differentiable.h"

#include "compiler/Interfaces/Differentiable.cpp.inc"
