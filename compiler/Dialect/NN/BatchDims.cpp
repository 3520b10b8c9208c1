// Names first, since exporters give them; position where there are none.
#include "compiler/Dialect/NN/BatchDims.h"

#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/Ports.h"

namespace hpc::nn {

/// The symbolic names of an input's dims, "" where it has none.
static std::vector<std::string> dimNames(const ArgumentPort &port, size_t rank) {
  std::vector<std::string> names = port.dims;
  names.resize(rank);
  return names;
}

FailureOr<SmallVector<std::optional<int64_t>>> findBatchDims(func::FuncOp function, StringRef wanted) {
  SmallVector<std::optional<int64_t>> dims(function.getNumArguments());
  std::vector<std::string> known;
  bool isNamed = false;
  SmallVector<unsigned> inputs;
  for (unsigned argument = 0; argument < dims.size(); ++argument) {
    ArgumentPort port = argumentPort(function, argument);
    if (!port.isGiven() || !port.stepScalar.empty())
      continue;
    inputs.push_back(argument);
    for (auto [dim, name] : llvm::enumerate(dimNames(port, shapeOf(function.getArgument(argument)).size()))) {
      if (!name.empty() && !llvm::all_of(name, llvm::isDigit) && !llvm::is_contained(known, name))
        known.push_back(name);
      if (!dims[argument] && (wanted.empty() ? StringRef(name).starts_with("batch") : StringRef(name) == wanted)) {
        dims[argument] = dim;
        isNamed = true;
      }
    }
  }
  if (isNamed)
    return dims;
  if (!wanted.empty()) {
    userError(function, ErrorKind::Usage) << "--batch-dim=" << wanted << " names no dim of an input; the inputs have "
                                          << (known.empty() ? "no named dims" : llvm::join(known, ", "));
    return failure();
  }
  // Nothing is named: dim 0, of all inputs that agree on its size with the first.
  std::optional<int64_t> size;
  for (unsigned argument : inputs) {
    ArrayRef<int64_t> shape = shapeOf(function.getArgument(argument));
    if (shape.empty() || (size && *size != shape[0]))
      continue;
    size = shape[0];
    dims[argument] = 0;
  }
  return dims;
}

std::string guessedBatchText(func::FuncOp function) {
  std::string inputs;
  for (unsigned argument = 0; argument < function.getNumArguments(); ++argument)
    for (const std::string &name : argumentPort(function, argument).dims)
      if (!name.empty() && !llvm::all_of(name, llvm::isDigit))
        return "";
  auto dims = findBatchDims(function, "");
  for (unsigned argument = 0; succeeded(dims) && argument < dims->size(); ++argument)
    if ((*dims)[argument])
      inputs += (inputs.empty() ? "'" : ", '") + argumentPort(function, argument).name + "'";
  if (inputs.empty())
    return "";
  return "; the model names no dim, so dim 0 of " + inputs +
         " counts as the batch: where it is none, export the batch as a dynamic dim called batch";
}

} // namespace hpc::nn
