// CostOpInterface: floating-point operations of an op on the shapes that it has (global before partition, local after).
#ifndef HPC_INTERFACES_COST
#define HPC_INTERFACES_COST
include "mlir/IR/OpBase.td"
include "mlir/IR/Interfaces.td"

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::hpc";
  let methods = [
    InterfaceMethod<"Floating-point operations (a multiply-add counts two); elementwise ops count one per result element.",
      "int64_t", "getFlops", (ins), /*methodBody=*/"", /*defaultImplementation=*/[{
        int64_t elements = 0;
        for (::mlir::Type type : $_op->getResultTypes())
          if (auto shaped = ::mlir::dyn_cast<::mlir::RankedTensorType>(type))
            elements += shaped.getNumElements();
        return elements;
      }]>,
  ];
}
#endif
