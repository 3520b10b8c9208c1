// Scaled dot-product attention, grouped or not.
#ifndef HPC_NN_ATTENTION
#define HPC_NN_ATTENTION
include "compiler/Dialect/NN/Norm.td"

def NN_AttentionOp : NN_Composite<"attention", "Product", [DeclareOpInterfaceMethods<MixedPrecisionOpInterface>]> {
  let summary = "softmax(scale * q k^T + bias, masked) v";
  let description = [{
    query [b, h, q, d], key [b, g, k, d], value [b, g, k, x] -> [b, h, q, x]; h = g * r, head i of the query uses group i / r. With `causal_offset` o, query i
    sees keys j <= i + o; what it does not see counts as -inf. `bias` is added to the scaled scores, broadcast to [b, h, q, k]. `guarded`: weights that are NaN,
    of a query that sees nothing, are 0, and so is its result.
    Rule `b(gr)qd,bgkd,bgkx->b(gr)qx`, d and k never cut (q neither when causal).
    Of 16-bit operands the scores, their softmax and the sums over k are f32; its weights are rounded to 16 bits for the second product, and the result
    to its own type.
    Constraints: (C1) ranks are 4 and shapes as above; (C2) g divides h; (C3) bias broadcasts. (C4) query, key and value have one float element type;
    the result has any float type.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value, Optional<AnyRankedTensor>:$bias,
      F64Attr:$scale, OptionalAttr<I64Attr>:$causal_offset, UnitAttr:$guarded);
  let assemblyFormat = [{ $query `,` $key `,` $value (`bias` $bias^ `:` type($bias))? attr-dict
      `:` type($query) `,` type($key) `,` type($value) `->` type($result) }];
}

def NN_AttentionGradOp : NN_ComputeOp<"attention_grad", "Composite", "Product", [
    DeclareOpInterfaceMethods<CompositeOpInterface>, DeclareOpInterfaceMethods<MixedPrecisionOpInterface>, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "the gradients of an attention's query, key and value";
  let description = [{
    Operands and attributes are those of nn.attention, and the gradient of its result. Probabilities are computed again from query and key, so nothing of
    size q x k is kept from the forward pass. Dao et al. 2022 (FlashAttention), appendix B.2.

        %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %dout {scale = 0.5 : f64} : tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>

    Rule `b(gr)qd,bgkd,bgkx,b(gr)qx->b(gr)qd,bgkd,bgkx`, cut as nn.attention is; linear in the result's gradient.
    Constraints: (C1) to (C3) of nn.attention, whose result has the shape of `gradient`; (C4) query, key, value and gradient have one float type; results have the
    shapes of query, key and value and any float type, to which their sums are rounded once.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value, AnyRankedTensor:$gradient,
      Optional<AnyRankedTensor>:$bias, F64Attr:$scale, OptionalAttr<I64Attr>:$causal_offset, UnitAttr:$guarded);
  let results = (outs AnyRankedTensor:$query_gradient, AnyRankedTensor:$key_gradient, AnyRankedTensor:$value_gradient);
  let assemblyFormat = [{ $query `,` $key `,` $value `,` $gradient (`bias` $bias^ `:` type($bias))? attr-dict
      `:` type($query) `,` type($key) `,` type($value) `,` type($gradient) `->` type($query_gradient) `,` type($key_gradient) `,` type($value_gradient) }];
  let hasVerifier = 1;
}
#endif
