// The `pipe` dialect: when. Stages of a program and the transfers between them.
#ifndef HPC_PIPE
#define HPC_PIPE
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::hpc::pipe";
  let summary = "Pipeline stages and transfers";
  let description = [{
    One function holds all stages in order. A value crosses stages only through `pipe.transfer`; graph inputs reach every stage that reads them.
  }];
}

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, traits>;

def Pipe_StageOp : Pipe_Op<"stage", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "the ops of one program of one stage";
  let description = [{
        %1 = pipe.stage 0 "forward" (%ids) : (tensor<2x33xi64>) -> tensor<2x33x40xf32> {
        ^bb0(%a: tensor<2x33xi64>):
          ...
          pipe.yield %x : tensor<2x33x40xf32>
        }

    Operands are graph inputs and results of transfers. Constraints: (C1) block arguments and yield match operands and results. (C2) operands come from function
    arguments or transfers *to* this stage; results go to returns or transfers *from* it.
  }];
  let arguments = (ins I64Attr:$index, StrAttr:$program, Variadic<AnyRankedTensor>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$index $program `(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
  let hasVerifier = 1;
}

def Pipe_YieldOp : Pipe_Op<"yield", [Pure, Terminator, ParentOneOf<["StageOp"]>]> {
  let summary = "results of a stage";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

def Pipe_TransferOp : Pipe_Op<"transfer", [Pure]> {
  let summary = "a value goes from the ranks of one stage to the ranks of the same coordinate of another";
  let description = [{
        %2 = pipe.transfer %1 {from = 0 : i64, to = 1 : i64} : tensor<2x33x40xf32>

    Constraints: (C1) operand and result types agree. (C2) from < to.
  }];
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$from, I64Attr:$to, OptionalAttr<StrAttr>:$cause, OptionalAttr<StrAttr>:$avoid);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
#endif
