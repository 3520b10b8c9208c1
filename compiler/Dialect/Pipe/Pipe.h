// The `pipe` dialect: programs of stages, and transfers.
#pragma once

#include "compiler/Interfaces/DiscardableAttributes.h"
#include "compiler/MLIR.h"

#include "compiler/Dialect/Pipe/PipeDialect.h.inc"
#include "compiler/Dialect/Pipe/PipeEnums.h.inc"
#define GET_OP_CLASSES
#include "compiler/Dialect/Pipe/PipeOps.h.inc"
