// Definitions generated for the mixed-precision interface.
#include "compiler/Interfaces/MixedPrecision.h"

#include "compiler/Interfaces/MixedPrecision.cpp.inc"
