// The `pipe` dialect: when. Programs of stages and the transfers between them.
#ifndef HPC_PIPE
#define HPC_PIPE
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "compiler/Interfaces/DiscardableAttributes.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::hpc::pipe";
  let summary = "Pipeline stages and transfers";
  let description = [{
    One function holds the programs of all stages, each after what it reads. A value goes to another stage only through `pipe.transfer`; function
    arguments reach every program that reads them; what a program reads of another one of its stage (saved activations) is its result.

    The attribute `pipe.schedule` of the function says when: the text form of runtime/plan/Schedule.h, a string a stage.
  }];
  let hasOperationAttrVerify = 1;
}

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, !listconcat([HPC_NamesItsAttributes], traits)>;

// Names and numbers are those of plan::ProgramKind; receives and drains are no ops, they follow from the transfers.
def Pipe_ProgramKind : I32EnumAttr<"ProgramKind", "which program of a stage", [
    I32EnumAttrCase<"forward", 1>, I32EnumAttrCase<"backward", 4>, I32EnumAttrCase<"weight_gradient", 6>, I32EnumAttrCase<"update", 7>]> {
  let cppNamespace = "::hpc::pipe";
}

def Pipe_StageOp : Pipe_Op<"stage", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "the ops of one program of one chunk of one stage";
  let description = [{
        %1 = pipe.stage 0 forward (%ids) : (tensor<2x33xi64>) -> tensor<2x33x40xf32> {
        ^bb0(%a: tensor<2x33xi64>):
          ...
          pipe.yield %x : tensor<2x33x40xf32>
        }
        %3 = pipe.stage 0 chunk 1 forward (%2) : ...

    A stage that owns several parts of the model has a chunk for each. `forward`, `backward` and `weight_gradient` run once a micro-batch, `update` once a
    step. An update that reads what another stage's update computes is several ops in a row, its rounds. Constraints: (C1) block arguments and yield match operands and results. (C2) operands come from function arguments, transfers *to* this stage, or
    other programs of it; transfers of results leave *from* it.
  }];
  let arguments = (ins I64Attr:$index, DefaultValuedAttr<I64Attr, "0">:$chunk, Pipe_ProgramKind:$program, Variadic<AnyRankedTensor>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$index (`chunk` $chunk^)? $program `(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
  let hasVerifier = 1;
}

def Pipe_YieldOp : Pipe_Op<"yield", [Pure, Terminator, ParentOneOf<["StageOp"]>]> {
  let summary = "results of a program";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

def Pipe_TransferOp : Pipe_Op<"transfer", [Pure]> {
  let summary = "a value goes from the ranks of one stage to the ranks of the same coordinate of another";
  let description = [{
        %2 = pipe.transfer %1 {from = 0 : i64, to = 1 : i64} : tensor<2x33x40xf32>

    Any two different stages, both ways: activations go on, gradients come back, an update exchanges both. Constraints: (C1) operand and result types
    agree. (C2) from != to, neither is negative.
  }];
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$from, I64Attr:$to, OptionalAttr<StrAttr>:$cause, OptionalAttr<StrAttr>:$avoid);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
#endif
