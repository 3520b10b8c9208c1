// Registration of the dialect, its enums and attributes. What ODS generates for the ops is compiled in parts, each of
// which registers its own (NNOps.cpp.in).
#include "compiler/Dialect/NN/NN.h"

#include "compiler/Dialect/NN/NNDialect.cpp.inc"
#include "compiler/Dialect/NN/NNEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/NN/NNAttributes.cpp.inc"

namespace hpc::nn {

void NNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/Dialect/NN/NNAttributes.cpp.inc"
      >();
  registerNNDialectOperations(this);
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<DenseElementsAttr>(value);
  return elements ? ConstantOp::create(builder, loc, type, elements).getOperation() : nullptr;
}

} // namespace hpc::nn
