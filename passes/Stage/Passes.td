// The passes of phase stage, in the order in which they run.
#ifndef HPC_PASSES_STAGE
#define HPC_PASSES_STAGE
include "mlir/Pass/PassBase.td"

def SplitStages : Pass<"hpc-split-stages", "::mlir::ModuleOp"> {
  let summary = "cut @main into the programs of pipeline stages";
  let description = [{
    What stands behind a product with a weight is computed once; what does not (positions, masks, slopes, a bias that all layers share) is cheap to
    repeat and is computed in every part that reads it, as are weights and what is made of weights alone. Places to cut lie between products; where the
    graph repeats a pattern of them (layers), they lie between its repetitions, and what comes before the first or after the last belongs to it.

    Before: a function of local ops. After: `pipe.stage` programs; a stage has `chunks` parts, part k is chunk k / stages of stage k mod stages.

        %0:2 = pipe.stage 0 forward(%x) ...             // what goes on, what backward reads
        %1 = pipe.transfer %0#0 ...
        %2:2 = pipe.stage 1 forward(%1, %labels) ...
        %3:2 = pipe.stage 1 backward(%2#1) ...          // the gradient that goes back, dist.accumulate of each parameter's
        %4 = pipe.transfer %3#0 ...
        %5 = pipe.stage 0 backward(%4, %0#1) ...
        %6 = pipe.stage 0 update(%lr, %5) ...           // yields the next value of a parameter

    Values go from part to part; one that is read further on goes through all parts between. A gradient is computed in the part of the op that it
    differentiates. With one stage gradients are part of `forward`, unless the schedule has a backward; `weight_gradient` is there where the schedule has
    W. What depends on a sum over micro-batches, what is marked as update and what is written to parameters and states is in `update`, one of a stage
    whatever its chunks; with one stage, one micro-batch and no backward it stays in `forward`. A parameter that two stages hold is updated in both, from
    a gradient that is added up in the order of the stages. An update is cut into rounds where it reads what another stage's update computes; the rounds
    of a stage are listed in order and become one program of the plan.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "1", "number of stages">,
    Option<"chunks", "chunks", "int64_t", "1", "parts of every stage">,
    Option<"split", "split", "std::string", "\"balanced\"", "uniform, balanced, or blocks per part separated by '-' or ','">,
    Option<"schedule", "schedule", "std::string", "\"\"", "as of hpc-make-schedule: which programs it runs">,
    Option<"markBlocks", "mark-blocks", "bool", "false", "note on every op of the trunk which block it belongs to (hpc.block), for hpc-recompute">,
  ];
  let dependentDialects = ["::hpc::pipe::PipeDialect"];
}

def MakeSchedule : Pass<"hpc-make-schedule", "::mlir::ModuleOp"> {
  let summary = "write the order in which each stage runs its programs";
  let description = [{
    After: @main has `pipe.schedule = ["F0 F1 DF0 DF1", "RF0 RF1 F0 F1"]`, a text a stage (runtime/plan/Schedule.h). Made by name (inference, gpipe,
    1f1b, interleaved, zb-h1) or read from a user's file, a line a stage; receives and drains are added by one rule where the file has none. A schedule
    that the checker does not accept for the programs and transfers of @main is an error that says what is wrong with it.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"", "a name or the path of a file (with a '/' or '.'); empty: what fits the programs">,
  ];
}

def VerifyStaged : Pass<"hpc-verify-staged", "::mlir::ModuleOp"> {
  let summary = "check: every op is in one program of one stage, values go to other stages only by transfers, the schedule may run";
}
#endif
