// Names first, since exporters give them; position where there are none.
#include "compiler/Dialect/NN/BatchDims.h"

#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/BatchFlow.h"
#include "compiler/Dialect/NN/Ports.h"

namespace hpc::nn {

/// The symbolic names of an input's dims, "" where it has none.
static std::vector<std::string> dimNames(const ArgumentPort &port, size_t rank) {
  std::vector<std::string> names = port.dims;
  names.resize(rank);
  return names;
}

/// The name that grows with the dim: "batch_size" of "batch_size" and of "batch_size * 12"; "" of what is no batch, as
/// "batch + 1" and "heads" are none. A '-' between letters is part of a name.
static StringRef batchNameIn(StringRef dim) {
  StringRef name = dim.split('*').first.trim();
  for (size_t i = 0; i < dim.size(); ++i)
    if (StringRef("+/%(").contains(dim[i]) ||
        (dim[i] == '-' && !(i && llvm::isAlpha(dim[i - 1]) && i + 1 < dim.size() && llvm::isAlpha(dim[i + 1]))))
      return "";
  return name.starts_with("batch") ? name : "";
}

/// A state has the batch where its next value has it: the caches of a decoder.
static void addStates(func::FuncOp function, SmallVector<std::optional<int64_t>> &dims) {
  const std::map<std::string, unsigned> written = writtenBy(function);
  if (written.empty())
    return;
  BatchFlow flow(function, dims);
  for (Operation &op : function.front())
    flow.visit(&op);
  for (unsigned argument = 0; argument < dims.size(); ++argument)
    if (auto found = written.find(argumentPort(function, argument).state); found != written.end()) {
      Value next = function.front().getTerminator()->getOperand(found->second);
      for (int64_t dim = 0; dim < tensorType(next).getRank() && !dims[argument]; ++dim)
        if (flow.carries(next, dim))
          dims[argument] = dim;
    }
}

FailureOr<SmallVector<std::optional<int64_t>>> findBatchDims(func::FuncOp function, StringRef wanted) {
  SmallVector<std::optional<int64_t>> dims(function.getNumArguments());
  std::vector<std::string> known;
  bool isNamed = false;
  SmallVector<unsigned> inputs;
  bool isExact = llvm::any_of(llvm::seq(function.getNumArguments()), [&](unsigned argument) {
    return llvm::any_of(argumentPort(function, argument).dims, [](StringRef name) { return batchNameIn(name) == "batch"; });
  });
  auto fits = [&](StringRef name) {
    if (!wanted.empty())
      return name == wanted;
    return isExact ? batchNameIn(name) == "batch" : !batchNameIn(name).empty();
  };
  for (unsigned argument = 0; argument < dims.size(); ++argument) {
    ArgumentPort port = argumentPort(function, argument);
    if (!port.isGiven() || !port.stepScalar.empty())
      continue;
    inputs.push_back(argument);
    for (auto [dim, name] : llvm::enumerate(dimNames(port, shapeOf(function.getArgument(argument)).size()))) {
      if (!name.empty() && !llvm::all_of(name, llvm::isDigit) && !llvm::is_contained(known, name))
        known.push_back(name);
      if (!dims[argument] && fits(name)) {
        dims[argument] = dim;
        isNamed = true;
      }
    }
  }
  if (isNamed) {
    addStates(function, dims);
    return dims;
  }
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
  addStates(function, dims);
  return dims;
}

std::string guessedBatchText(func::FuncOp function) {
  auto dims = findBatchDims(function, "");
  std::string places;
  bool hasNames = false;
  for (unsigned argument = 0; argument < function.getNumArguments(); ++argument) {
    ArgumentPort port = argumentPort(function, argument);
    for (const std::string &name : port.dims)
      hasNames |= !name.empty() && !llvm::all_of(name, llvm::isDigit);
    if (!succeeded(dims) || !(*dims)[argument] || port.isState())
      continue;
    size_t dim = size_t(*(*dims)[argument]);
    std::string name = dim < port.dims.size() && !llvm::all_of(port.dims[dim], llvm::isDigit) ? port.dims[dim] : "";
    places += (places.empty() ? "dim " : ", dim ") + std::to_string(dim) + (name.empty() ? "" : ", " + name + ",") + " of '" +
              (port.name.empty() ? "?" : port.name) + "'";
  }
  if (places.empty())
    return "";
  if (hasNames)
    return "; without --batch-dim=NAME the batch is " + places + ": where it is none, name the dim that is";
  return "; the model names no dim, so " + places +
         " counts as the batch: where it is none, export the batch as a dynamic dim called batch";
}

} // namespace hpc::nn
