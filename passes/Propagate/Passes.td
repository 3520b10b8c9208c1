// The passes of phase propagate, in the order in which they run.
#ifndef HPC_PASSES_PROPAGATE
#define HPC_PASSES_PROPAGATE
include "mlir/Pass/PassBase.td"

def PropagateShardings : Pass<"hpc-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor of @main one sharding, from seeds on a few";
  let description = [{
    Before: `dist.seed` on some ops and arguments. After: every type carries its sharding, every computing op `dist.factors` (how its loops are cut) and
    every op with results its `hpc.id`; the seeds are gone. A matmul whose contracted factor is cut gives a partial sum:

        %w = nn.parameter "c_proj" {dist.seed = #dist.sharding<"[72@tp, 40]">} : tensor<72x40xf32>
        %y = nn.matmul %h, %w : tensor<2x33x72xf32>, tensor<72x40xf32> -> tensor<2x33x40xf32>
        // becomes
        %w = nn.parameter "c_proj" : tensor<72x40xf32, #dist.sharding<"[72@tp, 40]">>
        %y = nn.matmul %h, %w {dist.factors = #dist.sharding<"[2, 33, 72@tp, 40]">} : ... -> tensor<2x33x40xf32, #dist.sharding<"[2, 33, 40] partial{tp}">>

    Seeds of the user go before those of default layouts, weights before activations; a conflict between activations is decided by bytes moved and
    reported as a remark.
  }];
  let dependentDialects = ["::hpc::dist::DistDialect"];
}

def VerifyPropagated : Pass<"hpc-verify-propagated", "::mlir::ModuleOp"> {
  let summary = "Every tensor has exactly one legal sharding; partial results are explicit";
  let description = "Changes nothing. Checks types against the op's rule and `dist.factors`, that ids are unique and that no seed is left.";
}
#endif
