// The place of a node in the model's own modules ("transformer.h.0.attn").
// The last scope of all three spellings is the node itself, so it is dropped.
#include "compiler/Import/OnnxModel.h"

#include <vector>

namespace hpc::onnx {
namespace {

/// The last non-empty scope before the node's own.
std::string lastScope(std::vector<std::string> scopes) {
  if (!scopes.empty())
    scopes.pop_back();
  while (!scopes.empty() && scopes.back().empty())
    scopes.pop_back();
  return scopes.empty() ? std::string() : scopes.back();
}

/// "['', 'transformer', 'transformer.h.0', 'view_1']"
std::vector<std::string> quotedList(const std::string &text) {
  std::vector<std::string> items;
  for (size_t at = text.find_first_of("'\""); at != std::string::npos;) {
    size_t end = text.find(text[at], at + 1);
    if (end == std::string::npos)
      break;
    items.push_back(text.substr(at + 1, end - at - 1));
    at = text.find_first_of("'\"", end + 1);
  }
  return items;
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

} // namespace

std::string modulePathOf(const std::string &nodeName, const std::map<std::string, std::string> &metadata) {
  if (auto scopes = metadata.find("pkg.torch.onnx.name_scopes"); scopes != metadata.end())
    return lastScope(quotedList(scopes->second));
  // ": Logits/transformer: GPT2Model/transformer.h.0: GPT2Block/view_1: aten.view"
  if (auto space = metadata.find("namespace"); space != metadata.end()) {
    std::vector<std::string> scopes = split(space->second, '/');
    for (std::string &scope : scopes)
      scope = scope.substr(0, scope.find(": "));
    return lastScope(scopes);
  }
  // "/transformer/h.0/attn/MatMul"
  std::string path;
  std::vector<std::string> parts = split(nodeName, '/');
  for (size_t i = 0; i + 1 < parts.size(); ++i)
    if (!parts[i].empty())
      path += (path.empty() ? "" : ".") + parts[i];
  return path;
}

} // namespace hpc::onnx
