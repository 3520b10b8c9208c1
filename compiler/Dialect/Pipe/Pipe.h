// The `pipe` dialect: stages and transfers.
#pragma once

#include "compiler/MLIR.h"

#include "compiler/Dialect/Pipe/PipeDialect.h.inc"
#define GET_OP_CLASSES
#include "compiler/Dialect/Pipe/PipeOps.h.inc"
