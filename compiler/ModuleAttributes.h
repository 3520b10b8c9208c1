// What a module says about itself beside its ops: the phase that made it, what kernels are generated for, and their
// machine code.
// Each attribute is read and written here alone.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

constexpr const char *phaseAttrName = "hpc.phase"; ///< a string
constexpr const char *targetAttrName = "hpc.target"; ///< a string
constexpr const char *codeAttrName = "hpc.code";
constexpr const char *codeFeaturesAttrName = "hpc.cpu_features";

/// `phase` is the last one that ran. passes/Phases.h reads it (phasesDone), since a file may name none or anything.
inline void setPhase(ModuleOp module, StringRef phase) {
  module->setAttr(phaseAttrName, StringAttr::get(module.getContext(), phase));
}

/// The only target that kernels are generated for today, and that of a module that names none.
constexpr const char *hostTarget = "x86-64";
inline StringRef targetOf(ModuleOp module) {
  auto target = module ? module->getAttrOfType<StringAttr>(targetAttrName) : StringAttr();
  return target ? target.getValue() : hostTarget;
}

/// The kernels of all fused regions, in one piece.
struct GeneratedCode {
  ArrayRef<char> bytes;              ///< an x86-64 ELF shared object; lives as long as the module's context
  std::vector<std::string> features; ///< CPU features that it needs, names as in /proc/cpuinfo
};
inline std::optional<GeneratedCode> generatedCode(ModuleOp module) {
  auto code = module->getAttrOfType<DenseElementsAttr>(codeAttrName);
  if (!code)
    return std::nullopt;
  GeneratedCode result{code.getRawData(), {}};
  if (auto features = module->getAttrOfType<ArrayAttr>(codeFeaturesAttrName))
    for (StringRef feature : features.getAsValueRange<StringAttr>())
      result.features.push_back(feature.str());
  return result;
}
inline void setGeneratedCode(ModuleOp module, const GeneratedCode &code) {
  Builder builder(module.getContext());
  auto type = RankedTensorType::get({int64_t(code.bytes.size())}, builder.getIntegerType(8));
  module->setAttr(codeAttrName, DenseElementsAttr::getFromRawBuffer(type, code.bytes));
  SmallVector<StringRef> features(code.features.begin(), code.features.end());
  module->setAttr(codeFeaturesAttrName, builder.getStrArrayAttr(features));
}
inline void removeGeneratedCode(ModuleOp module) {
  module->removeAttr(codeAttrName);
  module->removeAttr(codeFeaturesAttrName);
}

} // namespace hpc
