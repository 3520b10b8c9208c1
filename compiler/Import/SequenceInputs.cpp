// Roles are names of the interface between a tokenizer and a model, as hpc-train reads them, and a past's: no name of a model is read.
#include "compiler/Import/SequenceInputs.h"

#include "compiler/Import/SymbolicDims.h"
#include "compiler/Interpreter/Tensor.h"

#include <algorithm>

namespace hpc::onnx {
namespace {

enum class Role { None, Ids, Mask, Positions, Types, Past };

Role roleOf(const ValueInfo &input) {
  if (input.name.rfind("past", 0) == 0 && input.dtype && isFloat(*input.dtype))
    return Role::Past;
  if (input.dims.size() != 2 || !input.dtype)
    return Role::None;
  return input.name == "attention_mask"   ? Role::Mask
         : input.name == "position_ids"   ? Role::Positions
         : input.name == "token_type_ids" ? Role::Types
         : isFloat(*input.dtype)          ? Role::None
                                          : Role::Ids;
}

/// The name by which --dim binds a dim, if it is open and no expression.
std::optional<std::string> openName(const ValueInfo &input, size_t dim) {
  if (input.dims[dim].size)
    return std::nullopt;
  std::string text = dimText(input, dim);
  return input.dims[dim].symbol.empty() || namesIn(text) == std::vector<std::string>{text} ? std::optional(text) : std::nullopt;
}

} // namespace

Status bindSequenceSizes(const Model &model, int64_t rows, int64_t length, std::map<std::string, int64_t> &dims) {
  struct Wanted {
    const char *flag, *unit;
    int64_t size, fallback; ///< 0: any, and the fallback where it is open
  };
  const Wanted wanted[] = {{"--batch", "rows", rows, 1}, {"--max-length", "positions", length, length}};
  std::set<std::string> ofIds;
  const bool isSole = llvm::count_if(model.inputs, [](const ValueInfo &input) { return roleOf(input) == Role::Ids; }) == 1;
  for (const ValueInfo &input : model.inputs) {
    if (roleOf(input) != Role::Ids || (!isSole && input.dims[1].size)) // another input of integers, which the phase refuses
      continue;
    for (size_t dim : {0, 1})
      if (std::optional<std::string> name = openName(input, dim))
        ofIds.insert(*name);
    for (size_t dim : {0, 1}) {
      const Wanted &is = wanted[dim];
      std::optional<std::string> name = openName(input, dim);
      const int64_t size = name ? dims.try_emplace(*name, is.size ? is.size : is.fallback).first->second : input.dims[dim].size.value_or(is.size);
      if (is.size && size != is.size)
        return Status::error(ErrorKind::Usage, std::string(is.flag) + "=" + std::to_string(is.size) + ": input '" + input.name + "' has " + std::to_string(size) + " " + is.unit +
                                                   (name ? " by --dim " + *name + "; leave that out" : " in the model; export it with that size open, or give that size"));
    }
  }
  for (const ValueInfo &input : model.inputs) // before masks, whose size may be that of the past and of the ids
    if (roleOf(input) == Role::Past)
      for (size_t dim = 0; dim < input.dims.size(); ++dim)
        if (std::optional<std::string> name = openName(input, dim); name && !ofIds.count(*name))
          dims.try_emplace(*name, 0);
  for (const ValueInfo &input : model.inputs)
    if (Role role = roleOf(input); role == Role::Mask || role == Role::Positions || role == Role::Types)
      if (std::optional<std::string> name = openName(input, 1))
        dims.try_emplace(*name, length);
  return Status::success();
}

std::vector<StoredTensor> sequenceInputs(const Model &model, const std::vector<std::vector<int64_t>> &shapes) {
  std::vector<StoredTensor> bound;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ValueInfo &input = model.inputs[i];
    const Role role = roleOf(input);
    if (role == Role::None || role == Role::Ids || (role == Role::Past && !llvm::is_contained(shapes[i], 0)))
      continue;
    Tensor content(*input.dtype, shapes[i]);
    for (int64_t at = 0; at < content.size(); ++at)
      content.setNumber(at, role == Role::Mask ? 1 : role == Role::Positions ? double(at % shapes[i][1]) : 0);
    StoredTensor &tensor = bound.emplace_back();
    tensor.name = input.name;
    tensor.dtype = input.dtype;
    tensor.typeName = input.typeName;
    tensor.narrow = input.narrow;
    tensor.shape = shapes[i];
    tensor.owned = std::make_shared<std::vector<std::byte>>(tensorToBytes(content));
    tensor.bytes = int64_t(tensor.owned->size());
    tensor.data = tensor.owned->data();
    tensor.isConstant = true;
  }
  return bound;
}

} // namespace hpc::onnx
