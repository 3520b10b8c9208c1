// Definitions generated for the cost interface.
#include "compiler/Interfaces/Cost.h"

#include "compiler/Interfaces/Cost.cpp.inc"
