// Inputs of a model that have a value in it (initializers that are listed as inputs, IR version 4 and later): a run may
// give another. They are parameters or constants like any other; the module has their names.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "llvm/ADT/StringSet.h"

namespace hpc::nn {

constexpr const char *defaultInputsAttrName = "hpc.default_inputs"; ///< an array of strings

inline llvm::StringSet<> defaultInputs(ModuleOp module) {
  llvm::StringSet<> names;
  if (auto list = module->getAttrOfType<ArrayAttr>(defaultInputsAttrName))
    for (StringRef name : list.getAsValueRange<StringAttr>())
      names.insert(name);
  return names;
}

} // namespace hpc::nn
