// Forms, and the messages about attributes that no pass could read.
#include "compiler/Interfaces/DiscardableAttributes.h"

#include "runtime/base/Nearest.h"

namespace hpc {

template <typename... Attrs> static bool isOfClass(Attribute attribute) { return isa<Attrs...>(attribute); }

namespace forms {
const AttributeForm any{[](Attribute) { return true; }, ""};
const AttributeForm flag{isOfClass<UnitAttr>, "nothing but its name"};
const AttributeForm text{isOfClass<StringAttr>, "a string"};
const AttributeForm number{[](Attribute attribute) {
  auto whole = dyn_cast<IntegerAttr>(attribute);
  return whole && whole.getType().isSignlessInteger(64);
}, "a whole number, as 3 : i64"};
const AttributeForm real{isOfClass<FloatAttr>, "a number, as 0.5 : f64"};
const AttributeForm numbers{isOfClass<DenseI64ArrayAttr>, "a list of whole numbers, as array<i64: 1, 2>"};
const AttributeForm fields{isOfClass<DictionaryAttr>, "a dictionary, as {field = 1 : i64}"};
const AttributeForm list{isOfClass<ArrayAttr>, "a list, as [..]"};
const AttributeForm texts{[](Attribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  return list && llvm::all_of(list, llvm::IsaPred<StringAttr>);
}, "a list of strings"};
const AttributeForm textFields{[](Attribute attribute) {
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  return fields && llvm::all_of(fields, [](NamedAttribute field) { return isa<StringAttr>(field.getValue()); });
}, "a dictionary of strings, as {tp = \"..\"}"};
const AttributeForm bytes{isOfClass<DenseElementsAttr>, "a tensor of bytes"};
const AttributeForm location{isOfClass<LocationAttr>, "a location, as loc(\"node\")"};
const AttributeForm locations{[](Attribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  return list && llvm::all_of(list, llvm::IsaPred<LocationAttr>);
}, "a list of locations"};
} // namespace forms

unsigned attributePlaceOf(Operation *op) {
  return isa<ModuleOp>(op) ? onModule : isa<func::FuncOp>(op) ? onFunction : onOp;
}

static std::string placesText(unsigned places) {
  SmallVector<StringRef> names;
  for (auto [place, name] : {std::pair(onModule, "a module"), std::pair(onFunction, "a function"), std::pair(onOp, "an op"),
                             std::pair(onArgument, "an argument"), std::pair(onResult, "a result")})
    if (places & place)
      names.push_back(name);
  return llvm::join(names, " or ");
}

static std::string remedy(StringRef name, ArrayRef<std::string> known) {
  std::vector<std::string> nearest = nearestNames(name.str(), known.vec());
  return nearest.empty() ? "; take it away, or write the file again with this hpc-opt" : "; is '" + nearest.front() + "' meant?";
}

LogicalResult verifyDiscardable(Operation *op, NamedAttribute attribute, unsigned place, ArrayRef<DiscardableAttribute> table) {
  StringRef name = attribute.getName();
  auto known = llvm::find_if(table, [&](const DiscardableAttribute &entry) { return name == entry.name; });
  if (known == table.end()) {
    std::vector<std::string> names;
    for (const DiscardableAttribute &entry : table)
      names.push_back(entry.name);
    return op->emitError() << "no pass knows the attribute '" << name << "'" << remedy(name, names);
  }
  if (!(known->places & place))
    return op->emitError() << "'" << name << "' belongs to " << placesText(known->places) << ", not to " << placesText(place);
  if (!known->form.holds(attribute.getValue()))
    return op->emitError() << "'" << name << "' has to be " << known->form.text << ", and is " << attribute.getValue();
  return success();
}

LogicalResult verifyAttributeNames(Operation *op) {
  for (NamedAttribute attribute : op->getRawDictionaryAttrs()) // what is no property
    if (StringRef name = attribute.getName(); !attribute.getNameDialect() && !name.contains('.')) {
      std::vector<std::string> names;
      for (StringAttr own : op->getName().getAttributeNames())
        names.push_back(own.str());
      return op->emitOpError() << "has no attribute '" << name << "'" << remedy(name, names);
    }
  return success();
}

} // namespace hpc
