// The passes of phase stage, in the order in which they run.
#ifndef HPC_PASSES_STAGE
#define HPC_PASSES_STAGE
include "mlir/Pass/PassBase.td"

def SplitStages : Pass<"hpc-split-stages", "::mlir::ModuleOp"> {
  let summary = "cut @main into pipeline stages";
  let description = [{
    Places to cut lie where one activation alone crosses; where the graph repeats a pattern, they lie between its repetitions (blocks), and what comes
    before the first or after the last belongs to it. What depends on weights alone, or on inputs alone, is computed in every stage that uses it.

    Before: a function of local ops. After: one `pipe.stage` per stage, values cross by `pipe.transfer`.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "1", "number of stages">,
    Option<"split", "split", "std::string", "\"balanced\"", "uniform, balanced, or blocks per stage separated by '-' or ','">,
  ];
  let dependentDialects = ["::hpc::pipe::PipeDialect"];
}

def VerifyStaged : Pass<"hpc-verify-staged", "::mlir::ModuleOp"> {
  let summary = "check: every op is in one stage, values cross stages only by transfers between neighbours in order";
}
#endif
