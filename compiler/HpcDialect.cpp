// The table, and what an op may have noted of its global form.
#include "compiler/HpcDialect.h"

#include "compiler/Accumulations.h"
#include "compiler/BlockMark.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/DefaultInputs.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/Interfaces/DiscardableAttributes.h"
#include "compiler/Location.h"
#include "compiler/Masks.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/ModuleMachine.h"

MLIR_DEFINE_EXPLICIT_TYPE_ID(hpc::HpcDialect)

namespace hpc {

HpcDialect::HpcDialect(MLIRContext *context) : Dialect(getDialectNamespace(), context, TypeID::get<HpcDialect>()) {}

static LogicalResult verifyAttribute(Operation *op, NamedAttribute attribute, unsigned place) {
  static const DiscardableAttribute table[] = {
      {addsInProductAttrName, onOp, forms::flag},
      {argumentLocationsAttrName, onModule | onFunction | onOp, forms::locations},
      {blockAttrName, onOp, forms::number},
      {codeAttrName, onModule, forms::bytes},
      {codeFeaturesAttrName, onModule, forms::texts},
      {deviceCodeAttrName, onModule, forms::text},
      {globalAttrsName, onOp, forms::fields},
      {hadLocationsAttrName, onModule, forms::flag},
      {implicitAttrName, onOp, forms::flag},
      {kernelNameAttrName, onOp, forms::text},
      {"hpc.kernel_prefix", onModule, forms::text}, // kernels::kernelPrefixAttrName
      {keptBytesAttrName, onModule, forms::numbers},
      {locationAttrName, onModule | onFunction | onOp, forms::location},
      {lossAttrName, onModule, forms::text},
      {movedIdAttrName, onOp, forms::number},
      {nn::defaultInputsAttrName, onModule, forms::texts},
      {optionsAttrName, onModule, forms::any},
      {phaseAttrName, onModule, forms::any},
      {sidecarAttrName, onModule, forms::any},
      {sidecarPlacesAttrName, onModule, forms::fields},
      {sidecarTensorsAttrName, onModule, forms::fields},
      {sourceAttrName, onModule, forms::any},
      {targetAttrName, onModule, forms::text},
      {valueIdAttrName, onOp, forms::number},
      {windowAttrName, onOp, forms::number},
  };
  return verifyDiscardable(op, attribute, place, table);
}

/// Each is an attribute of the op, of the form that it has otherwise: localize derives the op from both.
static LogicalResult verifyGlobalAttributes(Operation *op, DictionaryAttr global) {
  for (NamedAttribute noted : global) {
    std::optional<Attribute> own = op->getInherentAttr(noted.getName());
    if (!own && noted.getName().strref().contains('.'))
      continue; // of a dialect, which the local op may lack
    auto sizes = own ? dyn_cast_or_null<DenseI64ArrayAttr>(*own) : DenseI64ArrayAttr();
    auto notedSizes = dyn_cast<DenseI64ArrayAttr>(noted.getValue());
    bool isAlike = own && (!*own || ((*own).getTypeID() == noted.getValue().getTypeID() && (!sizes || sizes.size() == notedSizes.size())));
    if (!isAlike)
      return op->emitError() << "'" << globalAttrsName << "' has to hold attributes that " << op->getName() << " has, of the same form, and has "
                             << noted.getName() << " = " << noted.getValue();
  }
  return success();
}

LogicalResult HpcDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (failed(verifyAttribute(op, attribute, attributePlaceOf(op))))
    return failure();
  if (attribute.getName() == optionsAttrName && failed(verifyMachine(op, attribute.getValue())))
    return failure();
  return attribute.getName() == globalAttrsName ? verifyGlobalAttributes(op, cast<DictionaryAttr>(attribute.getValue())) : success();
}
LogicalResult HpcDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return verifyAttribute(op, attribute, onArgument);
}
LogicalResult HpcDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return verifyAttribute(op, attribute, onResult);
}

} // namespace hpc
