// Parameters that an exporter has computed from several values, which the file no longer holds: a table of cosines, or
// a weight that was cut or expanded. Training moves the result, whatever it was made of.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// On an nn.parameter: the names of those values, an array of strings.
constexpr const char *madeOfAttrName = "nn.made_of";

/// On parameters that hold equal numbers and come from different ones of the model, which train apart: names of what
/// each comes from.
constexpr const char *originAttrName = "nn.origin";

/// On a parameter that others were taken for, since they hold the same numbers, transposed perhaps: their names.
constexpr const char *tiedNamesAttrName = "nn.tied_names";

/// Whether the file says that the two come from different parameters.
inline bool areSaidApart(ParameterOp a, ParameterOp b) {
  Attribute first = a->getAttr(originAttrName), second = b->getAttr(originAttrName);
  return first && second && first != second;
}

} // namespace hpc::nn
