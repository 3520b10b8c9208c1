// What a module says about itself beside its ops: the phase that made it, what kernels are generated for, and their
// code.
// Each attribute is read and written here alone.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

constexpr const char *phaseAttrName = "hpc.phase"; ///< a string
constexpr const char *targetAttrName = "hpc.target"; ///< a string
constexpr const char *codeAttrName = "hpc.code";
constexpr const char *codeFeaturesAttrName = "hpc.cpu_features";
constexpr const char *deviceCodeAttrName = "hpc.ptx";
constexpr const char *optionsAttrName = "hpc.options"; ///< passes/Options.h
constexpr const char *sourceAttrName = "hpc.source";   ///< passes/Driver/ModelSource.h
constexpr const char *lossAttrName = "hpc.loss";       ///< the loss as it was chosen, "causal-lm:logits"
/// Of the user's annotations: compiler/Sidecar.
constexpr const char *sidecarAttrName = "hpc.sidecar", *sidecarTensorsAttrName = "hpc.sidecar_tensors", *sidecarPlacesAttrName = "hpc.sidecar_places";

/// `phase` is the last one that ran. passes/Phases.h reads it (phasesDone), since a file may name none or anything.
inline void setPhase(ModuleOp module, StringRef phase) {
  module->setAttr(phaseAttrName, StringAttr::get(module.getContext(), phase));
}

/// What kernels are generated for: the host, which is also the target of a module that names none, and devices.
constexpr const char *hostTarget = "x86-64";
constexpr const char *deviceTarget = "ptx";
/// One target, or several as "x86-64,ptx".
inline StringRef targetOf(ModuleOp module) {
  auto target = module ? module->getAttrOfType<StringAttr>(targetAttrName) : StringAttr();
  return target ? target.getValue() : hostTarget;
}
inline SmallVector<StringRef> splitTargets(StringRef targets) {
  SmallVector<StringRef> each;
  targets.split(each, ',');
  return each;
}
inline bool hasTarget(ModuleOp module, StringRef target) {
  return llvm::is_contained(splitTargets(targetOf(module)), target);
}

constexpr const char *keptBytesAttrName = "hpc.kept_bytes"; ///< array<i64>
/// By stage: bytes that forward keeps for backward, as phase recompute has chosen; none before it.
inline ArrayRef<int64_t> keptBytes(ModuleOp module) {
  auto bytes = module->getAttrOfType<DenseI64ArrayAttr>(keptBytesAttrName);
  return bytes ? bytes.asArrayRef() : ArrayRef<int64_t>();
}
inline void setKeptBytes(ModuleOp module, ArrayRef<int64_t> bytes) {
  module->setAttr(keptBytesAttrName, DenseI64ArrayAttr::get(module.getContext(), bytes));
}

/// The kernels of all fused regions for the host, in one piece.
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
/// The same kernels as PTX; empty where there are none.
inline StringRef deviceCode(ModuleOp module) {
  auto code = module->getAttrOfType<StringAttr>(deviceCodeAttrName);
  return code ? code.getValue() : StringRef();
}
inline void setDeviceCode(ModuleOp module, StringRef ptx) {
  module->setAttr(deviceCodeAttrName, StringAttr::get(module.getContext(), ptx));
}
/// The least compute capability that it needs, 80 for 8.0.
constexpr int deviceCapability = 80;
inline void removeGeneratedCode(ModuleOp module) {
  module->removeAttr(codeAttrName);
  module->removeAttr(codeFeaturesAttrName);
  module->removeAttr(deviceCodeAttrName);
}

} // namespace hpc
