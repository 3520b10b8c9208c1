// Fused regions: all that the kernel emitter sees.
#ifndef HPC_NN_FUSED
#define HPC_NN_FUSED
include "compiler/Dialect/NN/Base.td"

def NN_KernelScalarKind : I32EnumAttr<"KernelScalarKind", "what a number tells a kernel about the part of a dim that its rank holds", [
    I32EnumAttrCase<"offset", 0>, I32EnumAttrCase<"extent", 1>]> {
  let cppNamespace = "::hpc::nn";
  let genSpecializedAttr = 0;
}
def NN_KernelScalarAttr : AttrDef<NN_Dialect, "KernelScalar"> {
  let mnemonic = "scalar";
  let summary = "a number that a kernel takes: `#nn.scalar<extent of #dist.sharding<\"[5@tp]\">>`";
  let description = [{
    `dim` is the sharding of one dim of one sub-dim. The number is `start` (offset) or `extent` of `heldDigits(subDim, mesh, coordinate)`; a sub-dim that
    a coordinate holds nothing of has extent 0. Time axes may be among its axes. `further n`: of the coordinate that is n further along the last of its axes, in a ring.
  }];
  let parameters = (ins EnumParameter<NN_KernelScalarKind>:$kind, "::mlir::Attribute":$dim, DefaultValuedParameter<"int64_t", "0">:$shift);
  let assemblyFormat = "`<` $kind `of` $dim (`further` $shift^)? `>`";
}
def NN_KernelScalarArrayAttr : TypedArrayAttrBase<NN_KernelScalarAttr, "numbers that a kernel takes, in its order">;

/// The operation that a library may compute in place of a kernel. Arguments are numbered as the kernel's: operands, then results.
def NN_AttentionKind : I32EnumAttr<"AttentionKind", "an attention or its gradients", [I32EnumAttrCase<"forward", 0>, I32EnumAttrCase<"backward", 1>]> {
  let cppNamespace = "::hpc::nn";
  let genSpecializedAttr = 0;
}
def NN_AttentionTensorAttr : AttrDef<NN_Dialect, "AttentionTensor"> {
  let mnemonic = "attention_tensor";
  let summary = "a tensor of rank 4 in an argument of a kernel: plan::AttentionTensor";
  let description = "Element (batch, head, position, channel) is number `offset` + the sum of index * stride. Constraints: (C1) four strides, an argument, numbers of a known type.";
  let parameters = (ins "int64_t":$argument, "::mlir::Type":$type, DefaultValuedParameter<"int64_t", "0">:$offset, "::mlir::DenseI64ArrayAttr":$strides);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def NN_AttentionAttr : AttrDef<NN_Dialect, "Attention"> {
  let mnemonic = "attention";
  let summary = "that a kernel is an attention: plan::Attention";
  let description = [{
        #nn.attention<kind = forward, batch = 2, heads = 4, groups = 4, queries = 16, keys = 16, depth = 8, width = 8, query = <argument = 0, type = f32, strides = [512, 8, 32, 1]>,
          key = <..>, value = <..>, results = [#nn.attention_tensor<..>], scale = 5.000000e-01 : f64, causal_offset = 0 : i64>

    Constraints: (C1) `results` has one tensor forward, three backward, which has a `gradient`. (C2) no size is negative, and `groups` divides `heads`.
  }];
  let parameters = (ins EnumParameter<NN_AttentionKind>:$kind, "int64_t":$batch, "int64_t":$heads, "int64_t":$groups, "int64_t":$queries, "int64_t":$keys, "int64_t":$depth,
      "int64_t":$width, "::hpc::nn::AttentionTensorAttr":$query, "::hpc::nn::AttentionTensorAttr":$key, "::hpc::nn::AttentionTensorAttr":$value,
      OptionalParameter<"::hpc::nn::AttentionTensorAttr">:$bias, OptionalParameter<"::hpc::nn::AttentionTensorAttr">:$gradient, "::mlir::ArrayAttr":$results,
      "::mlir::FloatAttr":$scale, OptionalParameter<"::std::optional<int64_t>">:$causal_offset, DefaultValuedParameter<"bool", "false">:$guarded);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def NN_EpilogueKind : I32EnumAttr<"EpilogueKind", "what a library does to a matrix product before it is stored: plan::EpilogueKind", [
    I32EnumAttrCase<"bias", 0>, I32EnumAttrCase<"bias_relu", 1>, I32EnumAttrCase<"bias_gelu_tanh", 2>]> {
  let cppNamespace = "::hpc::nn";
  let genSpecializedAttr = 0;
}
def NN_EpilogueAttr : AttrDef<NN_Dialect, "Epilogue"> {
  let mnemonic = "epilogue";
  let summary = "that a kernel is a product's epilogue: `#nn.epilogue<bias_relu, product = 0, bias = 1>`";
  let parameters = (ins EnumParameter<NN_EpilogueKind>:$kind, "int64_t":$product, "int64_t":$bias);
  let assemblyFormat = "`<` $kind `,` `product` `=` $product `,` `bias` `=` $bias `>`";
}

def NN_FusedOp : NN_Op<"fused", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "ops that become one generated kernel";
  let description = [{
    Isolated: block arguments stand for the operands. `symbol` is the kernel's name in the generated object, the same for equal regions.

        %y = nn.fused "gelu_2x8_0" (%x) {rows = 2 : i64, scalars = []} : (tensor<2x8xf32>) -> tensor<2x8xf32> {
        ^bb0(%a: tensor<2x8xf32>):
          %g = nn.gelu %a : tensor<2x8xf32> -> tensor<2x8xf32>
          nn.yield %g : tensor<2x8xf32>
        }

    `rows` and `scalars` are there once the region has code: the kernel is called for row ranges of 0..rows, with `scalars` in order (passes/Kernels/README.md).
    `in_place`, where it is there, has one entry per result: the operand whose buffer this result is written over, or -1. Result and operand must then be one
    buffer; without it no result shares a byte with any other argument.
    `adds_over`, on one with a single result: the axis of time over which a dist.accumulate, its reader, adds it up. The code does that itself: where the coordinate is 0 it writes the
    result's buffer, else it adds to what is there. From hpc-write-in-place to lower.
    `launch`: blocks, threads of a block and bytes of shared memory on a device. `attention` and `epilogue`: what a backend's library may compute it as (hpc-emit-kernels).

    Constraints: (C1) block arguments have the operands' types, the yield the results'. (C2) `in_place` has one entry per result, each -1 or an operand of the
    result's type that no other result is written over. (C3) `launch` has three numbers, none of them negative. (C4) `attention` and `epilogue` read operands and write results.
  }];
  let arguments = (ins StrAttr:$symbol, Variadic<AnyRankedTensor>:$operands, OptionalAttr<I64Attr>:$rows,
      OptionalAttr<NN_KernelScalarArrayAttr>:$scalars, OptionalAttr<DenseI64ArrayAttr>:$in_place, OptionalAttr<StrAttr>:$adds_over,
      OptionalAttr<DenseI64ArrayAttr>:$launch, OptionalAttr<NN_AttentionAttr>:$attention, OptionalAttr<NN_EpilogueAttr>:$epilogue);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$symbol `(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::llvm::StringRef":$symbol, "::mlir::ValueRange":$operands), [{
    build($_builder, $_state, results, symbol, operands, ::mlir::IntegerAttr(), ::mlir::ArrayAttr(), ::mlir::DenseI64ArrayAttr(), ::mlir::StringAttr(),
          ::mlir::DenseI64ArrayAttr(), ::hpc::nn::AttentionAttr(), ::hpc::nn::EpilogueAttr()); }]>];
  let extraClassDeclaration = [{
    /// The operand whose buffer result `index` is written over, or -1.
    int64_t inPlaceOperand(unsigned index) { return getInPlace() ? (*getInPlace())[index] : -1; }
  }];
  let hasVerifier = 1;
}

def NN_YieldOp : NN_Op<"yield", [Pure, Terminator, ParentOneOf<["FusedOp"]>]> {
  let summary = "results of a fused region";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}
#endif
