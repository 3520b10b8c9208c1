// ShardingRuleOpInterface: how the dims of an op relate, and how it becomes local. The only question that propagation and
// partition ask of an op.
#ifndef HPC_INTERFACES_SHARDINGRULE
#define HPC_INTERFACES_SHARDINGRULE
include "mlir/IR/OpBase.td"
include "mlir/IR/Interfaces.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::hpc";
  let description = [{
    Implemented by every op of `nn` that computes. The rule is a function of the *global* shapes of the op's operands and results.
  }];
  let methods = [
    InterfaceMethod<"The op's factors and where they appear.", "::hpc::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
        Creates the op on local operands with the given local result types. `offsets` has one value per index factor of the rule that is
        cut (in factor order): a tensor<i64> with the first global index that the rank holds. The default clones the op with new
        operands and types; ops whose attributes speak of sizes (slice, iota) or that read global coordinates override it.
      }],
      "::mlir::Operation *", "localize",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands, "::mlir::TypeRange":$resultTypes,
           "::mlir::ValueRange":$offsets), /*methodBody=*/"", /*defaultImplementation=*/[{
        ::mlir::OperationState state($_op->getLoc(), $_op->getName(), operands, resultTypes, $_op->getAttrs());
        return builder.create(state);
      }]>,
  ];
}

def CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::hpc";
  let description = [{
    An op that is defined by simpler `nn` ops. Its decomposition is its definition for the interpreter, for partition (when a factor that it
    reduces over is cut) and for kernels.
  }];
  let methods = [
    InterfaceMethod<"Builds the definition with `builder` and returns one value per result, of the result's shape and element type.",
      "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>,
  ];
}
#endif
