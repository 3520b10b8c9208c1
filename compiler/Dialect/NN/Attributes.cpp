// The discardable attributes of the dialect: ports of @main, and parameters that a step does not read.
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Dialect/NN/RoundedTerms.h"
#include "compiler/Interfaces/DiscardableAttributes.h"

namespace hpc::nn {

static LogicalResult verifyAttribute(Operation *op, NamedAttribute attribute, unsigned place) {
  static const DiscardableAttribute table[] = {
      {ports::name, onArgument | onResult, forms::text},
      {ports::dims, onArgument, forms::texts},
      {ports::state, onArgument, forms::text},
      {ports::initial, onArgument, forms::real},
      {ports::stepScalar, onArgument, forms::text},
      {ports::defaultInput, onArgument, forms::text},
      {ports::wholeOf, onArgument, forms::text},
      {ports::lookups, onArgument, forms::list},
      {ports::largest, onArgument, forms::number},
      {ports::writes, onResult, forms::text},
      {ports::gradient, onResult, forms::text},
      {roundsTermsAttrName, onOp, forms::flag},
      {unreadAttrName, onModule, forms::list},
  };
  return verifyDiscardable(op, attribute, place, table);
}

LogicalResult NNDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (failed(verifyAttribute(op, attribute, attributePlaceOf(op))))
    return failure();
  return attribute.getName() == unreadAttrName ? verifyUnread(cast<ModuleOp>(op)) : success();
}
LogicalResult NNDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  if (failed(verifyAttribute(op, attribute, onArgument)))
    return failure();
  return attribute.getName() == ports::lookups ? verifyLookups(cast<func::FuncOp>(op), index) : success();
}
LogicalResult NNDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return verifyAttribute(op, attribute, onResult);
}

} // namespace hpc::nn
