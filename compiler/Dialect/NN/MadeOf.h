// Parameters that an exporter has computed from several values, which the file no longer holds: a table of cosines, or
// a weight that was cut or expanded. Training moves the result, whatever it was made of.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// On an nn.parameter: the names of those values, an array of strings.
constexpr const char *madeOfAttrName = "nn.made_of";

} // namespace hpc::nn
