// Functions that a model defines itself, put in the place of the nodes that call them.
// Exporters use them for modules and for ops of later opsets.
#pragma once

#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

/// Inlines until no node calls a function of the model. Errors: a function that calls itself, or too many nodes.
Status inlineFunctions(Model &model);

} // namespace hpc::onnx
