// Definitions generated for the leading-dims interface.
#include "compiler/Interfaces/LeadingDims.h"

#include "compiler/Interfaces/LeadingDims.cpp.inc"
