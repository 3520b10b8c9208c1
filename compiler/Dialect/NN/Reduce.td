// Reductions. Reduced dims stay, with size 1. A mean is a sum times 1/n.
#ifndef HPC_NN_REDUCE
#define HPC_NN_REDUCE
include "compiler/Dialect/NN/Base.td"
include "compiler/Interfaces/ReduceKind.td"

def NN_ReduceKindAttr : HPC_ReduceKindAttr<NN_Dialect>;

def NN_ReduceOp : NN_ComputeOp<"reduce", "Combine", "Expensive", [NN_CountsDims, NN_Differentiable,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "combines all elements along `axes`";
  let description = [{
    Sums accumulate in fp32 or wider; max and min propagate NaN. Rule: reduceRule; `sum` passes partials. The gradient of a maximum is shared among equal elements, as PyTorch's amax
    has it; with `first` (a pool's) it goes to the first of them, in row-major order along the axes.
    Constraints: (C1) axes are dims of the operand, sorted; the result has size 1 there and the operand's size elsewhere.
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, AnyRankedTensor:$operand, DenseI64ArrayAttr:$axes, UnitAttr:$first);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $operand attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::hpc::ReduceKind":$kind, "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$axes)>];
  let hasVerifier = 1;
}
#endif
