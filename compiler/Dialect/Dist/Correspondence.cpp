// The attributes' forms.
#include "compiler/Dialect/Dist/Correspondence.h"

namespace hpc {

static void setOrRemove(Operation *op, StringRef name, Attribute attr) {
  if (attr)
    op->setAttr(name, attr);
  else
    op->removeAttr(name);
}

ValueIds valueIdsOf(Operation *op) {
  auto read = [&](const char *name) -> std::optional<int64_t> {
    auto id = op ? op->getAttrOfType<IntegerAttr>(name) : IntegerAttr();
    return id ? std::optional(id.getInt()) : std::nullopt;
  };
  return {read(valueIdAttrName), read(movedIdAttrName)};
}

void setValueIds(Operation *op, const ValueIds &ids) {
  Builder builder(op->getContext());
  auto attr = [&](std::optional<int64_t> id) { return id ? builder.getI64IntegerAttr(*id) : IntegerAttr(); };
  setOrRemove(op, valueIdAttrName, attr(ids.made));
  setOrRemove(op, movedIdAttrName, attr(ids.moved));
}

void noteGlobalAttributes(Operation *global, Operation *local) {
  SmallVector<NamedAttribute> changed;
  for (NamedAttribute attr : global->getAttrs())
    if (local->getAttr(attr.getName()) != attr.getValue())
      changed.push_back(attr);
  setOrRemove(local, globalAttrsName,
              changed.empty() ? DictionaryAttr() : DictionaryAttr::get(local->getContext(), changed));
}

NamedAttrList globalAttributes(Operation *local) {
  NamedAttrList attrs(local->getAttrs());
  if (auto global = local->getAttrOfType<DictionaryAttr>(globalAttrsName)) {
    for (NamedAttribute attr : global)
      attrs.set(attr.getName(), attr.getValue());
    attrs.erase(globalAttrsName);
  }
  return attrs;
}

std::optional<dist::FactorShardings> factorsOf(Operation *op) {
  auto attr = op->getAttrOfType<dist::ShardingAttr>(factorsAttrName);
  return attr ? std::optional(attr.getValue().dims) : std::nullopt;
}

void setFactors(Operation *op, const dist::FactorShardings &factors) {
  op->setAttr(factorsAttrName, dist::ShardingAttr::get(op->getContext(), dist::Sharding{factors, {}}));
}

void removeFactors(Operation *op) { op->removeAttr(factorsAttrName); }

CutOrigins originsOf(Operation *op) {
  CutOrigins origins;
  if (auto attr = op ? op->getAttrOfType<DictionaryAttr>(originAttrName) : DictionaryAttr())
    for (NamedAttribute entry : attr)
      if (auto text = dyn_cast<StringAttr>(entry.getValue()))
        origins[entry.getName().str()] = text.str();
  return origins;
}

void setOrigins(Operation *op, const CutOrigins &origins) {
  Builder builder(op->getContext());
  SmallVector<NamedAttribute> entries;
  for (const auto &[axis, text] : origins)
    entries.push_back(builder.getNamedAttr(axis, builder.getStringAttr(text)));
  setOrRemove(op, originAttrName, entries.empty() ? DictionaryAttr() : builder.getDictionaryAttr(entries));
}

} // namespace hpc
