// Fused regions, and what a library may compute a kernel as.
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"

namespace hpc::nn {

LogicalResult AttentionTensorAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t argument, Type type, int64_t,
                                          DenseI64ArrayAttr strides) {
  if (argument >= 0 && findDType(type) && strides.size() == 4)
    return success();
  return emitError() << "(C1) a tensor of an attention has four strides and numbers of a known type, in an argument";
}

LogicalResult AttentionAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, AttentionKind kind, int64_t batch, int64_t heads, int64_t groups,
                                    int64_t queries, int64_t keys, int64_t depth, int64_t width, AttentionTensorAttr, AttentionTensorAttr,
                                    AttentionTensorAttr, AttentionTensorAttr, AttentionTensorAttr gradient, ArrayAttr results, FloatAttr,
                                    std::optional<int64_t>, bool) {
  const bool isForward = kind == AttentionKind::forward;
  if (!llvm::all_of(results, llvm::IsaPred<AttentionTensorAttr>) || results.size() != (isForward ? 1 : 3) || isForward == bool(gradient))
    return emitError() << "(C1) an attention has one result forward; backward it has a gradient and three";
  // A rank may have no head.
  if (llvm::any_of(ArrayRef<int64_t>{batch, heads, groups, queries, keys, depth, width}, [](int64_t size) { return size < 0; }) ||
      (groups == 0 ? heads != 0 : heads % groups != 0))
    return emitError() << "(C2) sizes of an attention must not be negative, and its " << groups << " groups must divide its " << heads << " heads";
  return success();
}

/// (C3), (C4)
static LogicalResult verifyCalls(FusedOp op) {
  if (std::optional<ArrayRef<int64_t>> launch = op.getLaunch())
    if (launch->size() != 3 || llvm::any_of(*launch, [](int64_t number) { return number < 0; }))
      return op.emitOpError("(C3) launch must be blocks, threads of a block, and bytes of shared memory");
  const int64_t operands = op.getNumOperands(), results = op.getNumResults();
  auto isOperand = [&](int64_t argument) { return argument >= 0 && argument < operands; };
  bool fits = true;
  if (AttentionAttr attention = op.getAttentionAttr()) {
    for (AttentionTensorAttr tensor : {attention.getQuery(), attention.getKey(), attention.getValue(), attention.getBias(), attention.getGradient()})
      fits &= !tensor || isOperand(tensor.getArgument());
    for (auto tensor : attention.getResults().getAsRange<AttentionTensorAttr>())
      fits &= tensor.getArgument() >= operands && tensor.getArgument() < operands + results;
  }
  if (EpilogueAttr epilogue = op.getEpilogueAttr())
    fits &= isOperand(epilogue.getProduct()) && isOperand(epilogue.getBias()) && results == 1;
  return fits ? success() : op.emitOpError("(C4) attention and epilogue must read some of the ") << operands << " operands and write results";
}

LogicalResult FusedOp::verify() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getOperands().getTypes())
    return emitOpError("(C1) block arguments must have the operands' types");
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getOperandTypes() != getResultTypes())
    return emitOpError("(C1) nn.yield must have the results' types");
  if (failed(verifyCalls(*this)))
    return failure();
  if (!getInPlace())
    return success();
  ArrayRef<int64_t> inPlace = *getInPlace();
  if (inPlace.size() != getNumResults())
    return emitOpError("(C2) in_place has ") << inPlace.size() << " entries for " << getNumResults() << " results";
  for (auto [index, operand] : llvm::enumerate(inPlace)) {
    if (operand == -1)
      continue;
    if (operand < 0 || operand >= int64_t(getNumOperands()))
      return emitOpError("(C2) in_place names operand ") << operand << " of " << getNumOperands();
    if (getOperand(unsigned(operand)).getType() != getResult(unsigned(index)).getType())
      return emitOpError("(C2) result ") << index << " of type " << getResult(unsigned(index)).getType()
                                         << " cannot be written over operand " << operand << " of type "
                                         << getOperand(unsigned(operand)).getType();
    if (llvm::count(inPlace, operand) > 1)
      return emitOpError("(C2) two results are written over operand ") << operand;
  }
  return success();
}

} // namespace hpc::nn
