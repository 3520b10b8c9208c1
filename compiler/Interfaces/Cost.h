// What an op costs: read by stage (balanced split) and, later, by search and recompute.
#pragma once

#include "compiler/MLIR.h"

#include "compiler/Interfaces/Cost.h.inc"
