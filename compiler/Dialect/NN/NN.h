// The `nn` dialect's ops and the few helpers shared by its families.
#pragma once

#include "compiler/Interfaces/Cost.h"
#include "compiler/Interfaces/ShardingRule.h"
#include "compiler/MLIR.h"

namespace hpc::nn {

/// NumPy broadcast of the values' shapes; element type `elementType`, or that of the first value. No encoding. Null if
/// they do not broadcast.
RankedTensorType broadcastType(ValueRange values, Type elementType = {});
/// Result shape is the broadcast of the operands' shapes (C1); used by every elementwise op.
LogicalResult verifyElementwise(Operation *op);

inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }
inline ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

} // namespace hpc::nn

#include "compiler/Dialect/NN/NNDialect.h.inc"
#include "compiler/Dialect/NN/NNEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/NN/NNAttributes.h.inc"
#define GET_OP_CLASSES
#include "compiler/Dialect/NN/NNOps.h.inc"
