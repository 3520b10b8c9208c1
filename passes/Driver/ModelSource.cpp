// The attribute is read from files that people edit, so nothing of it is taken for granted.
#include "passes/Driver/ModelSource.h"

#include "compiler/ModuleAttributes.h"

namespace hpc {

void ModelSource::write(ModuleOp module) const {
  Builder builder(module.getContext());
  NamedAttrList sizes, source;
  for (const auto &[name, size] : dims)
    sizes.set(name, builder.getI64IntegerAttr(size));
  source.set("file", builder.getStringAttr(file));
  source.set("dims", sizes.getDictionary(module.getContext()));
  if (inference)
    source.set("inference", builder.getUnitAttr());
  if (dropout)
    source.set("dropout", builder.getF64FloatAttr(*dropout));
  NamedAttrList bound;
  for (const auto &[name, file] : constants)
    bound.set(name, builder.getStringAttr(file));
  if (!constants.empty())
    source.set("constants", bound.getDictionary(module.getContext()));
  module->setAttr(sourceAttrName, source.getDictionary(module.getContext()));
}

Expected<std::optional<ModelSource>> ModelSource::read(ModuleOp module) {
  Attribute attribute = module->getAttr(sourceAttrName);
  if (!attribute)
    return std::optional<ModelSource>();
  Status damaged = Status::error(
      ErrorKind::Model, std::string(sourceAttrName) +
                            " is not of the form {dims = {name = N : i64, ...}, file = \"model.onnx\"}; leave the "
                            "attribute as hpc-opt --dump-phases wrote it");
  auto dictionary = dyn_cast<DictionaryAttr>(attribute);
  auto file = dictionary ? dictionary.getAs<StringAttr>("file") : StringAttr();
  auto dims = dictionary ? dictionary.getAs<DictionaryAttr>("dims") : DictionaryAttr();
  if (!file || !dims)
    return damaged;
  ModelSource source{file.str(), {}, dictionary.contains("inference"), {}, {}};
  if (auto rate = dictionary.getAs<FloatAttr>("dropout"))
    source.dropout = rate.getValueAsDouble();
  if (source.dropout && !(*source.dropout >= 0 && *source.dropout < 1))
    return damaged;
  auto constants = dictionary.getAs<DictionaryAttr>("constants");
  if (dictionary.size() != 2u + source.inference + source.dropout.has_value() + bool(constants))
    return damaged;
  for (NamedAttribute constant : constants ? constants.getValue() : ArrayRef<NamedAttribute>()) {
    auto path = dyn_cast<StringAttr>(constant.getValue());
    if (!path)
      return damaged;
    source.constants[constant.getName().str()] = path.str();
  }
  for (NamedAttribute dim : dims) {
    auto size = dyn_cast<IntegerAttr>(dim.getValue());
    if (!size || !size.getType().isInteger(64) || size.getInt() < 0)
      return damaged;
    source.dims[dim.getName().str()] = size.getInt();
  }
  return std::optional<ModelSource>(std::move(source));
}

} // namespace hpc
