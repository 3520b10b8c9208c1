// Ops that move elements and compute nothing.
#ifndef HPC_NN_VIEW
#define HPC_NN_VIEW
include "compiler/Dialect/NN/Base.td"

class NN_View<string mnemonic, string access, list<Trait> traits = []> : NN_ComputeOp<mnemonic, access, "None", !listconcat([NN_Differentiable], traits)> {
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
}

def NN_ReshapeOp : NN_View<"reshape", "Alias"> {
  let summary = "the same elements in row-major order under another shape";
  let description = "Rule: regroups sub-dims (viewRule). Constraints: (C1) as many elements, same element type.";
  let arguments = (ins AnyRankedTensor:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
}
def NN_TransposeOp : NN_View<"transpose", "Move", [NN_CountsDims]> {
  let summary = "result dim i is operand dim permutation[i]";
  let description = "Constraints: (C1) `permutation` is one of the operand's dims; the result's shape follows.";
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$permutation);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$permutation)>];
  let hasFolder = 1;
}
def NN_BroadcastOp : NN_View<"broadcast", "Repeat", [LeadingDimsOpInterface]> {
  let summary = "NumPy broadcast to the result's shape (ONNX Expand, one way)";
  let arguments = (ins AnyRankedTensor:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
}
def NN_SliceOp : NN_View<"slice", "Move", [NN_CountsDims,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getShardingRule", "localize"]>]> {
  let summary = "result[i] = operand[starts + i * steps]";
  let description = [{
    Sizes are the result's shape; steps may be negative. An equal part of a dim is a view on (n, rest) (sliceRule), so a cut of `rest` passes through.
    Constraints: (C1) one start and one step per dim. (C2) every index is in range.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
}
def NN_ConcatOp : NN_View<"concat", "Assemble", [NN_CountsDims]> {
  let summary = "operands one after the other along `axis`";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands, I64Attr:$axis);
  let assemblyFormat = "$operands attr-dict `:` type($operands) `->` type($result)";
}
def NN_PadOp : NN_View<"pad", "Assemble", [NN_CountsDims]> {
  let summary = "`low` elements of `value` before and `high` after each dim (constant mode)";
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, AnyAttr:$value);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}
#endif
