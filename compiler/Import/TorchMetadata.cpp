// Notes of PyTorch's exporter about nodes and initializers, beside the graph. Other exporters write none, so an import
// may only use them for facts that the graph leaves open.
#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

/// The names in a list as Python prints one: ['a', 'b'].
static std::vector<std::string> quotedNames(const std::string &list) {
  std::vector<std::string> names;
  for (size_t end = 0, begin; (begin = list.find('\'', end)) != std::string::npos; ++end) {
    end = list.find('\'', begin + 1);
    if (end == std::string::npos)
      break;
    names.push_back(list.substr(begin + 1, end - begin - 1));
  }
  return names;
}

std::string torchCallOf(const std::map<std::string, std::string> &metadata) {
  constexpr std::string_view before = "call_function[target=torch.ops.";
  auto found = metadata.find("pkg.torch.onnx.fx_node");
  size_t at = found == metadata.end() ? std::string::npos : found->second.find(before);
  return at == std::string::npos ? "" : found->second.substr(at + before.size());
}

Provenance provenanceOf(const std::map<std::string, std::string> &metadata) {
  Provenance result;
  for (const auto &[key, value] : metadata) {
    if (key == "pkg.torch.export.graph_signature.InputSpec.kind")
      result.kind = value == "PARAMETER"                              ? WeightKind::Parameter
                    : value == "BUFFER" || value == "CONSTANT_TENSOR" ? WeightKind::Buffer
                                                                      : WeightKind::Unsaid;
    if (key == "pkg.onnxscript.optimizer.folded_from")
      result.madeOf = quotedNames(value);
    result.isInState &= value != "CONSTANT_TENSOR" &&
                        !(key == "pkg.torch.export.graph_signature.InputSpec.persistent" && value == "False");
  }
  return result;
}

} // namespace hpc::onnx
