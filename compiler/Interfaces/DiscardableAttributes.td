// The trait of every op of ours: an attribute that is not the op's own has the prefix of a dialect.
#ifndef HPC_INTERFACES_DISCARDABLEATTRIBUTES
#define HPC_INTERFACES_DISCARDABLEATTRIBUTES
include "mlir/IR/OpBase.td"

def HPC_NamesItsAttributes : NativeOpTrait<"NamesItsAttributes"> {
  let cppNamespace = "::hpc";
}
#endif
