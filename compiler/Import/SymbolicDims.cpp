// The open sizes of a model's inputs, and their binding by --dim NAME=N.
// Outputs name sizes too, as expressions even; those follow from the graph and are no symbols to bind.
#include "compiler/Import/SymbolicDims.h"

#include "compiler/Import/GraphBuilder.h"
#include "runtime/base/Array.h"

#include <algorithm>

namespace hpc::onnx {

std::string placeText(const ValueInfo &input, size_t dim) { return input.name + "." + std::to_string(dim); }

std::string dimText(const ValueInfo &input, size_t dim) {
  const Dim &size = input.dims[dim];
  if (size.size)
    return std::to_string(*size.size);
  return size.symbol.empty() ? placeText(input, dim) : size.symbol;
}

namespace {

Status usage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

/// The names that open sizes need, in order, each with the places where it occurs.
struct OpenSizes {
  std::vector<std::pair<std::string, std::string>> symbols; ///< name, where it occurs
  std::set<std::string> bindable;                           ///< places, "x.2", and names

  OpenSizes(const Model &model, const std::map<std::string, int64_t> &dims) {
    for (const ValueInfo &input : model.inputs)
      for (size_t dim = 0; dim < input.dims.size(); ++dim) {
        const Dim &size = input.dims[dim];
        std::string place = placeText(input, dim), text = dimText(input, dim);
        bindable.insert(place);
        if (size.size)
          continue;
        std::vector<std::string> names = size.symbol.empty() || dims.count(text) ? std::vector{text} : namesIn(text);
        bindable.insert(names.begin(), names.end());
        if (!dims.count(place))
          for (const std::string &name : names)
            add(name, "input '" + input.name + "' dim " + std::to_string(dim));
      }
  }

  Status check(const std::map<std::string, int64_t> &dims) const {
    std::string missing, flags, all;
    for (const auto &[name, place] : symbols) {
      all += (all.empty() ? "" : ", ") + name;
      if (dims.count(name))
        continue;
      missing += (missing.empty() ? "" : "; ") + name + " (" + place + ")";
      flags += " --dim " + name + "=N";
    }
    for (const auto &[name, size] : dims) {
      if (!bindable.count(name))
        return usage("--dim " + name + "=" + std::to_string(size) + " names no open size of the model; " +
                     (all.empty() ? "it has none" : "it has " + all));
      if (size < 0)
        return usage("--dim " + name + "=" + std::to_string(size) + " is negative");
    }
    if (!missing.empty())
      return usage("the model leaves sizes open: " + missing + "; give" + flags);
    return Status::success();
  }

private:
  void add(const std::string &name, const std::string &place) {
    auto [found, isNew] = known.try_emplace(name, symbols.size());
    if (isNew)
      symbols.emplace_back(name, place);
    else
      symbols[found->second].second += ", " + place;
  }

  std::map<std::string, size_t> known; ///< by name: index into `symbols`
};

/// The size of a dim: a binding of its place has priority over one of its name.
Expected<int64_t> sizeOf(const ValueInfo &input, size_t dim, const std::map<std::string, int64_t> &dims) {
  const Dim &declared = input.dims[dim];
  if (auto given = dims.find(placeText(input, dim)); given != dims.end()) {
    if (declared.size && *declared.size != given->second)
      return usage("--dim " + given->first + "=" + std::to_string(given->second) + ": the model says that it is " +
                   std::to_string(*declared.size) + "; leave the flag out, or export the model with that size open");
    return given->second;
  }
  Expected<int64_t> size = declared.size ? Expected<int64_t>(*declared.size) : evaluateDim(dimText(input, dim), dims);
  if (!size.ok())
    return size.status().at("input '" + input.name + "'");
  if (*size < 0)
    return Status::error(ErrorKind::Model,
                         "input '" + input.name + "' dim " + std::to_string(dim) + " has size " + std::to_string(*size));
  return size;
}

/// A name means one size: where --dim x.2=N makes another of one, that dim has the name no more.
void dropContradictedNames(Model &model, const std::vector<std::vector<int64_t>> &shapes,
                           const std::map<std::string, int64_t> &dims) {
  std::map<std::string, std::set<int64_t>> sizes;
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t dim = 0; dim < shapes[i].size(); ++dim)
      sizes[model.inputs[i].dims[dim].symbol].insert(shapes[i][dim]);
  for (ValueInfo &input : model.inputs)
    for (size_t dim = 0; dim < input.dims.size(); ++dim)
      if (dims.count(placeText(input, dim)) && sizes[input.dims[dim].symbol].size() > 1)
        input.dims[dim].symbol.clear();
}

} // namespace

Expected<std::vector<std::vector<int64_t>>> bindDims(Model &model, const std::map<std::string, int64_t> &dims) {
  for (const ValueInfo &input : model.inputs) // before the errors of single inputs
    HPC_RETURN_IF_ERROR(checkRank(int64_t(input.dims.size())).at("input '" + input.name + "'"));
  HPC_RETURN_IF_ERROR(OpenSizes(model, dims).check(dims));
  std::vector<std::vector<int64_t>> shapes;
  for (const ValueInfo &input : model.inputs) {
    std::vector<int64_t> &shape = shapes.emplace_back();
    for (size_t dim = 0; dim < input.dims.size(); ++dim) {
      Expected<int64_t> size = sizeOf(input, dim, dims);
      if (!size.ok())
        return size.status();
      shape.push_back(*size);
    }
    if (input.dtype && !checkedBytes(*input.dtype, shape))
      // An error of the model itself if it leaves no size open.
      return Status::error(llvm::all_of(input.dims, [](const auto &dim) { return dim.size.has_value(); }) ? ErrorKind::Model
                                                                                                        : ErrorKind::Usage,
                           "input '" + input.name + "' of shape " + shapeText(shape) + " has too many elements");
  }
  dropContradictedNames(model, shapes, dims);
  return shapes;
}

} // namespace hpc::onnx
