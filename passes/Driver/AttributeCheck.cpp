// One table of all names, each with its type. Those whose readers report what is wrong by themselves are of any type here.
#include "passes/Driver/AttributeCheck.h"

#include "compiler/Accumulations.h"
#include "compiler/AttentionAttribute.h"
#include "compiler/BlockMark.h"
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Dialect/NN/AttentionParts.h"
#include "compiler/Dialect/NN/DefaultInputs.h"
#include "compiler/Dialect/NN/Int8Parameter.h"
#include "compiler/Dialect/NN/MadeOf.h"
#include "compiler/Dialect/NN/StateNames.h"
#include "compiler/Dialect/NN/Statistic.h"
#include "compiler/Dialect/NN/TransposedAliases.h"
#include "compiler/Dialect/Pipe/Schedule.h"
#include "compiler/EpilogueAttribute.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "passes/Options.h"
#include "passes/Train/Ports.h"
#include "runtime/base/Nearest.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace hpc {
namespace {

/// A type of attributes: a test, and its name for messages.
struct AttributeKind {
  bool (*holds)(Operation *op, Attribute attribute);
  const char *text;
};
template <typename Attr> bool isOfClass(Operation *, Attribute attribute) { return isa<Attr>(attribute); }

const llvm::StringMap<AttributeKind> &attributeTable() {
  static const AttributeKind any{[](Operation *, Attribute) { return true; }, ""};
  static const AttributeKind flag{isOfClass<UnitAttr>, "nothing but its name"};
  static const AttributeKind text{isOfClass<StringAttr>, "a string"};
  static const AttributeKind number{[](Operation *, Attribute attribute) {
    auto whole = dyn_cast<IntegerAttr>(attribute);
    return whole && whole.getType().isSignlessInteger(64);
  }, "a whole number, as 3 : i64"};
  static const AttributeKind real{isOfClass<FloatAttr>, "a number, as 0.5 : f64"};
  static const AttributeKind numbers{isOfClass<DenseI64ArrayAttr>, "a list of whole numbers, as array<i64: 1, 2>"};
  static const AttributeKind fields{isOfClass<DictionaryAttr>, "a dictionary, as {field = 1 : i64}"};
  static const AttributeKind list{isOfClass<ArrayAttr>, "a list, as [..]"};
  static const AttributeKind texts{[](Operation *, Attribute attribute) {
    auto list = dyn_cast<ArrayAttr>(attribute);
    return list && llvm::all_of(list, llvm::IsaPred<StringAttr>);
  }, "a list of strings"};
  static const AttributeKind bytes{isOfClass<DenseElementsAttr>, "a tensor of bytes"};
  static const AttributeKind attention{[](Operation *op, Attribute) { return attentionOf(op).has_value(); }, "an attention (compiler/AttentionAttribute.h)"};
  static const AttributeKind epilogue{[](Operation *op, Attribute) { return epilogueOf(op).has_value(); }, "an epilogue (compiler/EpilogueAttribute.h)"};
  static const AttributeKind sharding{isOfClass<dist::ShardingAttr>, "a sharding, as #dist.sharding<\"[4@tp, 6]\">"};
  static const AttributeKind mesh{isOfClass<dist::MeshAttr>, "a mesh, as #dist.mesh<\"tp=2:tensor\">"};
  static const llvm::StringMap<AttributeKind> table = {
      {addsOverAttrName, text},
      {attentionAttrName, attention},
      {blockAttrName, any},
      {codeAttrName, bytes},
      {codeFeaturesAttrName, texts},
      {deviceCodeAttrName, text},
      {factorsAttrName, sharding},
      {globalAttrsName, fields},
      {dist::meshAttrName, mesh},
      {originAttrName, fields},
      {dist::seedAttrName, any},
      {dist::wholeOutputAttrName, numbers},
      {dist::wholeOutputForAttrName, text},
      {epilogueAttrName, epilogue},
      {implicitAttrName, flag},
      {keptBytesAttrName, numbers},
      {launchAttrName, numbers},
      {movedIdAttrName, number},
      {nn::defaultInputsAttrName, texts},
      {nn::int8AlongAttrName, any},
      {nn::int8SizeAttrName, any},
      {nn::isExportersAttrName, flag},
      {nn::isMadeAttrName, flag},
      {nn::madeOfAttrName, texts},
      {nn::originAttrName, texts},
      {nn::stateNamesAttrName, texts},
      {nn::statisticAttrName, flag},
      {nn::tiedNamesAttrName, texts},
      {nn::transposedAliasesAttrName, texts},
      {nn::unreadAttrName, list},
      {nn::wholeSumsAttrName, flag},
      {optionsAttrName, any},
      {phaseAttrName, any},
      {pipe::scheduleAttrName, texts},
      {sidecarAttrName, any},
      {sidecarTensorsAttrName, fields},
      {targetAttrName, text},
      {train::lossAttrName, text},
      {valueIdAttrName, number},
      {"hpc.sidecar_places", fields},
      {"hpc.source", any},
      {"nn.default_input", text},
      {"nn.dims", texts},
      {"nn.gradient", text},
      {"nn.initial", real},
      {"nn.lookups", list},
      {"nn.name", text},
      {"nn.rounds_terms", flag},
      {"nn.state", text},
      {"nn.step_scalar", text},
      {"nn.whole_of", text},
      {"nn.writes", text},
  };
  return table;
}

bool isOurAttribute(StringRef name) {
  StringRef dialect = name.split('.').first;
  return dialect != name && llvm::is_contained({"hpc", "nn", "dist", "pipe"}, dialect);
}

LogicalResult verifyAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (!isOurAttribute(name))
    return success();
  auto kind = attributeTable().find(name);
  if (kind == attributeTable().end()) {
    std::vector<std::string> names;
    for (const auto &known : attributeTable())
      names.push_back(known.first().str());
    std::vector<std::string> nearest = nearestNames(name.str(), names);
    return userError(op, ErrorKind::Model) << "no pass knows the attribute '" << name << "'"
                                           << (nearest.empty() ? std::string("; take it away, or write the file again with this hpc-opt")
                                                               : "; is '" + nearest.front() + "' meant?");
  }
  if (kind->second.holds(op, attribute.getValue()))
    return success();
  return userError(op, ErrorKind::Model) << "'" << name << "' has to be " << kind->second.text << ", and is " << attribute.getValue();
}
} // namespace

LogicalResult verifyAttributes(ModuleOp module) {
  return failure(module.walk([](Operation *op) -> WalkResult {
    SmallVector<NamedAttribute> all(op->getDiscardableAttrs().begin(), op->getDiscardableAttrs().end());
    if (auto function = dyn_cast<FunctionOpInterface>(op)) {
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        llvm::append_range(all, function.getArgAttrs(i));
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        llvm::append_range(all, function.getResultAttrs(i));
    }
    for (NamedAttribute attribute : all)
      if (failed(verifyAttribute(op, attribute)))
        return failure();
    return success();
  }).wasInterrupted());
}

} // namespace hpc
