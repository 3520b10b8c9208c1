// MixedPrecisionOpInterface: which operands of an op may be narrower than what it computes in.
#ifndef HPC_INTERFACES_MIXEDPRECISION
#define HPC_INTERFACES_MIXEDPRECISION
include "mlir/IR/OpBase.td"
include "mlir/IR/Interfaces.td"

def MixedPrecisionOpInterface : OpInterface<"MixedPrecisionOpInterface"> {
  let cppNamespace = "::hpc";
  let description = [{
    Implemented by ops whose work is products that hardware does faster on 16-bit operands, with sums in f32. The op takes its narrow operands
    in any float type, one for all of them; the types of its other operands and of its results say in what it computes beside the products.
  }];
  let methods = [
    InterfaceMethod<"The operands that are only multiplied, by index.", "::llvm::SmallVector<unsigned>", "getNarrowOperands">,
  ];
}
#endif
