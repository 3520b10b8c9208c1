// StructureOpInterface: how an op's results read its operands, and how much work an element is. Fusion, staging and
// lowering decide by it what to clone, what shares a buffer and what is computed once.
#ifndef HPC_INTERFACES_STRUCTURE
#define HPC_INTERFACES_STRUCTURE
include "mlir/IR/OpBase.td"
include "mlir/IR/Interfaces.td"

def StructureOpInterface : OpInterface<"StructureOpInterface"> {
  let cppNamespace = "::hpc";
  let description = [{
    Implemented by every op of one process without regions: all of `nn` but the terminators, and the local ops of `dist`. An op says both beside its
    name in ODS (`HPC_Structure`), as a property of the op whatever its shapes and attributes.
  }];
  let methods = [
    InterfaceMethod<"Where an element of a result comes from.", "::hpc::Access", "getAccess">,
    InterfaceMethod<"How much work an element of a result is, its operands given.", "::hpc::Effort", "getEffort">,
  ];
}

/// The answers, as names of the enums in compiler/Interfaces/Structure.h.
class HPC_Structure<string access, string effort>
    : ParamNativeOpTrait<"Structured", "::hpc::Access::" # access # ", ::hpc::Effort::" # effort> {
  let cppNamespace = "::hpc";
}
#endif
