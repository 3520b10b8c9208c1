// Ops whose first dim can become several: what hpc-raise-linear asks an op before it moves a reshape past it.
#pragma once

#include "compiler/MLIR.h"

#include "compiler/Interfaces/LeadingDims.h.inc"
