// DifferentiableOpInterface: how the gradients of an op's operands follow from those of its results.
#ifndef HPC_INTERFACES_DIFFERENTIABLE
#define HPC_INTERFACES_DIFFERENTIABLE
include "mlir/IR/OpBase.td"
include "mlir/IR/Interfaces.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::hpc";
  let description = [{
    Implemented by every op with float results that has a derivative, by ops that make steps (floor, sign) too: nothing flows through those. The rule
    is linear in the gradients of the results, so a factor of the loss may be left out and multiplied in at the end.
  }];
  let methods = [
    InterfaceMethod<[{
        Gives `gradients` what it wants, of the operands, in ops of `nn` that read the op's operands and results. Of a result
        that nothing flows back to there is no gradient; of at least one there is.
      }],
      "void", "buildGradients", (ins "::hpc::GradientBuilder &":$gradients)>,
  ];
}
#endif
