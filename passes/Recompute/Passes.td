// The passes of phase recompute, in the order in which they run.
#ifndef HPC_PASSES_RECOMPUTE
#define HPC_PASSES_RECOMPUTE
include "mlir/Pass/PassBase.td"

def Recompute : Pass<"hpc-recompute", "::mlir::ModuleOp"> {
  let summary = "what backward reads of forward is kept, or computed again where it is read";
  let description = [{
    `policy` says what may be computed again:

    - `none`: nothing; every value that backward reads is kept. As with all policies but `auto`, an activation that is gathered for a product whose weight is gathered, too (`2d`, `3d`), is kept in
      pieces and gathered again: such a layout promises memory.
    - `attention`: what lies between two products of activations (scores and probabilities), where attention is not one op, whose gradient keeps nothing of it anyway.
      Rows that are gathered for a product (`--sp`) are gathered again, so that a rank keeps its own. Korthikanti et al. 2022, section 5.
    - `full`: all but what goes from one block (hpc-split-stages marks them) to another.
    - `auto`: as `full`, and of that only what is cheapest, until all that a stage keeps is within its entry of `budgets`, in bytes.

    What is kept and what is not is a minimum cut of forward's program (KeptValues.h). The chain of ops behind a value that is not kept is cloned into backward,
    before the first op that reads it, as far back as kept values, parameters and inputs of the function; collectives in it are run again. A weight gradient's own
    program computes for itself. A parameter that is gathered (ZeRO 3) is never kept, whatever the policy.

        %0:2 = pipe.stage 0 forward(%x) ... {           // yields the input of a gelu, and its result
        %3 = pipe.stage 0 backward(%2, %0#0, %0#1) ...  // reads both

        %0 = pipe.stage 0 forward(%x) ... {
        %3 = pipe.stage 0 backward(%2, %0) ... {
          %g = nn.gelu %arg1 ...                        // its location says that it is a repetition (compiler/StepPart.h)

    The module attribute `hpc.kept_bytes` says what each stage keeps: bytes of all slots.
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"none\"", "none, attention, full or auto">,
    Option<"panels", "panels", "bool", "false", "gathered operands of products are never kept either: hpc-panel-products takes them in panels, in every program by itself">,
    ListOption<"budgets", "budgets", "int64_t", "for auto: bytes that each stage may keep; none: as many as it likes">,
  ];
  let dependentDialects = ["::hpc::pipe::PipeDialect"];
}

def VerifyRecomputed : Pass<"hpc-verify-recomputed", "::mlir::ModuleOp"> {
  let summary = "check: what backward takes of forward is a value of the micro-batch, never a gathered parameter, and no op carries a block's mark";
}
#endif
