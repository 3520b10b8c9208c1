// Generation needs a graph with one input of ids and one output of logits. Types, and the tables that ids look up, say which they
// are; names do not.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/Ports.h"
#include "passes/Generate/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_KEEPLOGITS
#include "passes/Generate/Passes.h.inc"

/// "'logits' (tensor<2x16x257xf32>), 'hidden' (...)".
static std::string list(ArrayRef<std::pair<std::string, Type>> ports) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::interleaveComma(ports, out, [&](const auto &port) { out << "'" << port.first << "' (" << port.second << ")"; });
  return text.empty() ? "none" : text;
}

/// How many rows the tables have that integer inputs look up.
static llvm::DenseSet<int64_t> vocabularies(func::FuncOp function) {
  llvm::DenseSet<int64_t> sizes;
  for (BlockArgument argument : function.getArguments())
    for (const nn::Lookup &lookup : nn::findLookups(argument))
      sizes.insert(lookup.high);
  return sizes;
}

/// Removes all results but logits.
static LogicalResult keepLogits(func::FuncOp function, int64_t length) {
  Operation *terminator = function.front().getTerminator();
  const llvm::DenseSet<int64_t> columns = vocabularies(function);
  SmallVector<unsigned> likely, sure;
  std::vector<std::pair<std::string, Type>> outputs;
  for (OpOperand &operand : terminator->getOpOperands()) {
    RankedTensorType type = nn::tensorType(operand.get());
    outputs.emplace_back(nn::resultPort(function, operand.getOperandNumber()).name, type);
    if (!isa<FloatType>(type.getElementType()) || type.getRank() != 3 || type.getDimSize(1) != length)
      continue;
    likely.push_back(operand.getOperandNumber());
    if (columns.contains(type.getDimSize(2)))
      sure.push_back(operand.getOperandNumber());
  }
  const SmallVector<unsigned> &found = likely.size() == 1 ? likely : sure;
  if (found.size() != 1)
    return userError(function, ErrorKind::Model) << "--generate needs one output of logits, floats [batch, " << length << ", vocabulary], and the model has "
                                                 << (found.empty() ? "none" : "several") << ": " << list(outputs) << "; export it with the logits alone";
  const nn::ResultPort port = nn::resultPort(function, found[0]);
  if (outputs.size() > 1)
    mlir::emitRemark(function.getLoc()) << "--generate keeps output '" << port.name << "' alone, of " << outputs.size() << "; no step reads the others";
  Value logits = terminator->getOperand(found[0]);
  terminator->setOperands(logits);
  function.setFunctionType(FunctionType::get(function.getContext(), function.getArgumentTypes(), logits.getType()));
  function.setAllResultAttrs(ArrayRef<DictionaryAttr>{DictionaryAttr::get(function.getContext())});
  nn::setResultPort(function, 0, port);
  return success();
}

/// Removes inputs that nothing reads. What remains must be ids.
static LogicalResult keepIds(func::FuncOp function, int64_t length) {
  llvm::BitVector unread(function.getNumArguments());
  std::vector<std::pair<std::string, Type>> others;
  unsigned ids = 0;
  for (BlockArgument argument : function.getArguments()) {
    RankedTensorType type = nn::tensorType(argument);
    if (argument.use_empty())
      unread.set(argument.getArgNumber());
    else if (type.getRank() == 2 && isa<IntegerType>(type.getElementType()) && type.getDimSize(1) == length && ++ids == 1)
      continue;
    else
      others.emplace_back(nn::argumentPort(function, argument.getArgNumber()).name, type);
  }
  if (ids != 1 || !others.empty())
    return userError(function, ErrorKind::Model) << "--generate fills one input, ids [batch, " << length << "], and the model " << (ids ? "also reads " : "reads ") << list(others)
                                                 << "; bind other inputs with --const NAME=FILE, or export the model without";
  return function.eraseArguments(unread);
}

namespace {
struct KeepLogits : impl::KeepLogitsBase<KeepLogits> {
  using KeepLogitsBase::KeepLogitsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    if (failed(keepLogits(function, length)))
      return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
      if (isOpTriviallyDead(&op))
        op.erase();
    if (failed(keepIds(function, length)))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
