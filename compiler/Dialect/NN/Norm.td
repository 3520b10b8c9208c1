// Composites over the last dim: layer norm, RMS norm, softmax. decompose() is their definition.
#ifndef HPC_NN_NORM
#define HPC_NN_NORM
include "compiler/Dialect/NN/Base.td"

class NN_Composite<string mnemonic, string effort, list<Trait> traits = []> : NN_ComputeOp<mnemonic, "Composite", effort, !listconcat([
    NN_Differentiable, DeclareOpInterfaceMethods<CompositeOpInterface>, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>], traits)> {
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
}

def NN_LayerNormOp : NN_Composite<"layer_norm", "Expensive", [AttrSizedOperandSegments, LeadingDimsOpInterface]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * weight + bias over the last dim";
  let description = [{
    Rule `...e,e,e->...e; internal e`. Ba, Kiros, Hinton 2016; the variance is the biased one, computed as mean((x - mean)^2).
    Constraints: (C1) weight and bias, where present, are [e].
  }];
  let arguments = (ins AnyRankedTensor:$operand, Optional<AnyRankedTensor>:$weight, Optional<AnyRankedTensor>:$bias, F64Attr:$epsilon);
  let assemblyFormat = "$operand (`weight` $weight^ `:` type($weight))? (`bias` $bias^ `:` type($bias))? attr-dict `:` type($operand) `->` type($result)";
}
def NN_RmsNormOp : NN_Composite<"rms_norm", "Expensive", [LeadingDimsOpInterface]> {
  let summary = "x / sqrt(mean(x^2) + epsilon) * weight over the last dim";
  let description = "Rule `...e,e->...e; internal e`. Zhang, Sennrich 2019. Constraints: (C1) weight, where present, is [e].";
  let arguments = (ins AnyRankedTensor:$operand, Optional<AnyRankedTensor>:$weight, F64Attr:$epsilon);
  let assemblyFormat = "$operand (`weight` $weight^ `:` type($weight))? attr-dict `:` type($operand) `->` type($result)";
}
def NN_SoftmaxOp : NN_Composite<"softmax", "Expensive", [LeadingDimsOpInterface]> {
  let summary = "exp(x - max) / sum over the last dim";
  let description = "Rule `...e->...e; internal e`. A row of -inf only gives NaN, as the formula does.";
  let arguments = (ins AnyRankedTensor:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$operand), [{ build($_builder, $_state, operand.getType(), operand); }]>];
}
#endif
