// How the framework's own state (PyTorch's state_dict) speaks of a parameter, for whoever reads or writes a file of weights.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// On an nn.parameter that the state has under several names, or under another one than its own: all of them, an array of strings.
constexpr const char *stateNamesAttrName = "nn.state_names";

/// On a parameter that an exporter made of the one of its state names, which may be transposed.
constexpr const char *isMadeAttrName = "nn.is_made";

/// On a parameter that an exporter made and no state has: a mask, a table of cosines.
constexpr const char *isExportersAttrName = "nn.is_exporters";

/// None: the state has it under its own name alone, or not at all.
inline std::vector<std::string> stateNamesOf(ParameterOp parameter) {
  std::vector<std::string> names;
  if (auto attribute = parameter->getAttrOfType<ArrayAttr>(stateNamesAttrName))
    for (StringRef name : attribute.getAsValueRange<StringAttr>())
      names.push_back(name.str());
  return names;
}

inline void setStateNames(ParameterOp parameter, ArrayRef<std::string> names) {
  SmallVector<StringRef> texts(names.begin(), names.end());
  parameter->setAttr(stateNamesAttrName, Builder(parameter.getContext()).getStrArrayAttr(texts));
}

/// On a module: parameters of the model that a training step does not read, an array of {attributes, type}. Who saves a model saves
/// them, too.
constexpr const char *unreadAttrName = "nn.unread_parameters";

void noteUnread(ModuleOp module, ArrayRef<std::pair<DictionaryAttr, Type>> parameters);

/// Calls `visit` with an op of each, which belongs to no block and goes after the call.
void eachUnread(ModuleOp module, llvm::function_ref<void(ParameterOp)> visit);

} // namespace hpc::nn
