// The passes of phase train, in the order in which they run: @main becomes one whole training step, still serial.
#ifndef HPC_PASSES_TRAIN
#define HPC_PASSES_TRAIN
include "mlir/Pass/PassBase.td"

def AppendLoss : Pass<"hpc-append-loss", "::mlir::ModuleOp"> {
  let summary = "append the loss, and the labels that it is of";
  let description = [{
    `causal-lm` (of an output [batch, sequence, vocabulary]): the mean cross entropy of the next token. The new input `labels` has the ids' shape and their alignment: the shift is on
    the labels in here, and -100 is ignored. Where data has no labels the ids stand for them (`nn.default_input`); the ids are the input that the embedding looks up.
    Logits of 16 bits are cast to f32. `classification` ([batch, classes], labels [batch]), `mse` (labels of the output's shape), `output` (an output that is one float, a loss of the model's own); `KIND:NAME` says of which output.
    `auto`: an output that is one float and alone reads some input (labels); where there is none, by the rank of the output.

    Results are `loss`, the ratio of a sum and a count, and `valid_tokens`, the count, both of rank 0; what else the graph returned is taken away, with all that only it was for.

        return %logits                              %loss, %top, %share = nn.cross_entropy %logits, %shifted ...
                                               ->   %sum = nn.reduce sum %loss ..., %count = ...
                                                    return %sum / %count, %count
  }];
  let options = [Option<"loss", "loss", "std::string", "\"auto\"", "causal-lm, classification, mse or output, each also with :NAME; or auto">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def BuildGradients : Pass<"hpc-build-gradients", "::mlir::ModuleOp"> {
  let summary = "append the gradient of every parameter that is trained";
  let description = [{
    Reverse accumulation from the result `loss`, each op by its DifferentiableOpInterface. For every float parameter that is not frozen (`freeze`, `"trainable": false` in the sidecar) and that the loss depends on there is a new result with
    `nn.gradient`. Nothing is computed for the others. Ops of backward have the location of the op that they differentiate, marked (compiler/StepPart.h).

    What the loss is multiplied with between its sum and itself (1 / count) is no part of backward, which runs once a micro-batch: it is a factor beside the gradient, multiplied in where
    a parameter's gradient is complete.

        %sum = nn.reduce sum %losses ...        %factor = 1 / %count                                    (update)
        %loss = nn.div %sum, %count        ->   %t = ... from a gradient of 1 for every loss ...         (gradient)
                                                %dw = nn.mul %t, %factor, result with nn.gradient = "w"  (update)

    Trained parameters of f16 and bf16 become f32 (`stored_type` has their own), with a cast to it where they are read: updates in 16 bits would be lost.

    With `scale-loss`, and where anything is f16, backward starts from the step scalar `loss_scale`, divided by how many elements the loss is a sum of (rounded up to a power of two), and the factor undoes both: gradients on
    their way fit f16 as those of a mean do, and those that are results are as without.
  }];
  let options = [Option<"scaleLoss", "scale-loss", "bool", "false", "start from the step scalar loss_scale">,
    Option<"freeze", "freeze", "std::string", "\"\"", "patterns of names of parameters that stay as they are, with commas between">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

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
    but for sgd, `update` (1 + the number of updates so far: a step that is skipped is none), f64 both: corrections of bias are computed in f64 once a step.
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

def HoldWholeInputs : Pass<"hpc-hold-whole-inputs", "::mlir::ModuleOp"> {
  let summary = "compute numbers of the whole step that every micro-batch reads from inputs held whole";
  let description = [{
    A loss of two means, `sum(a) / count(labels) + sum(b) / n`, has two factors where its gradients meet, so every micro-batch reads 1 / count, which is known only at the end of the step where
    labels come in parts. It is a number of the inputs alone, though, and all of the labels are there when the step begins. What depends on inputs, constants and parameters, but on
    no product, is computed once more, from a new argument that is the whole input in every micro-batch (`nn.whole_of`).
    What depends on activations, as batch statistics do, stays as it is, and hpc-propagate-shardings refuses it. Does nothing with one micro-batch.

        func @main(%labels {nn.name = "labels"})        func @main(%labels {nn.name = "labels"}, %all {nn.whole_of = "labels"})
        %count = nn.reduce sum %labels ...         ->   %count = nn.reduce sum %labels ...
        %t = nn.mul %perToken, %count                   %again = nn.reduce sum %all ...
                                                        %t = nn.mul %perToken, %again
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", "1", "number of micro-batches">,
    Option<"batchDim", "batch-dim", "std::string", "\"\"", "name of the batch dim">,
  ];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def VerifyTrain : Pass<"hpc-verify-train", "::mlir::ModuleOp"> {
  let summary = "check: states, written values, step scalars and gradients of @main fit its parameters";
}
#endif
