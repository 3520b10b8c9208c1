// Ids are found by structure: an integer input that reaches the indices of a look-up through views and integer
// arithmetic.
#include "passes/Train/Labels.h"

namespace hpc::train {

static bool isInteger(Value value) { return isa<IntegerType>(nn::tensorType(value).getElementType()); }

/// The arguments of that shape from which `indices` are computed, element by element or as views.
static void collectArguments(Value indices, ArrayRef<int64_t> shape, llvm::SetVector<BlockArgument> &found) {
  llvm::SetVector<Value> open;
  open.insert(indices);
  for (size_t next = 0; next < open.size(); ++next) {
    Value value = open[next];
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (nn::shapeOf(argument) == shape)
        found.insert(argument);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (isView(op) || accessOf(op) == Access::Elementwise)
      for (Value operand : op->getOperands())
        if (isInteger(operand))
          open.insert(operand);
  }
}

bool hasTableOf(func::FuncOp function, int64_t rows) {
  return llvm::any_of(function.getBody().front(), [&](Operation &op) {
    return accessOf(&op) == Access::Lookup && nn::shapeOf(op.getOperand(0)).size() == 2 && nn::shapeOf(op.getOperand(0))[0] == rows &&
           isa<FloatType>(nn::tensorType(op.getResult(0)).getElementType());
  });
}

std::string findIds(func::FuncOp function, ArrayRef<int64_t> shape, int64_t vocabulary) {
  llvm::SetVector<BlockArgument> any, ofVocabulary;
  for (Operation &op : function.getBody().front()) {
    // A lookup reads rows of operand 0, with operand 1 as their indices.
    if (accessOf(&op) != Access::Lookup || !isa<FloatType>(nn::tensorType(op.getResult(0)).getElementType()))
      continue;
    collectArguments(op.getOperand(1), shape, any);
    if (llvm::is_contained(nn::shapeOf(op.getOperand(0)), vocabulary))
      collectArguments(op.getOperand(1), shape, ofVocabulary);
  }
  const auto &candidates = ofVocabulary.size() == 1 ? ofVocabulary : any;
  return candidates.size() == 1 ? nn::argumentPort(function, candidates[0].getArgNumber()).name : std::string();
}

std::vector<std::string> dimsOfLabels(func::FuncOp function, ArrayRef<int64_t> shape, const std::string &like) {
  std::vector<std::string> dims;
  for (int64_t size : shape)
    dims.push_back(std::to_string(size));
  for (BlockArgument argument : function.getArguments()) {
    nn::ArgumentPort port = nn::argumentPort(function, argument.getArgNumber());
    if (port.dims.empty() || dims.empty() || nn::shapeOf(argument).empty())
      continue;
    if (!like.empty() && port.name == like)
      return port.dims;
    if (like.empty() && nn::shapeOf(argument)[0] == shape[0]) {
      dims[0] = port.dims[0];
      break;
    }
  }
  return dims;
}

} // namespace hpc::train
