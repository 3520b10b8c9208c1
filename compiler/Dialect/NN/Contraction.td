// Matrix products.
#ifndef HPC_NN_CONTRACTION
#define HPC_NN_CONTRACTION
include "compiler/Dialect/NN/Base.td"

def NN_MatmulOp : NN_ComputeOp<"matmul", "Product", "Product", [LeadingDimsOpInterface, NN_Differentiable,
    DeclareOpInterfaceMethods<MixedPrecisionOpInterface>, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "batched matrix product, leading dims broadcast";
  let description = [{
    Rule `...mk,...kn->...mn` (`km` with transpose_lhs, `nk` with transpose_rhs); linear in each operand. No bias: importers split Gemm.

        %y = nn.matmul %x, %wte {transpose_rhs} : tensor<4x33x40xf32>, tensor<503x40xf32> -> tensor<4x33x503xf32>

    Constraints: (C1) both operands have rank 2 or more. (C2) k agrees; the result's shape follows. (C3) operands of one float element
    type, or the right one of i8 (the codes of a weight, whose scales come behind); the result has any float type, to which the sum (in f32 or wider) is rounded once.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, CArg<"bool", "false">:$transposeLhs, CArg<"bool", "false">:$transposeRhs)>];
  let hasVerifier = 1;
}
#endif
