// The nodes that the outputs need, in an order in which every value is made before it is read.
#pragma once

#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

/// File order where that will do. Errors: a value made twice, a value that nothing makes, a cycle.
Expected<std::vector<const Node *>> orderedNodes(const Model &model);

} // namespace hpc::onnx
