// Ops that draw random numbers. What they draw is a function of seed, step, site and global position, so no cut, schedule
// or recomputation changes it.
#ifndef HPC_NN_RANDOM
#define HPC_NN_RANDOM
include "compiler/Dialect/NN/Base.td"

def NN_DropoutOp : NN_ComputeOp<"dropout", "Elementwise", "Expensive", [LeadingDimsOpInterface, NN_Differentiable,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getShardingRule", "localize"]>]> {
  let summary = "each element with probability `rate` 0, else x / (1 - rate)";
  let description = [{
    An element is dropped where the first word of Philox 4x32-10 (runtime/base/Philox.h) is below rate * 2^32. Its key is the seed; its counter is, in words
    from the first, the element's row-major position in the *global* tensor (two words), the step and the site. Steps count from 1: in step 0, an evaluation, the result is x. `step` and `seed` are step scalars of rank 0, whole
    numbers of any float or integer type. The gradient is the same op of the cotangent: nothing is kept for it.

        %y = nn.dropout %x, %step, %seed {site = 3 : i64, rate = 1.0e-1 : f64} : tensor<4x33x40xf32>, tensor<f64>, tensor<f64> -> tensor<4x33x40xf32>

    Rule: elementwise, linear in x, every dim an index: a dim that is cut brings an offset (a tensor<i64>). With offsets, `global_shape` is the shape of the whole
    tensor, and `offset_dims` says which dims they are of. An offset that is a vector has the position of each index of its dim, in any order; it is cut as the dim
    is, which is no index.
    Constraints: (C1) the result has x's type, floats. (C2) 0 <= rate < 1, 0 <= site < 2^32. (C3) step and seed have rank 0. (C4) an offset a dim of `offset_dims`,
    no number without `global_shape`, which has x's rank; a vector has as many integers as its dim.
  }];
  let arguments = (ins AnyRankedTensor:$operand, AnyRankedTensor:$step, AnyRankedTensor:$seed, Variadic<AnyRankedTensor>:$offsets,
      I64Attr:$site, F64Attr:$rate, OptionalAttr<DenseI64ArrayAttr>:$global_shape, OptionalAttr<DenseI64ArrayAttr>:$offset_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $operand `,` $step `,` $seed (`offsets` $offsets^ `:` type($offsets))? attr-dict `:` type($operand) `,` type($step) `,` type($seed) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Value":$step, "::mlir::Value":$seed, "int64_t":$site, "double":$rate), [{
    build($_builder, $_state, operand.getType(), operand, step, seed, ::mlir::ValueRange(), uint64_t(site), ::llvm::APFloat(rate), {}, {}); }]>];
  let extraClassDeclaration = [{
    /// The whole tensor's, also after partition.
    ::llvm::ArrayRef<int64_t> getWholeShape();
  }];
  let hasVerifier = 1;
}
#endif
