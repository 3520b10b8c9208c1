// The passes of phase train, in the order in which they run: @main becomes one whole training step, still serial.
#ifndef HPC_PASSES_TRAIN
#define HPC_PASSES_TRAIN
include "mlir/Pass/PassBase.td"

def ClipGradients : Pass<"hpc-clip-gradients", "::mlir::ModuleOp"> {
  let summary = "append the norm over all gradients, and what clipping by it multiplies them with";
  let description = [{
    Of all results with `nn.gradient`: the result `gradient_norm`, the root of the sum of the squares of every element, in f32 or the parameters' wider type. A gradient that is
    cut is partial there, one that is whole is counted once; no rank is asked. With `max-norm` also the result `clip_factor` = min(1, max-norm / (norm + 1e-6)), the formula of
    torch.nn.utils.clip_grad_norm_, which hpc-append-optimizer takes. The gradients that are results are those before clipping.

    Before: `return %loss, %dw` (`nn.gradient = "w"`). After: `return %loss, %dw, %norm, %factor` (`nn.name = "gradient_norm"`, `"clip_factor"`).
  }];
  let options = [Option<"maxNorm", "max-norm", "double", "0", "clip to this norm; 0: only measure it">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def AppendOptimizer : Pass<"hpc-append-optimizer", "::mlir::ModuleOp"> {
  let summary = "append the update of every parameter that has a gradient";
  let description = [{
    States are new arguments (`nn.state = "adam.m/w"`, `"adam.v/w"`, `"momentum/w"`, all from 0), the next values of parameters and states new results (`nn.writes`). Formulas are
    PyTorch's: sgd (momentum, Nesterov; dampening 0), adam (decay added to the gradient), adamw (decay taken off the parameter), and LAMB of You et al. 2020. They read the step scalars `lr` and,
    but for sgd, `step` (1 in the first step), f64 both: corrections of bias are computed in f64 once a step.
    Parameters narrower than f32 are updated in f32. Where a result `gradient_norm` is there, a step in which it is not finite writes what was there before; the result `clip_factor`
    multiplies every gradient and is no result any more.

    Before: `return %dw` (`nn.gradient = "w"`). After, with sgd: `return %dw, %next` with `%next = w - lr * dw` (`nn.writes = "w"`).
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "sgd, adam, adamw or lamb">,
    Option<"momentum", "momentum", "double", "0", "of sgd">,
    Option<"nesterov", "nesterov", "bool", "false", "of sgd with momentum">,
    Option<"beta1", "beta1", "double", "0.9", "of adam, adamw, lamb">,
    Option<"beta2", "beta2", "double", "0.999", "of adam, adamw, lamb">,
    Option<"epsilon", "epsilon", "double", "1e-8", "of adam, adamw, lamb; added outside of the root">,
    Option<"weightDecay", "weight-decay", "double", "0", "of the parameters that decay">,
    Option<"decay", "decay", "std::string", "\"all\"", "which ones: all, matrices, or patterns of names with commas between">,
  ];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def VerifyTrain : Pass<"hpc-verify-train", "::mlir::ModuleOp"> {
  let summary = "check: states, written values, step scalars and gradients of @main fit its parameters";
}
#endif
