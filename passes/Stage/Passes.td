// The passes of phase stage, in the order in which they run.
#ifndef HPC_PASSES_STAGE
#define HPC_PASSES_STAGE
include "mlir/Pass/PassBase.td"

def SplitStages : Pass<"hpc-split-stages", "::mlir::ModuleOp"> {
  let summary = "cut @main into pipeline stages";
  let description = [{
    What stands behind a product with a weight is computed once; what does not (positions, masks, slopes, a bias that all layers share) is cheap to
    repeat and is computed in every part that reads it, as are weights and what is made of weights alone. Places to cut lie between products; where the
    graph repeats a pattern of them (layers), they lie between its repetitions, and what comes before the first or after the last belongs to it.

    Before: a function of local ops. After: one `pipe.stage` for each part; a stage has `chunks` parts, part k is chunk k / stages of stage
    k mod stages. Values go from part to part by `pipe.transfer`; a value that is read further on goes through all parts between.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "1", "number of stages">,
    Option<"chunks", "chunks", "int64_t", "1", "parts of every stage">,
    Option<"split", "split", "std::string", "\"balanced\"", "uniform, balanced, or blocks per part separated by '-' or ','">,
  ];
  let dependentDialects = ["::hpc::pipe::PipeDialect"];
}

def SplitUpdates : Pass<"hpc-split-updates", "::mlir::ModuleOp"> {
  let summary = "take what is computed once a step out of the programs that run once a micro-batch";
  let description = [{
    Before: `forward` programs in which an accumulation is read. After: `forward` ends with the accumulations, to which each micro-batch adds its term, and
    an `update` program of the same stage and chunk reads them; what parameters and states become is written there. With one micro-batch nothing changes.

        %0:2 = pipe.stage 0 forward(%x) ...          // yields %y and %sum = dist.accumulate %term
        %1 = pipe.stage 0 update(%lr, %0#1) ...      // yields the next value of "w"
  }];
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
