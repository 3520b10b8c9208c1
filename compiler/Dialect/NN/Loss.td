// Losses that are one op, because spelled out they would hold what is as large as the logits.
#ifndef HPC_NN_LOSS
#define HPC_NN_LOSS
include "compiler/Dialect/NN/Norm.td"

def NN_CrossEntropyOp : NN_ComputeOp<"cross_entropy", "Composite", "Expensive", [NN_Differentiable,
    DeclareOpInterfaceMethods<CompositeOpInterface>, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "loss = -log(softmax(logits)[label]) of every row, top = max(logits), share = 1 / sum(exp(logits - top))";
  let description = [{
    The loss is 0 where the label is `ignore_index` (the lowest i64: no label is), NaN where it is neither that nor in [0, v). All results are in f32 where logits are narrower.
    The gradient of the logits is exp(logits - top) share - (1 at the label), elementwise. top and share stay two numbers: top + log(sum), rounded, loses what a
    large common offset of the logits leaves of the sum.

        %loss, %top, %share = nn.cross_entropy %logits, %labels {ignore_index = -100 : i64}
            : tensor<4x33x503xf32>, tensor<4x33xi64> -> tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>

    Rule `...v,...->...,...,...; internal v`: cut over v, the maximum, the sum and the label's logit (compared, not looked up) are what ranks exchange.
    Constraints: (C1) labels are integers of the logits' shape without the last dim. (C2) results have the labels' shape and the logits' type, at least f32.
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$labels, DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs AnyRankedTensor:$loss, AnyRankedTensor:$top, AnyRankedTensor:$share);
  let assemblyFormat = "$logits `,` $labels attr-dict `:` type($logits) `,` type($labels) `->` type($loss) `,` type($top) `,` type($share)";
  let builders = [OpBuilder<(ins "::mlir::Value":$logits, "::mlir::Value":$labels, "int64_t":$ignoreIndex)>];
  let extraClassDeclaration = [{
    static constexpr int64_t ignoresNone = INT64_MIN;
  }];
  let hasVerifier = 1;
}
#endif
