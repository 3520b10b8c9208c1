// The `nn` dialect's ops and the few helpers shared by its families.
#pragma once

#include "compiler/Interfaces/Cost.h"
#include "compiler/Interfaces/Differentiable.h"
#include "compiler/Interfaces/DiscardableAttributes.h"
#include "compiler/Interfaces/LeadingDims.h"
#include "compiler/Interfaces/MixedPrecision.h"
#include "compiler/Interfaces/ShardingRule.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/MLIR.h"

namespace hpc::nn {

/// NumPy broadcast of the values' shapes; element type `elementType`, or that of the first value. No encoding. Null if
/// they do not broadcast.
RankedTensorType broadcastType(ValueRange values, Type elementType = {});
/// Result shape is the broadcast of the operands' shapes (C1); used by every elementwise op.
LogicalResult verifyElementwise(Operation *op);

/// attributesForMoreDims of an op along one `axis`, the attribute `name`: it moves up, unless it is dim 0.
std::optional<NamedAttrList> attributesWithLaterAxis(Operation *op, IntegerAttr axis, StringAttr name, int64_t more);
/// Of a division: floats are linear in the dividend; integers, which truncate, are not.
LinearClause linearInDividend(Operation *op);

inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }
inline ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

} // namespace hpc::nn

namespace hpc::nn {
struct Storage; // Parameter.h
}

#include "compiler/Dialect/NN/NNDialect.h.inc"
#include "compiler/Dialect/NN/NNEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/NN/NNAttributes.h.inc"
#define GET_OP_CLASSES
#include "compiler/Dialect/NN/NNOps.h.inc"
