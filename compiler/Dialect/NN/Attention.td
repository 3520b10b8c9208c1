// Scaled dot-product attention, grouped or not.
#ifndef HPC_NN_ATTENTION
#define HPC_NN_ATTENTION
include "compiler/Dialect/NN/Norm.td"

class NN_Attention<string mnemonic, list<Trait> traits> : NN_ComputeOp<mnemonic, "Composite", "Product", !listconcat([AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<CompositeOpInterface>, DeclareOpInterfaceMethods<MixedPrecisionOpInterface>, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getShardingRule", "localize"]>], traits)> {
  let hasVerifier = 1;
}

def NN_AttentionOp : NN_Attention<"attention", [NN_Differentiable]> {
  let summary = "softmax(scale * q k^T where visible + bias, masked) v";
  let description = [{
    query [b, h, q, d], key [b, g, k, d], value [b, g, k, x] -> [b, h, q, x]; h = g * r, head i of the query uses group i / r. Query i is at position i plus the sum
    of `query_start`, key j at position j plus the sum of `key_start`; without them at i and j. `query_positions` [q] or [b, q] stand in place of i: rows in any
    order, or with positions of their own in each sequence of the batch. With `causal_offset` o, a query at position p sees keys up to
    position p + o; what it does not see counts as -inf. Where `visible`, of bools, does not hold, the scaled score is replaced by the number `hidden` (default 0): q
    and k do not count there, NaN neither, and get no gradient. Then `bias` is added. Both broadcast to [b, h, q, k]. A query whose scores are all -inf sees nothing: its result is NaN,
    or 0 where `guarded`, which makes 0 of all weights that are NaN; in either case it gives no gradient.
    `dropout`: after the softmax a weight is 0 with probability `rate`, else divided by 1 - rate, as nn.dropout at `site` would have it of the [b, g, r, q, k]
    weights: `random` is step and seed, and on a rank's part an offset for each of `offset_dims` of `global_shape`, which speak of those five dims.

    Part of the keys: with `log_sum` the op also gives, for each query, the logarithm of the sum of its exponentials, [b, h, q, 2]: the largest score, and the sum of exponentials
    below it, two numbers as one would lose the sum in the size of the scores. A query that sees nothing has -inf and 0. `carried` is the result and the log_sum of an
    attention of the same queries with other keys, which then count here, too: the result is that of all keys together (Dao et al. 2022, FlashAttention, section 3.1).
    A carried result is read only if the carried sum is not 0.

        %o = nn.attention %q, %k, %v query_start %s : tensor<i64> {scale = 0.5 : f64, causal_offset = 0 : i64}
            : tensor<2x4x3x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32> -> tensor<2x4x3x8xf32>

    Rule `b(gr)qd,bgkd,bgkx->b(gr)qx`, d and k never cut; of `query_positions` `q` or `bq`. When causal q is an index, whose offset becomes one more `query_start`; with dropout b, g, r and q are indices. With
    `query_positions` q is none: they are cut as the queries are, and dropout draws for the weights of a query as for those of query `query_positions[i]`.
    Of 16-bit operands the scores, their softmax and the sums over k are f32; its weights are rounded to 16 bits for the second product, and the result
    to its own type.
    Constraints: (C1) ranks are 4 and shapes as above, also those of `carried` and `log_sum`; (C2) g divides h; (C3) bias and visible broadcast; visible holds bools, and `hidden` needs it. (C4) query, key and value have one float element type;
    the result has any float type. (C5) `random` is step and seed of rank 0, and as many offsets as `offset_dims`; 0 <= rate < 1, 0 <= site < 2^32; none of them without
    the others. (C6) `query_start` and `key_start` are numbers of rank 0, whole ones of any float or integer type, and need `causal_offset`.
    (C7) `query_positions` are integers [q] or [b, q], and need `causal_offset` or `dropout`; dropout takes [q]. (C8) `carried` is a result and its log_sum, or
    nothing; both, and `log_sum`, have the type of scores.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value, Optional<AnyRankedTensor>:$bias,
      Optional<AnyRankedTensor>:$visible, Variadic<AnyRankedTensor>:$random,
      Variadic<AnyRankedTensor>:$query_start, Variadic<AnyRankedTensor>:$key_start, Optional<AnyRankedTensor>:$query_positions, Variadic<AnyRankedTensor>:$carried, F64Attr:$scale, OptionalAttr<F64Attr>:$hidden, OptionalAttr<I64Attr>:$causal_offset, UnitAttr:$guarded,
      OptionalAttr<I64Attr>:$site, OptionalAttr<F64Attr>:$rate, OptionalAttr<DenseI64ArrayAttr>:$global_shape, OptionalAttr<DenseI64ArrayAttr>:$offset_dims);
  let results = (outs AnyRankedTensor:$result, Optional<AnyRankedTensor>:$log_sum);
  let assemblyFormat = [{ $query `,` $key `,` $value (`bias` $bias^ `:` type($bias))? (`visible` $visible^ `:` type($visible))? (`dropout` $random^ `:` type($random))?
      (`query_start` $query_start^ `:` type($query_start))? (`key_start` $key_start^ `:` type($key_start))? (`query_positions` $query_positions^ `:` type($query_positions))?
      (`carried` $carried^ `:` type($carried))? attr-dict
      `:` type($query) `,` type($key) `,` type($value) `->` type($result) (`,` type($log_sum)^)? }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$query, "::mlir::Value":$key, "::mlir::Value":$value, "::mlir::Value":$bias,
      "::mlir::FloatAttr":$scale, "::mlir::IntegerAttr":$causal_offset, "::mlir::UnitAttr":$guarded), [{
    build($_builder, $_state, result, ::mlir::Type(), query, key, value, bias, ::mlir::Value(), {}, {}, {}, ::mlir::Value(), {}, scale, {}, causal_offset, guarded, {}, {}, {}, {}); }]>];
}

def NN_AttentionGradOp : NN_Attention<"attention_grad", []> {
  let summary = "the gradients of an attention's query, key and value";
  let description = [{
    Operands and attributes are those of nn.attention, and the gradient of its result. Probabilities are computed again from query and key, so nothing of
    size q x k is kept from the forward pass; so are the weights that were dropped. Dao et al. 2022 (FlashAttention), appendix B.2.

        %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %dout {scale = 0.5 : f64} : tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>

    Part of the keys: `whole` is of an attention of all of them: its log_sum, and the sums over x of its result times `gradient`, [b, h, q, 1]: not read where a query sees nothing. Then the gradient of
    the query is the part that these keys make of it, and those of key and value are complete.

    Rule `b(gr)qd,bgkd,bgkx,b(gr)qx->b(gr)qd,bgkd,bgkx`, cut as nn.attention is; linear in the result's gradient. `whole_sums` (hpc-exact-sums sets it): no layout
    cuts what the op adds up (queries, heads of a group, channels of values), so no sum is rounded before it is complete.
    Constraints: (C1) to (C3) and (C5) to (C7) of nn.attention, whose result has the shape of `gradient`; (C4) query, key, value and gradient have one float type; results have the
    shapes of query, key and value and any float type, to which their sums are rounded once. (C8) `whole` is two tensors of the type of scores, or nothing.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value, AnyRankedTensor:$gradient,
      Optional<AnyRankedTensor>:$bias, Optional<AnyRankedTensor>:$visible, Variadic<AnyRankedTensor>:$random,
      Variadic<AnyRankedTensor>:$query_start, Variadic<AnyRankedTensor>:$key_start, Optional<AnyRankedTensor>:$query_positions, Variadic<AnyRankedTensor>:$whole, F64Attr:$scale, OptionalAttr<F64Attr>:$hidden, OptionalAttr<I64Attr>:$causal_offset, UnitAttr:$guarded,
      OptionalAttr<I64Attr>:$site, OptionalAttr<F64Attr>:$rate, OptionalAttr<DenseI64ArrayAttr>:$global_shape, OptionalAttr<DenseI64ArrayAttr>:$offset_dims, UnitAttr:$whole_sums);
  let results = (outs AnyRankedTensor:$query_gradient, AnyRankedTensor:$key_gradient, AnyRankedTensor:$value_gradient);
  let assemblyFormat = [{ $query `,` $key `,` $value `,` $gradient (`bias` $bias^ `:` type($bias))? (`visible` $visible^ `:` type($visible))? (`dropout` $random^ `:` type($random))?
      (`query_start` $query_start^ `:` type($query_start))? (`key_start` $key_start^ `:` type($key_start))? (`query_positions` $query_positions^ `:` type($query_positions))?
      (`whole` $whole^ `:` type($whole))? attr-dict
      `:` type($query) `,` type($key) `,` type($value) `,` type($gradient) `->` type($query_gradient) `,` type($key_gradient) `,` type($value_gradient) }];
  let builders = [OpBuilder<(ins "::mlir::Type":$query_gradient, "::mlir::Type":$key_gradient, "::mlir::Type":$value_gradient, "::mlir::Value":$query,
      "::mlir::Value":$key, "::mlir::Value":$value, "::mlir::Value":$gradient, "::mlir::Value":$bias, "::mlir::FloatAttr":$scale,
      "::mlir::IntegerAttr":$causal_offset, "::mlir::UnitAttr":$guarded), [{
    build($_builder, $_state, query_gradient, key_gradient, value_gradient, query, key, value, gradient, bias, ::mlir::Value(), {}, {}, {}, ::mlir::Value(), {}, scale, {},
          causal_offset, guarded, {}, {}, {}, {}, {}); }]>];
}
#endif
