// The order of elements along a dim.
#ifndef HPC_NN_ORDER
#define HPC_NN_ORDER
include "compiler/Dialect/NN/Base.td"

def NN_SortPositionOp : NN_ComputeOp<"sort_position", "Combine", "Expensive", [NN_CountsDims,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "where each element stands once the elements along `axis` are sorted, stably";
  let description = [{
    The inverse of argsort, from 0. Equal elements keep their order (so do -0 and +0); NaN is above all numbers. Ascending unless `descending`. The axis is
    never cut. Generated code compares every element with every other of its row: it is meant for rows of experts and candidates, not for long ones.

        %p = nn.sort_position %x {axis = 1 : i64, descending} : tensor<2x8xf32> -> tensor<2x8xi64>

    Constraints: (C1) the axis is a dim of the operand. (C2) the result is i64 of the operand's shape.
  }];
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$axis, UnitAttr:$descending);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
#endif
