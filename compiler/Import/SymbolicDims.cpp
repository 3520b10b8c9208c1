// The open sizes of a model's inputs, and their binding by --dim NAME=N.
// Outputs name sizes too, as expressions even; those follow from the graph and are no symbols to bind.
#include "compiler/Import/SymbolicDims.h"

#include "compiler/Import/GraphBuilder.h"
#include "runtime/base/Array.h"

#include <algorithm>

namespace hpc::onnx {

std::string dimText(const ValueInfo &input, size_t dim) {
  const Dim &size = input.dims[dim];
  if (size.size)
    return std::to_string(*size.size);
  return size.symbol.empty() ? input.name + "." + std::to_string(dim) : size.symbol;
}

Expected<std::vector<std::vector<int64_t>>> bindDims(const Model &model, const std::map<std::string, int64_t> &dims) {
  std::vector<std::pair<std::string, std::string>> symbols; // name, where it occurs
  std::map<std::string, size_t> known;                      // by name: index into `symbols`
  for (const ValueInfo &input : model.inputs) {
    // Before anything is said of each.
    HPC_RETURN_IF_ERROR(checkRank(int64_t(input.dims.size())).at("input '" + input.name + "'"));
    for (size_t dim = 0; dim < input.dims.size(); ++dim)
      if (!input.dims[dim].size) {
        std::string text = dimText(input, dim), place = "input '" + input.name + "' dim " + std::to_string(dim);
        std::vector<std::string> names =
            input.dims[dim].symbol.empty() || dims.count(text) ? std::vector{text} : namesIn(text);
        for (const std::string &name : names) {
          auto [found, isNew] = known.try_emplace(name, symbols.size());
          if (isNew)
            symbols.emplace_back(name, place);
          else
            symbols[found->second].second += ", " + place;
        }
      }
  }
  std::string missing, flags, all;
  for (const auto &[name, place] : symbols) {
    all += (all.empty() ? "" : ", ") + name;
    if (dims.count(name))
      continue;
    missing += (missing.empty() ? "" : "; ") + name + " (" + place + ")";
    flags += " --dim " + name + "=N";
  }
  for (const auto &[name, size] : dims) {
    if (!known.count(name))
      return Status::error(ErrorKind::Usage, "--dim " + name + "=" + std::to_string(size) +
                                                 " names no open size of the model; " +
                                                 (all.empty() ? "it has none" : "it has " + all));
    if (size < 0)
      return Status::error(ErrorKind::Usage, "--dim " + name + "=" + std::to_string(size) + " is negative");
  }
  if (!missing.empty())
    return Status::error(ErrorKind::Usage, "the model leaves sizes open: " + missing + "; give" + flags);

  std::vector<std::vector<int64_t>> shapes;
  for (const ValueInfo &input : model.inputs) {
    std::vector<int64_t> &shape = shapes.emplace_back();
    for (size_t dim = 0; dim < input.dims.size(); ++dim) {
      int64_t size = input.dims[dim].size.value_or(0);
      if (!input.dims[dim].size) {
        std::string text = dimText(input, dim);
        auto bound = dims.find(text);
        Expected<int64_t> value = bound != dims.end() ? Expected<int64_t>(bound->second) : evaluateDim(text, dims);
        if (!value.ok())
          return value.status().at("input '" + input.name + "'");
        size = *value;
      }
      if (size < 0)
        return Status::error(ErrorKind::Model, "input '" + input.name + "' dim " + std::to_string(dim) + " has size " +
                                                   std::to_string(size));
      shape.push_back(size);
    }
    if (input.dtype && !checkedBytes(*input.dtype, shape))
      // The model's own fault where it leaves nothing open.
      return Status::error(llvm::all_of(input.dims, [](const auto &dim) { return dim.size.has_value(); }) ? ErrorKind::Model
                                                                                                        : ErrorKind::Usage,
                           "input '" + input.name + "' of shape " + shapeText(shape) + " has too many elements");
  }
  return shapes;
}

} // namespace hpc::onnx
