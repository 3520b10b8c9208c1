// A parameter is its attributes and its type, so those that a step does not read are kept as these.
#include "compiler/Dialect/NN/Parameter.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "mlir/IR/Verifier.h"

namespace hpc::nn {

static DenseI64ArrayAttr numbersAttr(MLIRContext *context, ArrayRef<int64_t> numbers) {
  return numbers.empty() ? DenseI64ArrayAttr() : DenseI64ArrayAttr::get(context, numbers);
}
static ArrayRef<int64_t> numbersIn(DenseI64ArrayAttr numbers) { return numbers ? numbers.asArrayRef() : ArrayRef<int64_t>(); }

static StorageAttr toAttribute(MLIRContext *context, const Storage &s) {
  return StorageAttr::get(context, s.file.empty() ? StringAttr() : StringAttr::get(context, s.file), s.offset, s.bytes,
                          numbersAttr(context, s.hashes), s.type, numbersAttr(context, s.shape), numbersAttr(context, s.starts),
                          s.int8Along, s.int8Size);
}

void ParameterOp::build(OpBuilder &builder, OperationState &state, RankedTensorType type, StringRef name, const Storage &storage) {
  state.getOrAddProperties<Properties>().setName(builder.getStringAttr(name));
  state.getOrAddProperties<Properties>().setStorage(toAttribute(builder.getContext(), storage));
  state.addTypes(type);
}
void ParameterOp::build(OpBuilder &builder, OperationState &state, StringRef name, ElementsAttr value) {
  state.getOrAddProperties<Properties>().setName(builder.getStringAttr(name));
  state.getOrAddProperties<Properties>().setValue(value);
  state.addTypes(value.getType());
}

Storage ParameterOp::stored() {
  return {getFile().str(), getOffset(), getBytes(), getHashes().vec(), getStoredType().value_or(Type()),
          getStoredShape().value_or(ArrayRef<int64_t>()).vec(), getPartStarts().value_or(ArrayRef<int64_t>()).vec(), getInt8Along(), getInt8Size()};
}
void ParameterOp::setStored(const Storage &storage) {
  StorageAttr attr = toAttribute(getContext(), storage), none = toAttribute(getContext(), {});
  setStorageAttr(attr == none ? StorageAttr() : attr);
}
StringRef ParameterOp::getFile() { return getStorageAttr() && getStorageAttr().getFile() ? getStorageAttr().getFile().getValue() : ""; }
int64_t ParameterOp::getOffset() { return getStorageAttr() ? getStorageAttr().getOffset() : 0; }
int64_t ParameterOp::getBytes() { return getStorageAttr() ? getStorageAttr().getBytes() : 0; }
ArrayRef<int64_t> ParameterOp::getHashes() { return getStorageAttr() ? numbersIn(getStorageAttr().getHashes()) : ArrayRef<int64_t>(); }
std::optional<ArrayRef<int64_t>> ParameterOp::getStoredShape() {
  return getStorageAttr() && getStorageAttr().getShape() ? std::optional(getStorageAttr().getShape().asArrayRef()) : std::nullopt;
}
std::optional<ArrayRef<int64_t>> ParameterOp::getPartStarts() {
  return getStorageAttr() && getStorageAttr().getStarts() ? std::optional(getStorageAttr().getStarts().asArrayRef()) : std::nullopt;
}
std::optional<Type> ParameterOp::getStoredType() {
  return getStorageAttr() && getStorageAttr().getType() ? std::optional(getStorageAttr().getType()) : std::nullopt;
}
std::optional<int64_t> ParameterOp::getInt8Along() { return getStorageAttr() ? getStorageAttr().getInt8Along() : std::nullopt; }
std::optional<int64_t> ParameterOp::getInt8Size() { return getStorageAttr() ? getStorageAttr().getInt8Size() : std::nullopt; }
Type ParameterOp::storedElementType() { return getStoredType().value_or(tensorType(getResult()).getElementType()); }

Int8Form int8FormOf(ParameterOp parameter) {
  return parameter.getInt8Size()                                       ? Int8Form::Scales
         : tensorType(parameter.getResult()).getElementType().isInteger(8) ? Int8Form::Codes
                                                                            : Int8Form::Values;
}

SmallVector<int64_t> storedShapeOf(ParameterOp parameter) {
  // Its stored shape is the global one; a type without encoding is global itself.
  SmallVector<int64_t> shape(parameter.isPart() ? *parameter.getStoredShape()
                                                : dist::globalType(tensorType(parameter.getResult())).getShape());
  std::optional<int64_t> along = parameter.getInt8Along(), size = parameter.getInt8Size();
  if (along && size && *along <= int64_t(shape.size()))
    shape.insert(shape.begin() + *along, *size);
  return shape;
}

ArrayAttr namesAttr(MLIRContext *context, ArrayRef<std::string> names) {
  return Builder(context).getStrArrayAttr(SmallVector<StringRef>(names.begin(), names.end()));
}
std::vector<std::string> namesIn(std::optional<ArrayAttr> names) {
  std::vector<std::string> texts;
  for (Attribute name : names ? names->getValue() : ArrayRef<Attribute>())
    texts.push_back(cast<StringAttr>(name).str());
  return texts;
}

std::vector<std::string> namesOf(ParameterOp parameter) {
  std::vector<std::string> names = {parameter.getName().str()};
  llvm::append_range(names, namesIn(parameter.getAliases()));
  return names;
}
bool isTransposedAlias(ParameterOp parameter, StringRef name) {
  return llvm::is_contained(namesIn(parameter.getTransposedAliases()), name.str());
}

void markStatistic(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>())
    value = cast.getOperand();
  if (auto parameter = value.getDefiningOp<ParameterOp>())
    parameter.setIsStatistic(true);
}

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

static ArrayRef<Attribute> unreadIn(ModuleOp module) {
  auto noted = module->getAttrOfType<ArrayAttr>(unreadAttrName);
  return noted ? noted.getValue() : ArrayRef<Attribute>();
}

/// An op to destroy; null where the entry is none.
static Operation *makeUnread(ModuleOp module, Attribute entry) {
  auto fields = dyn_cast<DictionaryAttr>(entry);
  auto attributes = fields ? fields.getAs<DictionaryAttr>("attributes") : DictionaryAttr();
  auto type = fields ? fields.getAs<TypeAttr>("type") : TypeAttr();
  if (!attributes || !type)
    return nullptr;
  OperationState state(module.getLoc(), ParameterOp::getOperationName());
  state.addAttributes(attributes.getValue());
  state.addTypes(type.getValue());
  return Operation::create(state);
}

LogicalResult verifyUnread(ModuleOp module) {
  for (Attribute entry : unreadIn(module)) {
    Operation *op = makeUnread(module, entry);
    // An attribute of the wrong type is not taken at all.
    bool isWhole = op && op->getAttrDictionary() == cast<DictionaryAttr>(entry).get("attributes");
    LogicalResult verified = isWhole ? mlir::verify(op) : module.emitError() << "'" << unreadAttrName << "' holds {attributes = {..}, type = ..} of parameters, and not " << entry;
    if (op)
      op->destroy();
    if (failed(verified))
      return failure();
  }
  return success();
}

void eachUnread(ModuleOp module, llvm::function_ref<void(ParameterOp)> visit) {
  for (Attribute entry : unreadIn(module)) {
    Operation *op = makeUnread(module, entry);
    visit(cast<ParameterOp>(op));
    op->destroy();
  }
}

} // namespace hpc::nn
