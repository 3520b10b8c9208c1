// `nn.transposed_aliases = ["onnx::MatMul_731"]` on a parameter: those of its aliases whose stored bytes are its own,
// transposed (rank 2). Who speaks of dims by such a name means them the other way round.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

constexpr const char *transposedAliasesAttrName = "nn.transposed_aliases";

inline SmallVector<StringRef> transposedAliases(ParameterOp parameter) {
  SmallVector<StringRef> names;
  if (auto attribute = parameter->getAttrOfType<ArrayAttr>(transposedAliasesAttrName))
    llvm::append_range(names, attribute.getAsValueRange<StringAttr>());
  return names;
}

inline bool isTransposedAlias(ParameterOp parameter, StringRef name) {
  return llvm::is_contained(transposedAliases(parameter), name);
}

/// All names by which somebody may speak of a parameter: its own, then its aliases.
inline std::vector<std::string> namesOf(ParameterOp parameter) {
  std::vector<std::string> names = {parameter.getName().str()};
  if (std::optional<ArrayAttr> aliases = parameter.getAliases())
    for (StringRef alias : aliases->getAsValueRange<StringAttr>())
      names.push_back(alias.str());
  return names;
}

/// No names take the attribute away.
inline void setTransposedAliases(ParameterOp parameter, ArrayRef<StringRef> names) {
  if (names.empty())
    parameter->removeAttr(transposedAliasesAttrName);
  else
    parameter->setAttr(transposedAliasesAttrName, Builder(parameter.getContext()).getStrArrayAttr(names));
}

} // namespace hpc::nn
