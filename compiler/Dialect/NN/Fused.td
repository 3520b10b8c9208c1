// Fused regions: all that the kernel emitter sees.
#ifndef HPC_NN_FUSED
#define HPC_NN_FUSED
include "compiler/Dialect/NN/Base.td"

def NN_FusedOp : NN_Op<"fused", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "ops that become one generated kernel";
  let description = [{
    Isolated: block arguments stand for the operands. `symbol` is the kernel's name in the generated object, the same for equal regions.

        %y = nn.fused "gelu_0" (%x) : (tensor<2x8xf32>) -> tensor<2x8xf32> {
        ^bb0(%a: tensor<2x8xf32>):
          %g = nn.gelu %a : tensor<2x8xf32> -> tensor<2x8xf32>
          nn.yield %g : tensor<2x8xf32>
        }

    Constraints: (C1) block arguments have the operands' types, the yield the results'.
  }];
  let arguments = (ins StrAttr:$symbol, Variadic<AnyRankedTensor>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$symbol `(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
  let hasVerifier = 1;
}

def NN_YieldOp : NN_Op<"yield", [Pure, Terminator, ParentOneOf<["FusedOp"]>]> {
  let summary = "results of a fused region";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}
#endif
