// Ops that were taken away are kept as their attributes and types, which is all that a parameter is.
#include "compiler/Dialect/NN/StateNames.h"

namespace hpc::nn {

void noteUnread(ModuleOp module, ArrayRef<std::pair<DictionaryAttr, Type>> parameters) {
  if (parameters.empty())
    return;
  Builder builder(module.getContext());
  SmallVector<Attribute> noted;
  for (auto [attributes, type] : parameters)
    noted.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("attributes", attributes), builder.getNamedAttr("type", TypeAttr::get(type))}));
  module->setAttr(unreadAttrName, builder.getArrayAttr(noted));
}

void eachUnread(ModuleOp module, llvm::function_ref<void(ParameterOp)> visit) {
  auto noted = module->getAttrOfType<ArrayAttr>(unreadAttrName);
  for (Attribute each : noted ? noted.getValue() : ArrayRef<Attribute>()) {
    auto parameter = dyn_cast<DictionaryAttr>(each);
    auto attributes = parameter ? parameter.getAs<DictionaryAttr>("attributes") : DictionaryAttr();
    auto type = parameter ? parameter.getAs<TypeAttr>("type") : TypeAttr();
    if (!attributes || !type || !isa<RankedTensorType>(type.getValue()) || !attributes.getAs<StringAttr>("name"))
      continue; // people edit dumped phases
    OperationState state(module.getLoc(), ParameterOp::getOperationName());
    state.addAttributes(attributes.getValue());
    state.addTypes(type.getValue());
    Operation *op = Operation::create(state);
    visit(cast<ParameterOp>(op));
    op->destroy();
  }
}

} // namespace hpc::nn
