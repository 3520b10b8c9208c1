// CollectiveOpInterface: what an op that works over the ranks of a mesh, or over its micro-batches, does to whom.
#ifndef HPC_INTERFACES_COLLECTIVE
#define HPC_INTERFACES_COLLECTIVE
include "mlir/IR/OpBase.td"
include "mlir/IR/Interfaces.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::hpc";
  let description = [{
    Implemented by the steps of a reshard, which act on boxes of shardings, and by `dist.raw_*`, which act on contiguous blocks and have no shardings.
  }];
  let methods = [
    InterfaceMethod<"What it does.", "::hpc::dist::ReshardStep::Kind", "getCollectiveKind">,
    InterfaceMethod<"The axes of the mesh over which it works.", "::std::vector<::std::string>", "getGroup">,
    InterfaceMethod<"How the values of a group are combined; nothing where they only move.", "::std::optional<::hpc::ReduceKind>", "getReduction">,
    InterfaceMethod<"The step of a reshard that it is: its dims and shardings; nothing on contiguous blocks.", "::std::optional<::hpc::dist::ReshardStep>", "getStep">,
    InterfaceMethod<"Why it is there; may be null.", "::mlir::StringAttr", "getCauseAttr">,
    InterfaceMethod<"", "void", "setCauseAttr", (ins "::mlir::StringAttr":$cause)>,
    InterfaceMethod<"How to do without it; may be null.", "::mlir::StringAttr", "getAvoidAttr">,
  ];
}
#endif
