// Where a node stands in the model's own modules ("transformer.h.0.attn").
// Exporters say it in node metadata (PyTorch's dynamo) or in the node's name (its tracing exporter).
#pragma once

#include <map>
#include <string>

namespace hpc::onnx {

/// "" when neither says it.
std::string modulePathOf(const std::string &nodeName, const std::map<std::string, std::string> &metadata);

} // namespace hpc::onnx
