// The discardable attributes of the dialect.
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Interfaces/DiscardableAttributes.h"

namespace hpc::dist {

template <typename Attr> static bool isOfClass(Attribute attribute) { return isa<Attr>(attribute); }

static LogicalResult verifyAttribute(Operation *op, NamedAttribute attribute, unsigned place) {
  static const AttributeForm sharding{isOfClass<ShardingAttr>, "a sharding, as #dist.sharding<\"[4@tp, 6]\">"};
  static const AttributeForm mesh{isOfClass<MeshAttr>, "a mesh, as #dist.mesh<\"tp=2:tensor\">"};
  static const AttributeForm seed{[](Attribute attribute) {
    auto list = dyn_cast<ArrayAttr>(attribute);
    return isa<SeedAttr, ShardingAttr>(attribute) || (list && llvm::all_of(list, llvm::IsaPred<SeedAttr, ShardingAttr, UnitAttr>));
  }, "a seed, as #dist.seed<\"[4@dp, 33?]\">, or a list with one for each result"};
  static const AttributeForm oneSeed{[](Attribute attribute) { return isa<SeedAttr, ShardingAttr>(attribute); },
                                     "a seed, as #dist.seed<\"[4@dp, 33?]\">"};
  static const DiscardableAttribute table[] = {
      {meshAttrName, onModule, mesh},
      {seedAttrName, onOp | onArgument, seed},
      {readSeedAttrName, onOp, oneSeed},
      {factorsAttrName, onOp, sharding},
      {originAttrName, onOp, forms::textFields},
      {wholeOutputAttrName, onOp, forms::numbers},
      {wholeOutputForAttrName, onOp, forms::text},
  };
  return verifyDiscardable(op, attribute, place, table);
}

/// Every dim is one of the op's first result.
static LogicalResult verifyWholeOutput(Operation *op) {
  auto type = op->getNumResults() ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : RankedTensorType();
  for (int64_t dim : wholeOutputDims(op))
    if (!type || dim < 0 || dim >= type.getRank())
      return op->emitError() << "'" << wholeOutputAttrName << "' names dim " << dim << ", which the op's first result does not have";
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (failed(verifyAttribute(op, attribute, attributePlaceOf(op))))
    return failure();
  return attribute.getName() == wholeOutputAttrName ? verifyWholeOutput(op) : success();
}
LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return verifyAttribute(op, attribute, onArgument);
}
LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return verifyAttribute(op, attribute, onResult);
}

} // namespace hpc::dist
