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
    a coordinate holds nothing of has extent 0. Time axes may be among its axes.
  }];
  let parameters = (ins EnumParameter<NN_KernelScalarKind>:$kind, "::mlir::Attribute":$dim);
  let assemblyFormat = "`<` $kind `of` $dim `>`";
}
def NN_KernelScalarArrayAttr : TypedArrayAttrBase<NN_KernelScalarAttr, "numbers that a kernel takes, in its order">;

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

    Constraints: (C1) block arguments have the operands' types, the yield the results'. (C2) `in_place` has one entry per result, each -1 or an operand of the
    result's type that no other result is written over.
  }];
  let arguments = (ins StrAttr:$symbol, Variadic<AnyRankedTensor>:$operands, OptionalAttr<I64Attr>:$rows,
      OptionalAttr<NN_KernelScalarArrayAttr>:$scalars, OptionalAttr<DenseI64ArrayAttr>:$in_place);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$symbol `(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::llvm::StringRef":$symbol, "::mlir::ValueRange":$operands), [{
    build($_builder, $_state, results, symbol, operands, ::mlir::IntegerAttr(), ::mlir::ArrayAttr(), ::mlir::DenseI64ArrayAttr()); }]>];
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
